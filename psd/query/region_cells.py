"""Covered shares of the cells of a region tree, whose boxes are clipped to their regions.

A cell that lies inside its region, or that a query covers or misses altogether, is measured by its
box. Of a cell that the outline of its region cuts, only the part inside its region counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.query.traversal import Fraction
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["RegionPieces", "clipped_share", "is_clipped", "region_box_fraction"]

# Shares of a piece below which, and above one less which, it is taken as missed or covered:
# outlines that a query has in common with a region differ by rounding.
_ROUNDING = 1e-9

_TINY = 1e-300


def region_box_fraction(tree: RegionTree, boxes: Floats) -> Fraction:
    """Measure covered shares of nodes by boxes; records lie evenly in the part inside a region.

    boxes: (m, 4) float64, lattice units, clipped to the lattice.
    """

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        cell, box = tree.boxes[node].astype(np.float64), boxes[query]
        part = np.concatenate(
            [np.maximum(cell[:, :2], box[:, :2]), np.minimum(cell[:, 2:], box[:, 2:])], axis=1
        )
        sides = np.maximum(part[:, 2:] - part[:, :2], 0.0)
        area: Floats = (sides / (cell[:, 2:] - cell[:, :2])).prod(axis=1)
        cut = (area > 0) & (area < 1)
        opened = cut & ~tree.is_leaf[node]
        area[opened] = 0.5  # any share between 0 and 1 opens a cell
        clipped = np.flatnonzero(cut & ~opened)
        area[clipped] = clipped_share(tree, node[clipped], part[clipped], area[clipped])
        return area, area

    return fraction


def clipped_share(tree: RegionTree, node: Integers, part: Floats, share: Floats) -> Floats:
    """Share of the area of leaves inside their regions that lies in parts of their boxes.

    node: (n,) int64, leaves; part: (n, 4) float64, parts of their boxes in lattice units; share:
    (n,) float64, of each box in its part: the answer for a leaf that is not clipped; returns (n,)
    float64.
    """
    clipped = np.flatnonzero(is_clipped(tree, node))
    leaf, result = node[clipped], share.copy()
    inside = tree.regions.clipped_area(tree.region[leaf], part[clipped])
    total = tree.clipped_area[leaf]
    measured = inside / np.maximum(total, _TINY)
    result[clipped] = _settle(np.where(total > 0, measured, share[clipped]))
    return result


def is_clipped(tree: RegionTree, node: Integers) -> NDArray[np.bool_]:
    """Which cells are not altogether inside their region."""
    clipped: NDArray[np.bool_] = tree.clipped_area[node] < tree.area[node] * (1 - _ROUNDING)
    return clipped


class RegionPieces:
    """Polygons of the cells that are clipped, each made once."""

    def __init__(self, tree: RegionTree, domain: Domain) -> None:
        self._tree, self._domain = tree, domain
        self._regions = tree.region_shapes
        self._pieces: dict[int, Any] = {}

    def shares(self, shapes: NDArray[np.object_], query: Integers, node: Integers) -> Floats:
        """Share of each cell inside its region that a polygon covers.

        shapes: (m,), in the CRS of the release; query, node: (n,) int64, pairs of a query and a
        leaf that is clipped; returns (n,) float64.
        """
        import shapely

        self._make(np.unique(node))
        pieces = np.array([self._pieces[leaf] for leaf in node.tolist()], dtype=object)
        area = shapely.area(pieces)
        inside = shapely.area(shapely.intersection(pieces, shapes[query]))
        return _settle(inside / np.maximum(area, _TINY))

    def _make(self, nodes: Integers) -> None:
        """Cut the pieces of cells that were not measured before."""
        import shapely

        fresh = np.array([node for node in nodes.tolist() if node not in self._pieces], np.int64)
        boxes = shapely.box(*self._domain.from_lattice(self._tree.boxes[fresh]).T)
        cut = shapely.intersection(self._regions[self._tree.region[fresh]], boxes)
        self._pieces.update(zip(fresh.tolist(), cut.tolist(), strict=True))


def _settle(share: Floats) -> Floats:
    """Shares in [0, 1], those near an end moved to it."""
    return np.where(share < _ROUNDING, 0.0, np.where(share > 1 - _ROUNDING, 1.0, share))
