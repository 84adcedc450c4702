"""The cells that the answers to a few boxes depend on, beside sums over all cells.

An answer needs the counts of the cells that its box meets, and how the records lie in the leaves
that it cuts. A smooth density in a leaf depends on the leaves around it, one leaf's width away for
each pass of the smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, distinct_values
from psd.estimation.constants import DENSITY_RASTER, SMOOTHING_PASSES
from psd.estimation.density import RasterWindow, raster_scale
from psd.estimation.sibling_splits import children_of
from psd.space.box_tree import Tree

__all__ = ["NearZone", "near_zone"]

# Leaves around those that boxes cut, beside all nodes, above which a fit of all is as fast.
_LIMIT = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearZone:
    """Cells near some boxes.

    Parameters
    ----------
    opened : ndarray, shape (n,), int64
        Nodes whose children need a count, with all of their ancestors.
    passes : tuple of (ndarray, RasterWindow)
        Leaves that have mass around those of the next pass of the smoothing, and a window with
        their surroundings; empty without a smooth density, and where no leaf is cut.
    """

    opened: Integers
    passes: tuple[tuple[Integers, RasterWindow], ...]


def near_zone(
    tree: Tree, lattice: tuple[int, int], boxes: Floats, *, smooth: bool
) -> NearZone | None:
    """Find the cells near some boxes; None if they are very many.

    Parameters
    ----------
    tree : Tree
        Cells.
    lattice : tuple of int
        Columns and rows of the lattice.
    boxes : ndarray, shape (m, 4), float64
        In lattice units.
    smooth : bool
        Whether the density inside the leaves is smooth.
    """
    opened, cut = _cut_cells(tree, boxes)
    passes: list[tuple[Integers, RasterWindow]] = []
    scale = raster_scale(lattice)
    for _ in range(SMOOTHING_PASSES if smooth and len(cut) else 0):
        around = _surroundings(tree.boxes[cut] * scale)
        inner, cut = _cells_on(tree, scale, around)
        if len(cut) > _LIMIT * len(tree):
            return None
        opened = _distinct(np.concatenate([opened, inner]))
        (west, south), (east, north) = around[:, :2].min(axis=0), around[:, 2:].max(axis=0)
        passes.append((cut, (int(west), int(south), int(east), int(north))))
    return NearZone(opened=opened, passes=tuple(reversed(passes)))


def _surroundings(boxes: Floats) -> Integers:
    """Raster lines around the windows from which the parts of boxes take their density."""
    half = (boxes[:, 2:] - boxes[:, :2]) / 2
    low, high = np.floor(boxes[:, :2] - half), np.ceil(boxes[:, 2:] + half)
    lines: Integers = np.concatenate([low, high], axis=1).astype(np.int64)
    return np.clip(lines, 0, DENSITY_RASTER)


def _cut_cells(tree: Tree, boxes: Floats) -> tuple[Integers, Integers]:
    """Inner nodes, and leaves, that boxes meet and do not contain."""
    box, node = np.arange(len(boxes)), np.zeros(len(boxes), np.int64)
    opened, leaves = [node[:0]], [node[:0]]
    while len(box):
        cell, query = tree.boxes[node], boxes[box]
        low, high = cell[:, :2], cell[:, 2:]
        met = ((low < query[:, 2:]) & (high > query[:, :2])).all(axis=1)
        cut = np.flatnonzero(met & ((query[:, :2] > low) | (query[:, 2:] < high)).any(axis=1))
        box, node = box[cut], node[cut]
        is_leaf = tree.is_leaf[node]
        leaves.append(node[is_leaf])
        opened.append(node[~is_leaf])
        node, owner = children_of(tree, node[~is_leaf])
        box = box[~is_leaf][owner]
    return _distinct(np.concatenate(opened)), _distinct(np.concatenate(leaves))


def _distinct(nodes: Integers) -> Integers:
    """Distinct nodes in ascending order."""
    return nodes[distinct_values(nodes)[0]]


def _cells_on(tree: Tree, scale: Floats, around: Integers) -> tuple[Integers, Integers]:
    """Inner nodes, and leaves, less than a cell of the raster from parts of the raster."""
    sums, (west, south) = _summed_cover(around), around[:, :2].min(axis=0)
    rows, columns = sums.shape[0] - 1, sums.shape[1] - 1
    node, opened, leaves = np.zeros(1, np.int64), [], []
    while len(node):
        cell = tree.boxes[node] * scale
        # Thin strips of leaves are widened to a cell of the raster.
        x0, x1 = (
            np.clip(line - west, 0, columns).astype(np.int64)
            for line in (np.floor(cell[:, 0]) - 1, np.ceil(cell[:, 2]) + 1)
        )
        y0, y1 = (
            np.clip(line - south, 0, rows).astype(np.int64)
            for line in (np.floor(cell[:, 1]) - 1, np.ceil(cell[:, 3]) + 1)
        )
        met = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0] > 0
        node = node[met]
        is_leaf = tree.is_leaf[node]
        leaves.append(node[is_leaf])
        opened.append(node[~is_leaf])
        node, _ = children_of(tree, node[~is_leaf])
    return np.concatenate(opened), np.concatenate(leaves)


def _summed_cover(around: Integers) -> NDArray[np.int32]:
    """Number of covered raster cells south and west of each line of the window of some parts."""
    (west, south), (east, north) = around[:, :2].min(axis=0), around[:, 2:].max(axis=0)
    cover = np.zeros((int(north - south) + 1, int(east - west) + 1), np.int32)
    x0, y0, x1, y1 = (around - [west, south, west, south]).T
    for row, column, sign in ((y0, x0, 1), (y0, x1, -1), (y1, x0, -1), (y1, x1, 1)):
        np.add.at(cover, (row, column), np.int32(sign))
    for axis in (0, 1):
        np.cumsum(cover, axis=axis, out=cover)
    sums = np.zeros_like(cover)
    sums[1:, 1:] = cover[:-1, :-1] > 0
    for axis in (0, 1):
        np.cumsum(sums, axis=axis, out=sums)
    return sums
