"""How polygons of one level cover the area: where they overlap, and where gaps are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.errors import ParameterError
from psd.space.domain import Domain
from psd.space.even_odd import EdgeIndex

__all__ = [
    "check_overlaps",
    "default_tolerance",
    "gap_between",
    "is_wide",
    "overlapping_pairs",
    "polygonal_part",
    "share_sides",
]

# Part of the longer side of the bounds; a decimetre in 100 km.
_TOLERANCE = 1e-6


def default_tolerance(domain: Domain) -> float:
    """Width in units of the CRS up to which overlaps and gaps are taken as errors of drawing."""
    return _TOLERANCE * max(domain.width, domain.height)


def overlapping_pairs(polygons: NDArray[np.object_]) -> Integers:
    """Pairs of valid polygons whose interiors overlap, the lower number first."""
    import shapely

    first, second = shapely.STRtree(polygons).query(polygons, predicate="intersects")
    first, second = first[first < second], second[first < second]
    overlaps = shapely.relate_pattern(polygons[first], polygons[second], "T********")
    return np.stack([first[overlaps], second[overlaps]], axis=1).astype(np.int64)


def check_overlaps(polygons: NDArray[np.object_], ids: Sequence[str], tolerance: float) -> None:
    """Refuse polygons, (n,) and valid, of which two overlap more widely than the tolerance."""
    import shapely

    first, second = overlapping_pairs(polygons).T
    wide = is_wide(shapely.intersection(polygons[first], polygons[second]), tolerance)
    if wide.any():
        pair = int(wide.argmax())
        a, b = ids[first[pair]], ids[second[pair]]
        raise ParameterError(
            f"regions must not overlap by more than {tolerance:g}, but {a[:80]!r} and {b[:80]!r} "
            f"do ({int(wide.sum()):,} such pairs); remove the overlap, or pass a larger tolerance"
        )


def is_wide(shapes: NDArray[np.object_], tolerance: float) -> NDArray[np.bool_]:
    """Whether shapes have a part that is wider than the tolerance."""
    import shapely

    wide: NDArray[np.bool_] = shapely.area(shapes) > 0
    which = np.flatnonzero(wide)
    wide[which] = ~shapely.is_empty(shapely.buffer(shapes[which], -tolerance / 2, quad_segs=2))
    return wide


def gap_between(polygons: NDArray[np.object_], area: Any, tolerance: float) -> Any:
    """The part of an area in no polygon; None if it is nowhere wider than the tolerance."""
    import shapely

    gap = polygonal_part(np.array([area.difference(shapely.union_all(polygons))], dtype=object))
    return gap[0] if is_wide(gap, tolerance)[0] else None


def polygonal_part(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Polygons of shapes, without lines and points that overlays leave."""
    import shapely

    mixed = np.flatnonzero(~np.isin(shapely.get_type_id(shapes), (3, 6)))
    if not len(mixed):
        return shapes
    shapes = shapes.copy()
    for index in mixed:
        parts = shapely.get_parts(shapes[index])
        areas = parts[np.isin(shapely.get_type_id(parts), (3, 6))]
        shapes[index] = shapely.union_all(areas) if len(areas) else shapely.Polygon()
    return shapes


def share_sides(
    polygons: NDArray[np.object_], sides: EdgeIndex, domain: Domain, tolerance: float
) -> bool:
    """Whether polygons that are beside each other inside the bounds have their sides in common."""
    import shapely

    # Then no point between them is in none. Else rounding may leave gaps that no overlay shows.
    x0, y0, x1, y1, _ = sides.sides
    turned = (x0 == x1) & (y0 > y1)
    ends = x0, np.where(turned, y1, y0), x1, np.where(turned, y0, y1)
    _, group, number = np.unique(_hashes(*ends), return_inverse=True, return_counts=True)
    # A side that has no twin, in either direction; no other polygon may be near its middle.
    alone = number[group] != 2
    x, y, owner = (x0[alone] + x1[alone]) / 2, (y0[alone] + y1[alone]) / 2, sides.owner[alone]
    west, south, east, north = domain.bounds
    inside = (x > west) & (x < east) & (y > south) & (y < north)
    middles, owner = shapely.points(x[inside], y[inside]), owner[inside]
    tree = shapely.STRtree(polygons)
    side, polygon = tree.query(middles, predicate="dwithin", distance=tolerance)
    return bool((owner[side] == polygon).all())


def _hashes(*numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Hash of numbers, row by row."""
    total = np.zeros(len(numbers[0]), np.uint64)
    for column in numbers:
        total ^= (column + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        total *= np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(32)
    return total
