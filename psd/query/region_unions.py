"""Polygons that are unions of named regions: answered from their nodes, not from cells.

Polygons from another file or CRS differ from the regions that they mean by a little area along
their outlines. Up to a tolerance the polygon is the union of these regions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.query.region_nodes import member_fraction
from psd.query.traversal import Fraction
from psd.space.region_tree import RegionTree

__all__ = ["TOLERANCE", "find_unions", "with_unions"]

TOLERANCE = 0.001
"""Share of the area of a polygon, and of that of each region, up to which they may differ."""

# Regions across the outline of a polygon that are cut first; one of them refutes most polygons.
_FIRST_PAIRS = 4


def with_unions(tree: RegionTree, shapes: NDArray[np.object_], cells: Fraction) -> Fraction:
    """Measure covered shares of polygons; those that are unions of regions cut no cell.

    shapes: (m,), in the CRS of the release; `cells` measures the others.
    """
    is_union, query, region = find_unions(tree, shapes)
    if not is_union.any():
        return cells
    regions = member_fraction(tree, query, region)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        share, area = np.empty(len(query)), np.empty(len(query))
        for chosen, measure in ((is_union[query], regions), (~is_union[query], cells)):
            pairs = np.flatnonzero(chosen)
            if len(pairs):
                share[pairs], area[pairs] = measure(query[pairs], node[pairs])
        return share, area

    return fraction


def find_unions(
    tree: RegionTree, shapes: NDArray[np.object_]
) -> tuple[NDArray[np.bool_], Integers, Integers]:
    """Find the polygons that are unions of lowest regions, and these regions.

    shapes: (m,), valid, in the CRS of the release; returns whether each is a union, (m,) bool, and
    the pairs of a polygon and a lowest region, (n,) int64 twice.

    P1. The area in which a union differs from its polygon is at most `TOLERANCE` of the polygon,
    and in each region at most `TOLERANCE` of the region. Areas in no region have no records and are
    not compared.
    """
    import shapely

    shapely.prepare(shapes)
    query, region = tree.region_index.query(shapes, predicate="intersects")
    inside = shapely.covers(shapes[query], tree.region_shapes[region])
    differs, is_union = np.zeros(len(shapes)), np.ones(len(shapes), bool)
    limit = TOLERANCE * shapely.area(shapes)
    for pairs in _rounds(query, np.flatnonzero(~inside)):
        pairs = pairs[is_union[query[pairs]]]
        area = shapely.area(tree.region_shapes[region[pairs]])
        common = shapely.intersection(tree.region_shapes[region[pairs]], shapes[query[pairs]])
        covered = shapely.area(common)
        inside[pairs] = covered > area / 2
        wrong = np.minimum(covered, np.maximum(area - covered, 0.0))
        is_union[query[pairs[wrong > TOLERANCE * area]]] = False
        differs += sum_by(query[pairs], wrong, len(shapes))
        is_union &= differs <= limit
    member = np.flatnonzero(inside & is_union[query])
    return is_union, query[member], region[member]


def _rounds(query: Integers, pairs: Integers) -> tuple[Integers, Integers]:
    """A few pairs of each query, and the other ones."""
    pairs = pairs[np.argsort(query[pairs], kind="stable")]
    ordered = query[pairs]
    number = np.arange(len(pairs)) - np.searchsorted(ordered, ordered)
    return pairs[number < _FIRST_PAIRS], pairs[number >= _FIRST_PAIRS]
