"""Polygons brought to the CRS of a release: what is refused, and before what it is judged.

Sizes are judged first, by counting alone, so that nothing reaches GEOS that keeps it busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import sum_by
from psd.errors import DomainError, ParameterError
from psd.space.crs import transforming

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = [
    "MAX_OUTLINE_LENGTHS",
    "MAX_PAIRS",
    "MAX_VERTICES",
    "SEGMENTS",
    "in_crs",
    "outline_lengths",
    "to_release_crs",
]

SEGMENTS = 1000
"""A straight line in one CRS is a curve in another; so many segments per domain follow it."""

MAX_VERTICES = 500_000
"""Vertices of a polygon, also after its lines are divided."""

MAX_PAIRS = 100_000_000
"""Pairs of sides that lie above or beside each other, with which the time of GEOS grows."""

MAX_OUTLINE_LENGTHS = 1000
"""Length of an outline inside the domain, in widths or heights of it: every cell that it passes
is visited."""

# So few sides cannot make so many pairs.
_FEW_VERTICES = 14_000

_POLYGONS = (3, 6)


def to_release_crs(shapes: geopandas.GeoSeries, domain: Domain) -> NDArray[np.object_]:
    """Shapes in the CRS of the domain, all of them valid polygons.

    Guarantees
    ----------
    - A polygon that is not valid is refused with the reason, never repaired.
    - A polygon that would keep GEOS busy for seconds is refused by its size before.

    Parameters
    ----------
    shapes : GeoSeries
        Geometries with a CRS.
    domain : Domain
        Of the release.

    Returns
    -------
    ndarray of geometries, shape (n,)

    Raises
    ------
    ParameterError
        Naming the first region that is refused, and why.
    DomainError
        If a region cannot be expressed in the CRS of the domain.

    Notes
    -----
    Heights play no part. Lines are divided at 1/`SEGMENTS` of the domain before their vertices
    are brought to another CRS, and what comes of it is judged again.
    """
    import shapely

    own = np.asarray(shapes.array, dtype=object)
    _check(own)
    if _same(shapes.crs, domain):
        _check_lengths(own, domain)
        return own
    moved = in_crs(shapes, domain)
    finite = np.isfinite(shapely.bounds(moved)).all(axis=1)
    if not finite.all():
        raise DomainError(f"region {_first(~finite)} cannot be expressed in {domain.crs}")
    if domain.geographic:
        _check_antimeridian(moved)
    _check(moved, " in the CRS of the release")
    _check_lengths(moved, domain)
    return moved


def outline_lengths(shapes: NDArray[np.object_], domain: Domain) -> NDArray[np.float64]:
    """Lengths of outlines inside the domain, across in widths of it and along in heights.

    Parameters
    ----------
    shapes : ndarray of geometries, shape (n,)
        Polygons in the CRS of the domain.
    domain : Domain
        Of the release.

    Returns
    -------
    ndarray, shape (n,), float64
        An oblique line that leaves the domain may count for more than its part inside.
    """
    import shapely

    places, owner = shapely.get_coordinates(shapes, return_index=True)
    rings = shapely.get_rings(shapely.get_parts(shapes))
    _, ring = shapely.get_coordinates(rings, return_index=True)
    low, high = np.minimum(places[1:], places[:-1]), np.maximum(places[1:], places[:-1])
    inside = np.minimum(high, domain.bounds[2:]) - np.maximum(low, domain.bounds[:2])
    there = (ring[1:] == ring[:-1]) & (inside >= 0).all(axis=1)
    length = (inside / (domain.width, domain.height)).sum(axis=1)
    return sum_by(owner[1:][there], length[there], len(shapes))


def _check_lengths(shapes: NDArray[np.object_], domain: Domain) -> None:
    """Refuse outlines that wind through too many cells."""
    lengths = outline_lengths(shapes, domain)
    if (lengths > MAX_OUTLINE_LENGTHS).any():
        number = _first(lengths > MAX_OUTLINE_LENGTHS)
        raise ParameterError(
            f"region {number} has an outline inside the domain that is {lengths[number - 1]:,.0f} "
            f"times as long as the domain is wide, above {MAX_OUTLINE_LENGTHS:,}; simplify it"
        )


def in_crs(shapes: geopandas.GeoSeries, domain: Domain) -> NDArray[np.object_]:
    """Shapes in the CRS of the domain, by their vertices after their lines are divided.

    Raises
    ------
    ParameterError
        If that makes too many vertices of a shape.
    """
    import geopandas as gpd
    import shapely

    if _same(shapes.crs, domain):
        return np.asarray(shapes.array, dtype=object)
    with transforming("the bounds of the release", "the CRS of the regions"):
        step = _segment_length(shapes, domain)
    vertices = shapely.get_num_coordinates(shapes.array) + shapely.length(shapes.array) / step
    if (vertices > MAX_VERTICES).any():
        number = _first(vertices > MAX_VERTICES)
        raise ParameterError(
            f"region {number} would have {vertices[number - 1]:,.0f} vertices, above "
            f"{MAX_VERTICES:,}, once its lines are divided at 1/{SEGMENTS} of the domain; "
            "simplify it, or bring it to the CRS of the release"
        )
    divided = gpd.GeoSeries(shapely.segmentize(shapes.array, step), crs=shapes.crs)
    with transforming("a region", domain.crs):
        return np.asarray(divided.to_crs(domain.crs).array, dtype=object)


def _same(crs: Any, domain: Domain) -> bool:
    """Whether a CRS is that of the domain; x stands before y here, whatever it says."""
    return bool(crs.equals(domain.crs, ignore_axis_order=True))


def _segment_length(shapes: geopandas.GeoSeries, domain: Domain) -> float:
    """1/1000 of the domain, in units of the shapes' CRS."""
    from pyproj import Transformer

    there = Transformer.from_crs(domain.crs, shapes.crs, always_xy=True)
    west, south, east, north = there.transform_bounds(*domain.bounds)
    length = max(abs(east - west), abs(north - south)) / SEGMENTS
    if not np.isfinite(length) or length <= 0:
        raise DomainError("the bounds of the release cannot be expressed in the CRS of the regions")
    return float(length)


def _check(shapes: NDArray[np.object_], where: str = "") -> None:
    """Refuse what is no polygon, then what is too large, then what is not valid."""
    import shapely

    _check_kinds(shapes)
    _check_sizes(shapes)
    invalid = ~shapely.is_valid(shapes)
    if invalid.any():
        number = _first(invalid)
        reason = shapely.is_valid_reason(shapes[number - 1])
        raise ParameterError(f"region {number} is not valid{where} ({reason}); repair it first")


def _check_kinds(shapes: NDArray[np.object_]) -> None:
    """Refuse what is no polygon, or an empty one."""
    import shapely

    kinds = shapely.get_type_id(shapes)
    other = ~np.isin(kinds, _POLYGONS)
    if other.any():
        shape = shapes[_first(other) - 1]
        named = "missing" if shape is None else shape.geom_type
        raise ParameterError(f"region {_first(other)} is {named}; queries take polygons")
    empty = shapely.is_empty(shapes)
    if empty.any():
        raise ParameterError(f"region {_first(empty)} is an empty polygon")


def _check_sizes(shapes: NDArray[np.object_]) -> None:
    """Refuse what GEOS should not see: too many vertices or pairs of sides, or no numbers."""
    import shapely

    vertices = shapely.get_num_coordinates(shapes)
    if (vertices > MAX_VERTICES).any():
        number = _first(vertices > MAX_VERTICES)
        raise ParameterError(
            f"region {number} has {vertices[number - 1]:,} vertices, above {MAX_VERTICES:,}; "
            "simplify it, or divide it"
        )
    places, owner = shapely.get_coordinates(shapes, return_index=True)
    lost = owner[~np.isfinite(places).all(axis=1)]
    if len(lost):
        raise ParameterError(f"region {lost[0] + 1} has a coordinate that is not a finite number")
    for index in np.flatnonzero(vertices > _FEW_VERTICES):
        _check_abreast(int(index) + 1, shapes[index])


def _check_abreast(number: int, shape: Any) -> None:
    """Refuse a polygon whose sides are too entangled for GEOS."""
    import shapely

    abreast = _abreast(shape)
    if abreast > MAX_PAIRS:
        raise ParameterError(
            f"region {number} has {shapely.get_num_coordinates(shape):,} vertices with {abreast:,} "
            f"pairs of sides abreast, above {MAX_PAIRS:,}; simplify it, or divide it"
        )


def _abreast(shape: Any) -> int:
    """Pairs of sides whose ranges overlap, along x or along y, whichever are fewer."""
    import shapely

    rings = shapely.get_rings(shapely.get_parts(shape))
    places, ring = shapely.get_coordinates(rings, return_index=True)
    along = ring[1:] == ring[:-1]
    low = np.minimum(places[1:], places[:-1])[along]
    high = np.maximum(places[1:], places[:-1])[along]
    return min(_overlaps(low[:, axis], high[:, axis]) for axis in (0, 1))


def _overlaps(low: NDArray[np.float64], high: NDArray[np.float64]) -> int:
    """Pairs of intervals that meet: all but those where one ends before the other begins."""
    ended = np.searchsorted(np.sort(high), low, side="left")
    return int(len(low) * (len(low) - 1) // 2 - ended.sum())


def _check_antimeridian(shapes: NDArray[np.object_]) -> None:
    """Refuse lines that jump to the other end of the degrees."""
    import shapely

    parts, shape = shapely.get_parts(shapes, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    places, ring = shapely.get_coordinates(rings, return_index=True)
    jump = (np.abs(np.diff(places[:, 0])) > 180) & (ring[1:] == ring[:-1])
    if jump.any():
        number = int(shape[part[ring[np.argmax(jump)]]]) + 1
        raise ParameterError(
            f"region {number} crosses the antimeridian, where longitude goes from 180 to -180; "
            "split it into two polygons"
        )


def _first(found: NDArray[np.bool_]) -> int:
    """Number of the first region found, counted from 1."""
    return int(np.argmax(found)) + 1
