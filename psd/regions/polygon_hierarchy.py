"""Hierarchies of regions of tables of polygons, and parents of their regions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd._util.instances import check_choice, shown
from psd.errors import DomainError, ParameterError
from psd.regions.hierarchy import RegionHierarchy, RegionLevel, check_ids, id_texts
from psd.regions.kinds.polygons import (
    PolygonRegions,
    check_overlaps,
    default_tolerance,
    gap_between,
    is_wide,
    share_sides,
)
from psd.space.domain import Domain
from psd.space.even_odd import EdgeIndex
from psd.space.region_tree import ELSEWHERE
from psd.space.regions import to_release_crs

if TYPE_CHECKING:
    import geopandas

    from psd.space.boundary import Boundary

__all__ = ["ELSEWHERE"]


def parents_by_columns(
    table: geopandas.GeoDataFrame, column: str, ids: list[str], parents: Sequence[str]
) -> tuple[tuple[RegionLevel, ...], Integers]:
    """Levels of a table whose columns name the regions above, and rows (n,) of the lowest."""
    names, texts, parent = [column], [ids], []
    number = np.arange(len(ids))
    for name in parents:
        if name not in table.columns or name in names:
            raise ParameterError(
                f"parents must be another column of the regions, got {str(name)[:80]!r}"
            )
        above = id_texts(table[name], name)
        # Regions above, in the order in which the table first names them.
        unique = list(dict.fromkeys(above))
        check_ids(unique, name)
        position = {text: index for index, text in enumerate(unique)}
        parent_of_row = np.array([position[text] for text in above])
        # Parent of each region, of rows that name both; refused where rows differ.
        first = np.zeros(len(texts[-1]), np.int64)
        first[number[::-1]] = parent_of_row[::-1]
        twice = first[number] != parent_of_row
        if twice.any():
            row = int(twice.argmax())
            a, b = unique[first[number[row]]][:80], unique[parent_of_row[row]][:80]
            raise ParameterError(
                f"region {texts[-1][number[row]][:80]!r} of level {names[-1]} must have one "
                f"parent, got {a!r} and {b!r}; do two regions have the same id?"
            )
        parent.append(first)
        number = parent_of_row
        names.append(name)
        texts.append(unique)
    return order_levels(names[::-1], texts[::-1], parent[::-1])


def parents_by_area(
    shapes: list[NDArray[np.object_]], ids: list[list[str]], tolerance: float
) -> list[Integers]:
    """Parent of each region, from the second level on: the one that contains it to a tolerance."""
    import shapely

    parents = []
    for (upper, above), (lower, names) in pairwise(zip(shapes, ids, strict=True)):
        child, parent = shapely.STRtree(upper).query(lower, predicate="intersects")
        common = shapely.area(shapely.intersection(lower[child], upper[parent]))
        # Of each region, what has most of it comes first, of equals the earlier one. Written last
        # to first, the first one stays.
        order = np.lexsort((parent, -common, child))
        child, parent = child[order], parent[order]
        best = np.full(len(lower), -1)
        best[child[::-1]] = parent[::-1]
        if (best < 0).any():
            text = names[int((best < 0).argmax())][:80]
            raise ParameterError(
                f"region {text!r} must lie in a region of the level above, got none"
            )
        crossing = is_wide(shapely.difference(lower, upper[best]), tolerance)
        if crossing.any():
            number = int(crossing.argmax())
            others = parent[(child == number) & (parent != best[number])]
            main = above[best[number]][:80]
            beside = repr(above[others[0]][:80]) if len(others) else "no region"
            raise ParameterError(
                f"regions must nest, but {names[number][:80]!r} crosses from {main!r} "
                f"into {beside} ({int(crossing.sum()):,} of {len(lower):,} regions cross); make "
                "two releases, or take the intersections as lowest regions"
            )
        childless = np.setdiff1d(np.arange(len(upper)), best)
        if len(childless):
            text = above[childless[0]][:80]
            raise ParameterError(f"region {text!r} must have a region of the level below, got none")
        parents.append(best.astype(np.int64))
    return parents


def order_levels(
    names: Sequence[str], ids: Sequence[Sequence[str]], parents: Sequence[Integers]
) -> tuple[tuple[RegionLevel, ...], Integers]:
    """Levels whose parents never decrease, else in the order of the input; rows of the lowest."""
    levels = []
    order: Integers = np.arange(len(ids[0]))
    parent = np.zeros(len(order), np.int64)
    for number, (name, texts) in enumerate(zip(names, ids, strict=True)):
        if number:
            # Parents of this level as they are numbered once the level above is sorted.
            new_number = np.empty(len(order), np.int64)
            new_number[order] = np.arange(len(order))
            above = new_number[parents[number - 1]]
            # Stable, so children of one parent keep their order.
            order = np.argsort(above, kind="stable")
            parent = above[order]
        sorted_ids = tuple(texts[index] for index in order.tolist())
        levels.append(RegionLevel(name=name, ids=sorted_ids, parent=parent.astype(np.int32)))
    return tuple(levels), order


MAX_POLYGONS = 2**18
"""Limit of the polygons of the lowest level."""

# Of all polygons together: 16 bytes each, and about 200 in the index of their sides.
_MAX_VERTICES = 2**24

# Regions in files are repaired where the caller chooses that.
_ADVICE = "repair it first, or pass repair=True"

_GAPS = ("refuse", "elsewhere", "outside")


def hierarchy_from_polygons(
    tables: geopandas.GeoDataFrame | Sequence[geopandas.GeoDataFrame],
    domain: Domain,
    *,
    ids: str | Sequence[str],
    parents: Sequence[str] = (),
    boundary: Boundary | None = None,
    tolerance: float | None = None,
    gaps: str = "refuse",
) -> RegionHierarchy:
    """Make a hierarchy of polygons of a table, or of tables of several levels, top first."""
    import shapely

    several = [tables] if hasattr(tables, "columns") else list(tables)
    columns = [ids] * len(several) if isinstance(ids, str) else list(ids)
    check_choice("gaps", gaps, _GAPS)
    if not several or len(columns) != len(several) or (parents and len(several) > 1):
        raise ParameterError(
            "regions must be one table, with parents= for levels above, or a table of each level, "
            "with a column of ids for each"
        )
    if tolerance is None:
        tolerance = default_tolerance(domain)
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < np.inf):
        raise ParameterError(f"tolerance must be a length, 0 or above, got {shown(tolerance)}")
    texts = [_ids(*pair) for pair in zip(several, columns, strict=True)]
    shapes = [_polygons(*pair, domain) for pair in zip(several, texts, strict=True)]
    for polygons, level_ids in zip(shapes, texts, strict=True):
        _check_inside(polygons, level_ids, domain)
    if len(several) == 1:
        levels, order = parents_by_columns(several[0], columns[0], texts[0], parents)
    else:
        parent = parents_by_area(shapes, texts, tolerance)
        # Columns of one name are told apart by the number of their level.
        names = columns
        if len(set(columns)) < len(columns):
            names = [f"{column} {number}" for number, column in enumerate(columns, 1)]
        levels, order = order_levels(names, texts, parent)
    polygons = shapes[-1][order]
    area = shapely.box(*domain.bounds)  # what regions must cover
    if boundary is not None:
        area = boundary.shape.intersection(area)
    overlaps, overlap = check_overlaps(polygons, levels[-1].ids, tolerance)
    gap = gap_between(polygons, area, tolerance, overlap)
    if gap is not None and gaps == "refuse":
        raise ParameterError(
            f"regions must cover the {'bounds' if boundary is None else 'boundary'}, got "
            f'{gap.area / area.area:.2%} of the area in no region; pass gaps="elsewhere" to count '
            'it as one region, gaps="outside" to leave its records out, or a boundary'
        )
    # Where neighbours share their sides, no record lies between them; else a margin takes it.
    sides = EdgeIndex.from_polygons(polygons)
    shared = share_sides(polygons, sides, domain, tolerance)
    elsewhere = gap is not None and gaps == "elsewhere"
    if elsewhere:
        polygons, levels = np.append(polygons, gap), _with_elsewhere(levels)
    geometry = PolygonRegions(
        domain=domain,
        polygons=polygons,
        margin=0.0 if shared else tolerance,
        elsewhere=elsewhere,
        overlaps=overlaps,
    )
    if not elsewhere:
        vars(geometry)["_sides"] = sides
    return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)


def _polygons(table: geopandas.GeoDataFrame, ids: list[str], domain: Domain) -> NDArray[np.object_]:
    """Polygons of a table in the CRS of the domain."""
    import shapely

    shapes = table.geometry
    if not 0 < len(shapes) <= MAX_POLYGONS:
        raise ParameterError(f"regions must be 1 to {MAX_POLYGONS:,} polygons, got {len(shapes):,}")
    vertices = int(shapely.get_num_coordinates(shapes.array).sum())
    if vertices > _MAX_VERTICES:
        raise ParameterError(
            f"regions must have at most {_MAX_VERTICES:,} vertices together, got {vertices:,}; "
            "simplify them"
        )
    polygons = to_release_crs(shapes, domain, _ADVICE, ids)
    return np.asarray(shapely.force_2d(polygons), dtype=object)


def _ids(table: geopandas.GeoDataFrame, column: str) -> list[str]:
    """Ids of a table, which must have a CRS."""
    if table.geometry.crs is None:
        raise DomainError(
            "regions have no CRS; assign it (set_crs, or in your GIS), since it is never guessed"
        )
    columns = [str(name) for name in table.columns if name != table.geometry.name]
    if column not in columns:
        raise ParameterError(
            f"ids must be a column of the regions ({', '.join(columns)[:200] or 'none'}), "
            f"got {str(column)[:80]!r}"
        )
    ids = id_texts(table[column], column)
    check_ids(ids, column)
    return ids


def _check_inside(polygons: NDArray[np.object_], ids: list[str], domain: Domain) -> None:
    """Refuse regions without an area inside the bounds."""
    import shapely

    bounds = shapely.box(*domain.bounds)
    shapely.prepare(bounds)
    outside = ~shapely.intersects(bounds, polygons) | shapely.touches(bounds, polygons)
    if outside.any():
        number = int(outside.argmax())
        raise DomainError(
            f"region {ids[number][:80]!r} lies outside the bounds ({int(outside.sum()):,} of "
            f"{len(ids):,} do); remove them, or widen the bounds"
        )


def _with_elsewhere(levels: tuple[RegionLevel, ...]) -> tuple[RegionLevel, ...]:
    """Levels with one more region at the end of each."""
    extended = []
    above = 0
    for level in levels:
        if ELSEWHERE in level.ids:
            raise ParameterError(f"ids of level {level.name} must not be {ELSEWHERE!r}")
        parent = np.append(level.parent, above).astype(np.int32)
        extended.append(RegionLevel(name=level.name, ids=(*level.ids, ELSEWHERE), parent=parent))
        above = len(level)
    return tuple(extended)
