"""Check polygons and reproject them to the CRS of a release.

Sizes are checked first, by counting alone, so that GEOS gets no polygon that takes it long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import sum_by
from psd.errors import DomainError, ParameterError
from psd.space.crs import beyond_world, explain_proj_errors, half_turn, parse_crs
from psd.space.shape_transforms import metres_of, transform_shapes
from psd.space.world import beyond_the_world, world_width

if TYPE_CHECKING:
    import geopandas
    from pyproj import CRS

    from psd.space.domain import Domain

__all__ = [
    "MAX_OUTLINE_LENGTHS",
    "MAX_PAIRS",
    "MAX_VERTICES",
    "TOLERANCE",
    "check_kinds",
    "check_sizes",
    "outline_lengths",
    "region_text",
    "reproject",
    "to_release_crs",
]

TOLERANCE = 2.0**-24
"""Part of the longer side of the domain within which reprojected lines keep their place."""

MAX_VERTICES = 500_000
"""Limit of the vertices of a polygon, also after its lines are divided."""

MAX_PAIRS = 100_000_000
"""Limit of pairs of sides above or beside each other; the time of GEOS grows with them."""

MAX_OUTLINE_LENGTHS = 1000
"""Limit of the length of an outline inside the domain, in widths or heights of it: queries visit
every cell that it passes."""

# A polygon of fewer vertices has fewer than `MAX_PAIRS` pairs of sides: n (n - 1) / 2.
_FEW_VERTICES = 14_000

_POLYGONS = (3, 6)

# Surroundings of a domain within which regions are reprojected, in sides of it: the widest that the
# world of its CRS has.
_REACHES = (1.0, 0.1, 0.01)

_ADVICE = "repair it first (psd query --repair, or shapely.make_valid)"


def region_text(index: int, names: Sequence[str] | None = None) -> str:
    """How a message names a region: by the caller's id, or by its number counted from 1."""
    return f"region {index + 1}" if names is None else f"region {names[index][:80]!r}"


def to_release_crs(
    shapes: geopandas.GeoSeries,
    domain: Domain,
    advice: str = _ADVICE,
    names: Sequence[str] | None = None,
) -> NDArray[np.object_]:
    """Check shapes and reproject them to the CRS of the domain.

    Returns (n,), valid polygons; one that lies far from the domain is empty. `advice` ends the
    message about a polygon that is not valid; `names` are the caller's ids, for messages.

    P1. A polygon that is not valid is refused with the reason, not repaired.

    P2. A polygon that would take GEOS seconds is refused by its size first.

    Heights are ignored. Lines keep their place to `TOLERANCE` of the domain, and the result is
    checked again. Where the CRS of the domain is cut, at longitude 180 or elsewhere, a region is
    cut as well; where that of the region is cut and the other is not, its parts are joined.
    """
    import shapely

    original = np.asarray(shapes.array, dtype=object)
    _check(original, names, advice=advice)
    moved = reproject(shapes, domain)
    is_near = ~shapely.is_empty(moved)
    finite = ~is_near | np.isfinite(shapely.bounds(moved)).all(axis=1)
    if not finite.all():
        raise DomainError(
            f"{_first(~finite, names)} cannot be expressed in {domain.crs}; "
            + beyond_world(domain.crs)
            + ", or pass crs= if it is in another CRS"
        )
    _check(np.where(is_near, moved, original), names, " in the CRS of the release")
    _check_lengths(moved, domain, names)
    return moved


def outline_lengths(shapes: NDArray[np.object_], domain: Domain) -> NDArray[np.float64]:
    """Lengths of outlines inside the domain, in widths of it along x and in heights along y.

    shapes: (n,), in the CRS of the domain; returns (n,) float64. An oblique line that leaves the
    domain may count for more than its part inside.
    """
    import shapely

    vertices, owner = shapely.get_coordinates(shapes, return_index=True)
    rings = shapely.get_rings(shapely.get_parts(shapes))
    _, ring = shapely.get_coordinates(rings, return_index=True)
    low, high = np.minimum(vertices[1:], vertices[:-1]), np.maximum(vertices[1:], vertices[:-1])
    inside = np.minimum(high, domain.bounds[2:]) - np.maximum(low, domain.bounds[:2])
    is_inside = (ring[1:] == ring[:-1]) & (inside >= 0).all(axis=1)
    length = (inside / (domain.width, domain.height)).sum(axis=1)
    return sum_by(owner[1:][is_inside], length[is_inside], len(shapes))


def _check_lengths(
    shapes: NDArray[np.object_], domain: Domain, names: Sequence[str] | None
) -> None:
    """Refuse outlines that pass through too many cells."""
    lengths = outline_lengths(shapes, domain)
    is_long = lengths > MAX_OUTLINE_LENGTHS
    if is_long.any():
        raise ParameterError(
            f"{_first(is_long, names)} must have an outline of at most {MAX_OUTLINE_LENGTHS:,} "
            f"widths of the domain inside it, got {lengths[is_long.argmax()]:,.0f}; simplify it"
        )


def reproject(shapes: geopandas.GeoSeries, domain: Domain) -> NDArray[np.object_]:
    """Reproject shapes to the CRS of the domain; their sides keep their place inside it.

    What lies far from the domain may be cut off; shapes there become empty.
    """
    original = np.asarray(shapes.array, dtype=object)
    tolerance = max(domain.width, domain.height) * metres_of(domain.crs) * TOLERANCE
    with explain_proj_errors("a region", domain.crs):
        near = _clip_near(original, parse_crs(shapes.crs), domain)
        return transform_shapes(near, shapes.crs, domain.crs, tolerance, most=MAX_VERTICES)


def _clip_near(shapes: NDArray[np.object_], source: CRS, domain: Domain) -> NDArray[np.object_]:
    """Shapes without what lies far from the domain, where its CRS may have no place for them.

    The pole opposite to that of a polar CRS has none, and far from its meridian a transverse
    projection puts places anywhere. Nothing inside the domain changes.
    """
    import shapely

    if domain.geographic or source.equals(parse_crs(domain.crs), ignore_axis_order=True):
        return shapes
    west, south, east, north = domain.bounds
    widest = world_width(domain.crs) or np.inf
    for reach in _REACHES:
        x, y = reach * domain.width, reach * domain.height
        around = (west - x, south - y, east + x, north + y)
        if domain.width + 2 * x < widest and not beyond_the_world(around, domain.crs):
            break
    else:
        return shapes
    (near,) = transform_shapes(np.array([shapely.box(*around)]), domain.crs, source)
    if not np.isfinite(shapely.bounds(near)).all() or not shapely.is_valid(near):
        return shapes
    is_usable = np.ones(len(shapes), bool)
    if source.is_geographic:  # longitudes may go on beyond 180; no latitude is beyond a pole
        turn = 2 * half_turn(source)
        turns = np.array([[-turn, 0], [0, 0], [turn, 0]])
        near = shapely.union_all(
            [shapely.transform(near, lambda xy, by=by: xy + by) for by in turns]
        )
        is_usable = (np.abs(shapely.bounds(shapes)[:, 1::2]) <= turn / 4).all(axis=1)
    shapely.prepare(near)
    clipped = np.array(shapes, dtype=object)
    for number in np.flatnonzero(is_usable & ~shapely.covers(near, shapes)):
        parts = shapely.get_parts(shapely.intersection(shapes[number], near))
        parts = parts[shapely.get_type_id(parts) == _POLYGONS[0]]
        clipped[number] = parts[0] if len(parts) == 1 else shapely.MultiPolygon(list(parts))
    return clipped


def _check(
    shapes: NDArray[np.object_],
    names: Sequence[str] | None,
    where: str = "",
    advice: str = _ADVICE,
) -> None:
    """Refuse shapes that are not polygons, then large ones, then invalid ones."""
    import shapely

    check_kinds(shapes, names)
    check_sizes(shapes, names)
    invalid = ~shapely.is_valid(shapes)
    if invalid.any():
        reason = shapely.is_valid_reason(shapes[invalid.argmax()])
        raise ParameterError(f"{_first(invalid, names)} is not valid{where} ({reason}); {advice}")


def check_kinds(shapes: NDArray[np.object_], names: Sequence[str] | None = None) -> None:
    """Refuse shapes that are not polygons, and empty ones."""
    import shapely

    kinds = shapely.get_type_id(shapes)
    other = ~np.isin(kinds, _POLYGONS)
    if other.any():
        shape = shapes[other.argmax()]
        kind = "missing" if shape is None else shape.geom_type
        raise ParameterError(f"{_first(other, names)} must be a polygon, got {kind}")
    empty = shapely.is_empty(shapes)
    if empty.any():
        raise ParameterError(f"{_first(empty, names)} must not be empty")


def check_sizes(shapes: NDArray[np.object_], names: Sequence[str] | None = None) -> None:
    """Refuse shapes that GEOS must not get: too many vertices or pairs of sides, or NaN."""
    import shapely

    vertices = shapely.get_num_coordinates(shapes)
    is_large = vertices > MAX_VERTICES
    if is_large.any():
        raise ParameterError(
            f"{_first(is_large, names)} must have at most {MAX_VERTICES:,} vertices, got "
            f"{vertices[is_large.argmax()]:,}; simplify it, or divide it"
        )
    vertices_xy, owner = shapely.get_coordinates(shapes, return_index=True)
    lost = owner[~np.isfinite(vertices_xy).all(axis=1)]
    if len(lost):
        raise ParameterError(f"{region_text(int(lost[0]), names)} must have finite coordinates")
    for index in np.flatnonzero(vertices > _FEW_VERTICES):
        _check_pairs(region_text(int(index), names), shapes[index])


def _check_pairs(name: str, shape: Any) -> None:
    """Refuse a polygon with too many pairs of sides for GEOS."""
    import shapely

    pairs = _count_pairs(shape)
    if pairs > MAX_PAIRS:
        raise ParameterError(
            f"{name} must have at most {MAX_PAIRS:,} pairs of sides beside each other, "
            f"got {pairs:,} of {shapely.get_num_coordinates(shape):,} vertices; simplify it, or "
            "divide it"
        )


def _count_pairs(shape: Any) -> int:
    """Count pairs of sides whose ranges overlap, along x or along y, whichever are fewer."""
    import shapely

    rings = shapely.get_rings(shapely.get_parts(shape))
    vertices, ring = shapely.get_coordinates(rings, return_index=True)
    along = ring[1:] == ring[:-1]
    low = np.minimum(vertices[1:], vertices[:-1])[along]
    high = np.maximum(vertices[1:], vertices[:-1])[along]
    return min(_overlaps(low[:, axis], high[:, axis]) for axis in (0, 1))


def _overlaps(low: NDArray[np.float64], high: NDArray[np.float64]) -> int:
    """Count pairs of intervals that overlap: all but those where one ends before the other."""
    ended = np.searchsorted(np.sort(high), low, side="left")
    return int(len(low) * (len(low) - 1) // 2 - ended.sum())


def _first(is_faulty: NDArray[np.bool_], names: Sequence[str] | None) -> str:
    """How a message names the first faulty region."""
    return region_text(int(np.argmax(is_faulty)), names)
