"""Checks of the bounds of a domain: finite, in order, and where the CRS is a place on earth.

Many projections give longitudes and latitudes beyond their edge as well. A point is a place if its
longitude and latitude are projected to itself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd._util.instances import number_text
from psd.errors import DomainError
from psd.space.crs import (
    check_plane_crs,
    explain_proj_errors,
    half_turn,
    metres_per_unit,
    offline,
    parse_crs,
    prime_meridian,
)
from psd.space.shape_transforms import seam_longitude

if TYPE_CHECKING:
    from pyproj import CRS, Transformer

__all__ = ["beyond_the_world", "check_ground"]


_METRES_PER_DEGREE: Final = 110_574.0
"""The shortest degree on the Earth, of latitude at the equator; so no side is overestimated."""

_MAX_LATITUDE: Final = 80.0
"""Where a degree of longitude is measured in bounds that reach farther: at a pole it is 0."""

_SHORTEST_SIDE = 1.0
"""Metres; coordinates of records are no more exact."""


def four_numbers(bounds: tuple[Any, ...]) -> tuple[float, float, float, float]:
    """Check for four numbers; others are counted, since they may be a column of records."""
    try:
        west, south, east, north = (float(edge) for edge in bounds)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            "bounds must be four numbers, west south east north, got " + number_text(bounds),
            name="bounds",
        ) from None
    return west, south, east, north


def check_bounds(bounds: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Check for four finite numbers, west < east and south < north."""
    west, south, east, north = four_numbers(bounds)
    if not all(math.isfinite(edge) for edge in (west, south, east, north)):
        rule = f"be finite, got {west} {south} {east} {north}"
    elif west >= east:
        rule = (
            f"have west below east, got {west} and {east}; the order is west south east north, "
            "and a domain across the antimeridian must be split in two, or be in a CRS that is "
            "not cut there (EPSG:3832 for the Pacific)"
        )
    elif south >= north:
        rule = (
            f"have south below north, got {south} and {north}; the order is west south east north"
        )
    elif not (math.isfinite(east - west) and math.isfinite(north - south)):
        rule = f"have a finite width and height, got {west} {south} {east} {north}"
    else:
        return west, south, east, north
    raise DomainError(f"bounds must {rule}", name="bounds", value=bounds)


@cache
def area_of_use(crs: str) -> tuple[float, float, float, float] | None:
    """Area of use of a projected CRS in its own units, if it states one."""
    from pyproj import CRS

    parsed = CRS.from_user_input(crs)
    if parsed.area_of_use is None or parsed.geodetic_crs is None:
        return None
    # An area of use is in degrees from Greenwich; the CRS may have grads, or begin at Paris.
    west, south, east, north = parsed.area_of_use.bounds
    begin, unit = prime_meridian(parsed), half_turn(parsed.geodetic_crs) / 180
    if east - west < 360:
        west, east = ((side - begin + 180) % 360 - 180 if begin else side for side in (west, east))
    with explain_proj_errors("the area of use", crs):
        bounds: tuple[float, float, float, float] = _from_degrees(parsed).transform_bounds(
            west * unit, south * unit, east * unit, north * unit
        )
    return bounds if all(map(math.isfinite, bounds)) else None


def meets_area_of_use(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether bounds overlap the area of use, or a margin of a quarter of it on each side."""
    area = area_of_use(crs)
    if area is None:
        return True
    reach_x, reach_y = (area[2] - area[0]) / 4, (area[3] - area[1]) / 4
    return (
        bounds[0] < area[2] + reach_x
        and bounds[2] > area[0] - reach_x
        and bounds[1] < area[3] + reach_y
        and bounds[3] > area[1] - reach_y
    )


def snap_outward(
    bounds: tuple[float, float, float, float],
    resolution: str,
    limits: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    """Move each side outward to the next multiple of a resolution, but not beyond limits.

    P1. The result is the doubles nearest to the multiples, which a parser reads from decimal text.
    P2. It depends on the arguments alone, and contains the bounds.
    """
    step = Fraction(resolution)
    west, south = (
        max(float(math.floor(Fraction(bounds[side]) / step) * step), limits[side])
        for side in (0, 1)
    )
    east, north = (
        min(float(math.ceil(Fraction(bounds[side]) / step) * step), limits[side]) for side in (2, 3)
    )
    return west, south, east, north


def check_degrees(bounds: tuple[float, float, float, float], crs: str = "EPSG:4326") -> None:
    """Refuse bounds beyond the limits of longitude and latitude of a geographic CRS."""
    west, south, east, north = bounds
    half = half_turn(crs)
    unit = {180.0: "degrees", 200.0: "grads"}.get(half, "units of the CRS")
    if max(abs(south), abs(north)) > half / 2:
        raise DomainError(
            f"bounds must have latitudes within {half / 2:g} {unit}, got {south} to {north}; are x "
            "and y swapped, or are these metres of a projected CRS (give crs=)?",
            name="bounds",
            value=bounds,
        )
    if max(abs(west), abs(east)) > half:
        raise DomainError(
            f"bounds must have longitudes within {half:g} {unit}, got {west} to {east}; are "
            f"these metres of a projected CRS (give crs=), or longitudes from 0 to {2 * half:g}?",
            name="bounds",
            value=bounds,
        )


def may_be_degrees(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether bounds in a projected CRS are numbers that longitudes and latitudes have."""
    west, south, east, north = bounds
    fits = max(abs(west), abs(east)) <= 180 and max(abs(south), abs(north)) <= 90
    return fits and crs != "EPSG:4326" and bool(parse_crs(crs).is_projected)


def check_ground(bounds: tuple[float, float, float, float], crs: str) -> None:
    """Refuse bounds in a projected CRS that are less than a metre wide or high."""
    unit = metres_per_unit(crs) if may_be_degrees(bounds, crs) else None
    if unit is None:
        return
    width, height = ground_sides(bounds, unit)
    if min(width, height) < _SHORTEST_SIDE:
        west, south, east, north = (f"{edge:.10g}" for edge in bounds)
        raise DomainError(
            f"bounds must be at least 1 m wide and high in {crs[:80]}, got {west} {south} {east} "
            f"{north}, which is {width:.3g} x {height:.3g} m; if they are degrees, give "
            'bounds_crs="EPSG:4326"',
            name="bounds",
            value=bounds,
        )


def ground_sides(
    bounds: tuple[float, float, float, float], metres_per_unit: float | None
) -> tuple[float, float]:
    """Width and height in metres; degrees at the latitude farthest from the equator, up to 80."""
    west, south, east, north = bounds
    if metres_per_unit is not None:
        return (east - west) * metres_per_unit, (north - south) * metres_per_unit
    farthest = min(max(abs(south), abs(north)), _MAX_LATITUDE)
    along = _METRES_PER_DEGREE * math.cos(math.radians(farthest))
    return (east - west) * along, (north - south) * _METRES_PER_DEGREE


# Metres within which a place must be projected to itself.
_NEAR = 1.0

# Places along the sides of bounds at which an edge of the world is looked for, and the share of the
# sides by which they are inside: bounds may end at the edge, or be rounded a little beyond it.
_PROBES, _INSIDE = 33, 1e-5


def are_places(crs: str, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether points of a projected CRS are places on earth; beyond a cylinder's seam none is."""
    move = _projection(crs)
    if move is None:
        return np.ones(np.shape(x), bool)
    from pyproj.enums import TransformDirection

    # To degrees and back: a place comes back to itself.
    again = move.transform(*move.transform(x, y, direction=TransformDirection.INVERSE))
    # A cylinder goes on beyond its seam, a whole width of the world further.
    width = world_width(crs)
    # Points without a place come back as infinite or NaN, which are not near.
    with np.errstate(invalid="ignore"):
        across = again[0] - x
        if width:
            across -= width * np.round(across / width)
        gap = np.hypot(across, again[1] - y) * (metres_per_unit(crs) or 1.0)
    return np.asarray(gap < _NEAR)


@cache
def world_width(crs: str) -> float | None:
    """Width of the world in the plane of a cylindrical projection; None of another one."""
    move, seam = _projection(crs), seam_longitude(crs)
    if move is None or seam is None:
        return None
    half = half_turn(parse_crs(crs).geodetic_crs)
    # Ends of the world on the equator and nearer a pole: equally far apart in a cylinder.
    ends = np.array([-1 + 1e-12, 1 - 1e-12]) * half + (seam - 180) * half / 180
    equator, north = (np.ptp(move.transform(ends, np.full(2, y * half))[0]) for y in (0.0, 0.3))
    return float(equator) if abs(equator - north) < 1e-9 * equator else None


@cache
def _projection(crs: str) -> Transformer | None:
    """Projection of a CRS; None of degrees, of a local one, and where PROJ cannot compute it."""
    if check_plane_crs(crs)[1]:  # without pyproj where the CRS is the default
        return None
    from pyproj.exceptions import ProjError

    parsed = parse_crs(crs)
    if not parsed.is_projected or parsed.geodetic_crs is None:
        return None
    with offline(), suppress(ProjError):
        return _from_degrees(parsed)
    return None


def _from_degrees(crs: CRS) -> Transformer:
    """Projection of a CRS from its own degrees; ProjError where PROJ cannot compute it."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    projection = Transformer.from_crs(crs.geodetic_crs, crs, always_xy=True)
    # Older PROJ says nothing of a method that it does not have: no place on earth has coordinates.
    half = half_turn(crs.geodetic_crs)
    grid = np.meshgrid(np.linspace(-0.9, 0.9, 19) * half, np.linspace(-0.45, 0.45, 19) * half)
    if not np.isfinite(projection.transform(*grid)).any():
        raise ProjError("there is no such projection")
    return projection


@cache
def beyond_the_world(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether a part of bounds in a projected CRS is no place on earth, where cells hold nobody."""
    if _projection(crs) is None:
        return False
    along = np.linspace(_INSIDE, 1 - _INSIDE, _PROBES)
    x, y = (bounds[axis] + along * (bounds[axis + 2] - bounds[axis]) for axis in (0, 1))
    return not are_places(crs, *(grid.ravel() for grid in np.meshgrid(x, y))).all()
