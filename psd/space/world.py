"""Where the plane of a projection is a place on earth: most maps of the world are ovals.

Many projections give a longitude and a latitude for every point of the plane, also beyond their
edge. A point is a place if its longitude and latitude are projected to itself.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.space.crs import half_turn, metres_per_unit, offline, parse_crs
from psd.space.shape_transforms import seam_longitude

if TYPE_CHECKING:
    from pyproj import Transformer

__all__ = ["are_places", "beyond_the_world", "world_width"]

# Metres within which a place must be projected to itself.
_NEAR = 1.0

# Places along the sides of bounds at which an edge of the world is looked for, and the share of the
# sides by which they are inside: bounds may end at the edge, or be rounded a little beyond it.
_PROBES, _INSIDE = 33, 1e-5


def are_places(crs: str, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether points in the plane of a projected CRS are places on earth.

    A cylindrical projection goes on beyond its seam, with places of the other side.
    """
    from pyproj.enums import TransformDirection

    move = _projection(crs)
    if move is None:
        return np.ones(np.shape(x), bool)
    again = move.transform(*move.transform(x, y, direction=TransformDirection.INVERSE))
    width = world_width(crs)
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
    ends = np.array([-1 + 1e-12, 1 - 1e-12]) * half + (seam - 180) * half / 180
    equator, north = (np.ptp(move.transform(ends, np.full(2, y * half))[0]) for y in (0.0, 0.3))
    return float(equator) if abs(equator - north) < 1e-9 * equator else None


@cache
def _projection(crs: str) -> Transformer | None:
    """Projection of a CRS; None of degrees, of a local one, and where PROJ cannot compute it."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    parsed = parse_crs(crs)
    if not parsed.is_projected or parsed.geodetic_crs is None:
        return None
    with offline(), suppress(ProjError):
        return Transformer.from_crs(parsed.geodetic_crs, parsed, always_xy=True)
    return None


@cache
def beyond_the_world(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether a part of bounds in a projected CRS is no place on earth.

    Cells there hold nobody, and cells at the rim of the world hold records in a part of them alone.
    """
    along = np.linspace(_INSIDE, 1 - _INSIDE, _PROBES)
    x, y = (bounds[axis] + along * (bounds[axis + 2] - bounds[axis]) for axis in (0, 1))
    return not are_places(crs, *(grid.ravel() for grid in np.meshgrid(x, y))).all()
