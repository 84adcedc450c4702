"""Where the plane of a projection is a place on earth: most maps of the world are ovals.

Many projections give a longitude and a latitude for every point of the plane, also beyond their
edge. A point is a place if its longitude and latitude are projected to itself.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.space.crs import explain_proj_errors, metres_per_unit, offline, parse_crs

__all__ = ["are_places", "beyond_the_world"]

# Metres within which a place must be projected to itself.
_NEAR = 1.0

# Places along the sides of bounds at which an edge of the world is looked for, and the share of the
# sides by which they are inside: bounds may end at the edge, or be rounded a little beyond it.
_PROBES, _INSIDE = 33, 1e-5


def are_places(crs: str, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether points in the plane of a projected CRS are places on earth.

    Examples
    --------
    >>> are_places("EPSG:8857", np.array([1.7e7, 1.7e7]), np.array([0.0, 8e6])).tolist()
    [True, False]
    """
    from pyproj import Transformer
    from pyproj.enums import TransformDirection

    parsed = parse_crs(crs)
    if not parsed.is_projected or parsed.geodetic_crs is None:
        return np.ones(np.shape(x), bool)
    with explain_proj_errors("the bounds", crs), offline():
        move = Transformer.from_crs(parsed.geodetic_crs, parsed, always_xy=True)
        degrees = move.transform(x, y, direction=TransformDirection.INVERSE)
        again = move.transform(*degrees)
    with np.errstate(invalid="ignore"):
        gap = np.hypot(again[0] - x, again[1] - y) * (metres_per_unit(crs) or 1.0)
    return np.asarray(gap < _NEAR)


@cache
def beyond_the_world(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether a part of bounds in a projected CRS is no place on earth.

    Cells there hold nobody, and cells at the rim of the world hold records in a part of them alone.

    Examples
    --------
    >>> world = (-18040096, -9020048, 18040096, 9020048)
    >>> beyond_the_world(world, "ESRI:54009"), beyond_the_world(world, "EPSG:3857")
    (True, False)
    """
    along = np.linspace(_INSIDE, 1 - _INSIDE, _PROBES)
    x, y = (bounds[axis] + along * (bounds[axis + 2] - bounds[axis]) for axis in (0, 1))
    return not are_places(crs, *(grid.ravel() for grid in np.meshgrid(x, y))).all()
