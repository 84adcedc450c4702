"""Parents of regions: by columns of a table, or by the polygons of the level above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.errors import ParameterError
from psd.regions.cover import is_wide
from psd.regions.hierarchy import RegionLevel
from psd.regions.ids import check_ids, id_texts

if TYPE_CHECKING:
    import geopandas

__all__ = ["order_levels", "parents_by_area", "parents_by_columns"]


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
        unique = list(dict.fromkeys(above))
        check_ids(unique, name)
        position = {text: index for index, text in enumerate(unique)}
        parent_of_row = np.array([position[text] for text in above])
        parent.append(_one_parent(number, parent_of_row, texts[-1], unique, names[-1]))
        number = parent_of_row
        names.append(name)
        texts.append(unique)
    return order_levels(names[::-1], texts[::-1], parent[::-1])


def _one_parent(
    child: Integers, parent: Integers, ids: list[str], above: list[str], level: str
) -> Integers:
    """Parent of each region, of rows that name both; refused where rows differ."""
    first = np.zeros(len(ids), np.int64)
    first[child[::-1]] = parent[::-1]
    twice = first[child] != parent
    if twice.any():
        row = int(twice.argmax())
        a, b = above[first[child[row]]][:80], above[parent[row]][:80]
        raise ParameterError(
            f"region {ids[child[row]][:80]!r} of level {level} must have one parent, got {a!r} and "
            f"{b!r}; do two regions have the same id?"
        )
    return first


def parents_by_area(
    shapes: list[NDArray[np.object_]], ids: list[list[str]], tolerance: float
) -> list[Integers]:
    """Parent of each region, from the second level on: the one that contains it to a tolerance."""
    return [
        _containing(shapes[level], shapes[level - 1], ids[level], ids[level - 1], tolerance)
        for level in range(1, len(shapes))
    ]


def _containing(
    lower: NDArray[np.object_],
    upper: NDArray[np.object_],
    ids: list[str],
    above: list[str],
    tolerance: float,
) -> Integers:
    """Region above that contains each region."""
    import shapely

    child, parent = shapely.STRtree(upper).query(lower, predicate="intersects")
    common = shapely.area(shapely.intersection(lower[child], upper[parent]))
    # Of each region, what has most of it comes first, of equals the earlier one. Written last to
    # first, the first one stays.
    order = np.lexsort((parent, -common, child))
    child, parent = child[order], parent[order]
    best = np.full(len(lower), -1)
    best[child[::-1]] = parent[::-1]
    if (best < 0).any():
        text = ids[int((best < 0).argmax())][:80]
        raise ParameterError(f"region {text!r} must lie in a region of the level above, got none")
    crossing = is_wide(shapely.difference(lower, upper[best]), tolerance)
    if crossing.any():
        number = int(crossing.argmax())
        others = parent[(child == number) & (parent != best[number])]
        main = above[best[number]][:80]
        beside = repr(above[others[0]][:80]) if len(others) else "no region"
        raise ParameterError(
            f"regions must nest, but {ids[number][:80]!r} crosses from {main!r} "
            f"into {beside} ({int(crossing.sum()):,} of {len(lower):,} regions cross); make two "
            "releases, or take the intersections as lowest regions"
        )
    childless = np.setdiff1d(np.arange(len(upper)), best)
    if len(childless):
        text = above[childless[0]][:80]
        raise ParameterError(f"region {text!r} must have a region of the level below, got none")
    return best.astype(np.int64)


def order_levels(
    names: Sequence[str], ids: Sequence[Sequence[str]], parents: Sequence[Integers]
) -> tuple[tuple[RegionLevel, ...], Integers]:
    """Levels whose parents never decrease, else in the order of the input; rows of the lowest."""
    levels = []
    order: Integers = np.arange(len(ids[0]))
    parent = np.zeros(len(order), np.int64)
    for number, (name, texts) in enumerate(zip(names, ids, strict=True)):
        if number:
            new_number = np.empty(len(order), np.int64)
            new_number[order] = np.arange(len(order))
            above = new_number[parents[number - 1]]
            # Stable, so children of one parent keep their order.
            order = np.argsort(above, kind="stable")
            parent = above[order]
        sorted_ids = tuple(texts[index] for index in order.tolist())
        levels.append(RegionLevel(name=name, ids=sorted_ids, parent=parent.astype(np.int32)))
    return tuple(levels), order
