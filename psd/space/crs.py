"""Parse untrusted coordinate reference systems (CRS).

PROJ opens files that a CRS names (grids of shifts, models, definitions). A path in an untrusted
release or layer could be any file of the reader, or a pipe that never ends: such a CRS is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from psd._util.instances import shown
from psd.errors import DomainError

if TYPE_CHECKING:
    from pyproj import CRS

__all__ = [
    "axis_labels",
    "check_plane_crs",
    "explain_proj_errors",
    "half_turn",
    "metres_per_unit",
    "offline",
    "parse_crs",
    "radians_per_unit",
]

# Parameters of PROJ whose values are files, in a PROJ string or inside another text.
_FILES = re.compile(
    r"(?:grids|file|model|catalog)\s*=(?!\s*@?null(?:[\s\"]|$))|init\s*=(?!\s*epsg:\d)|PROJ-based",
    re.IGNORECASE,
)

# The default, which is known without pyproj: its import takes as long as a small query.
_DEGREES = "EPSG:4326"

# Names of the empty grid, which shifts nothing.
_NULL = ("null", "@null")


# Names of units, as they are read on an axis; others stand as the CRS has them.
_UNITS = {
    "degree": "degrees", "metre": "metres", "meter": "metres", "kilometre": "km", "grad": "grads",
    "foot": "feet", "US survey foot": "US survey feet",
}  # fmt: skip


def parse_crs(named: Any) -> CRS:
    """Parse a name, a code or a definition of a CRS with coordinates x and y; refuse any other."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    text = str(getattr(named, "srs", named))
    if _FILES.search(text):  # pyproj would open some files when it parses the text
        raise DomainError(_names_file(text), name="crs")
    try:
        crs = CRS.from_user_input(named)
        parts = list(_texts("", crs.to_json_dict()))
    except (CRSError, UnicodeError, RecursionError):
        raise DomainError(
            f"crs must be a coordinate reference system such as EPSG:4326, got {shown(named)}",
            name="crs",
            value=text[:80],
        ) from None
    # Values of parameters are numbers; a text is the name of a file.
    if any(_FILES.search(t) or (key == "value" and t not in _NULL) for key, t in parts):
        raise DomainError(_names_file(text), name="crs")
    if not (crs.is_geographic or crs.is_projected or crs.is_engineering):
        if crs.is_geocentric:
            cause = "which has X, Y and Z from the centre of the earth (transform them first)"
        elif crs.is_vertical:
            cause = "which has heights alone"
        else:
            cause = f"which is a {crs.type_name}"
        raise DomainError(
            f"crs must have coordinates x and y, got {text[:80]!r}, {cause}; try EPSG:4326",
            name="crs",
            value=text[:80],
        )
    return crs


def check_plane_crs(text: str, name: str = "crs") -> tuple[str, bool]:
    """Canonical text of a CRS with coordinates x and y, others refused; and whether in degrees."""
    if text == _DEGREES:
        return _DEGREES, True
    try:
        crs = parse_crs(text)
    except DomainError as error:
        message = str(error)
        raise DomainError(
            name + message.removeprefix("crs"), name=name, value=str(text)[:80]
        ) from None
    authority = crs.to_authority(min_confidence=100)
    return (":".join(authority) if authority else crs.to_wkt()), bool(crs.is_geographic)


@contextmanager
def offline() -> Iterator[None]:
    """Keep PROJ from fetching grids over the network, whatever the environment allows."""
    from pyproj import _network

    allowed = _network.is_network_enabled()
    if allowed:
        _network.set_network_enabled(active=False)
    try:
        yield
    finally:
        if allowed:
            _network.set_network_enabled(active=True)


@cache
def axis_labels(crs: str) -> tuple[str, str]:
    """What x and y are, with their unit, for the axes of a map."""
    parsed = parse_crs(crs)
    names = ("longitude", "latitude") if parsed.is_geographic else ("x", "y")
    units = [_UNITS.get(axis.unit_name, axis.unit_name) for axis in parsed.axis_info[:2]]
    if len(set(units)) != 1 or not units[0]:
        return names
    return f"{names[0]} ({units[0]})", f"{names[1]} ({units[0]})"


def metres_per_unit(crs: str) -> float | None:
    """Length of a unit of the coordinates of a projected or local CRS; None without one."""
    axes = parse_crs(crs).axis_info
    factors = {float(axis.unit_conversion_factor) for axis in axes[:2]}
    if len(factors) != 1 or any("degree" in axis.unit_name for axis in axes[:2]):
        return None
    return factors.pop() or None


@cache
def radians_per_unit(crs: str) -> float:
    """Angle of a unit of the coordinates of a geographic CRS: of a degree, or of a grad."""
    if crs == _DEGREES:
        return math.radians(1)
    return float(parse_crs(crs).axis_info[0].unit_conversion_factor)


def half_turn(crs: Any) -> float:
    """Largest longitude of a geographic CRS in its unit: 180 degrees, or 200 grads."""
    return round(math.pi / radians_per_unit(crs), 9)


def prime_meridian(crs: Any) -> float:
    """Degrees east of Greenwich at which the longitudes of a CRS, or of its ellipsoid, begin."""
    parsed = parse_crs(crs)
    meridian = (parsed.geodetic_crs or parsed).prime_meridian
    if meridian is None:
        return 0.0
    return math.degrees(meridian.longitude * float(meridian.unit_conversion_factor))


def _names_file(text: str) -> str:
    """Explain why a CRS is refused."""
    return (
        f"crs must not name files or steps of PROJ, got {text[:80]!r}; give a code such as "
        "EPSG:4326, or a definition without grids"
    )


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield all texts of a definition with their keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(name, part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(key, part)


@contextmanager
def explain_proj_errors(what: str, crs: Any) -> Iterator[None]:
    """Turn errors of PROJ in the block into a sentence about what is transformed to the CRS."""
    from pyproj.exceptions import ProjError

    try:
        yield
    except ProjError:
        raise DomainError(
            f"{what} cannot be transformed to {str(crs)[:80]}; is one of the two a local CRS, or "
            "one whose projection PROJ cannot compute?"
        ) from None


def beyond_world(crs: Any) -> str:
    """Likely cause why shapes have no finite coordinates in a CRS, or far too many vertices."""
    return (
        f"does it reach a pole or an edge of the world where its CRS or {str(crs)[:80]} has no "
        "place? Clip it to the bounds of the release"
    )
