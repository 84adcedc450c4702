"""Leaves that form a table of rows and columns: estimates by four look-ups for any size.

References
----------
.. [1] Crow. "Summed-Area Tables for Texture Mapping." SIGGRAPH 1984.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.estimation.density import PARTS, Density, SmoothDensity
from psd.query.constants import MAX_MESH_CELLS
from psd.space.box_tree import Tree

__all__ = ["Mesh", "leaf_mesh"]

# Queries looked up together, so that what is worked out for them stays near the processor.
_BOXES_PER_BATCH = 2**14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mesh:
    """Rows and columns of leaves, each of parts of even density."""

    x: Floats  # (columns + 1,) float64; lattice lines between the columns
    y: Floats  # (rows + 1,) float64; lattice lines between the rows
    # (rows, columns) int64; node numbers; rows from the south, columns from the west.
    leaf: NDArray[np.int64]
    # (rows, columns, parts, parts) float64; share of each leaf's count in each of its parts.
    share: Floats

    def table(self, values: Floats) -> Floats:
        """Sum of the values of leaves south and west of every line, the lines of parts included.

        values: (nodes,) float64, of which those of leaves are read; returns (rows parts + 1,
        columns parts + 1) float64.
        """
        rows, columns, parts, _ = self.share.shape
        cells = values[self.leaf][:, :, None, None] * self.share
        sums = np.zeros((rows * parts + 1, columns * parts + 1))
        inner = cells.transpose(0, 2, 1, 3).reshape(rows * parts, columns * parts)
        sums[1:, 1:] = inner.cumsum(axis=0).cumsum(axis=1)
        return sums

    def totals(self, table: Floats, boxes: Floats) -> Floats:
        """Sum of covered share times value of boxes.

        boxes: (n, 4) float64, lattice units, inside the lattice; returns (n,) float64.
        """
        result = np.empty(len(boxes))
        for start in range(0, len(boxes), _BOXES_PER_BATCH):
            chunk = boxes[start : start + _BOXES_PER_BATCH]
            west, east = (
                _table_position(chunk[:, side], self.x, table.shape[1]) for side in (0, 2)
            )
            south, north = (
                _table_position(chunk[:, side], self.y, table.shape[0]) for side in (1, 3)
            )
            upper = _sum_south_west(table, north, east) - _sum_south_west(table, north, west)
            lower = _sum_south_west(table, south, east) - _sum_south_west(table, south, west)
            result[start : start + _BOXES_PER_BATCH] = upper - lower
        return result


def leaf_mesh(tree: Tree, density: Density | None) -> Mesh | None:
    """Leaves as a mesh; None if they do not form rows and columns, or form too many.

    Without a density, which is even or smooth, counts lie evenly in their leaves.
    """
    parts = PARTS if isinstance(density, SmoothDensity) else 1
    leaves = np.flatnonzero(tree.is_leaf)
    if len(leaves) * parts**2 > MAX_MESH_CELLS or not (density is None or parts == PARTS):
        return None
    x, y = (np.unique(tree.boxes[leaves][:, [side, side + 2]]) for side in (0, 1))
    shape = (len(y) - 1, len(x) - 1)
    if shape[0] * shape[1] != len(leaves):
        return None
    # As many leaves as mesh cells, and leaves tile the domain: each leaf is one mesh cell.
    order = np.lexsort((tree.boxes[leaves, 0], tree.boxes[leaves, 1]))
    share = np.ones((len(leaves), 1, 1))
    if isinstance(density, SmoothDensity):
        share = density.share[density.rank[leaves[order]]]
    return Mesh(
        x=x.astype(np.float64),
        y=y.astype(np.float64),
        leaf=leaves[order].reshape(shape),
        share=share.reshape(*shape, parts, parts),
    )


def _table_position(lines: Floats, edges: Floats, size: int) -> tuple[NDArray[np.int64], Floats]:
    """Last line of a table at or below each place, and how far on to the next one it is."""
    parts = (size - 1) / (len(edges) - 1)
    position = np.interp(lines, edges, np.arange(len(edges)) * parts)
    line = np.minimum(position.astype(np.int64), size - 2)
    return line, position - line


def _sum_south_west(
    table: Floats, row: tuple[NDArray[np.int64], Floats], column: tuple[NDArray[np.int64], Floats]
) -> Floats:
    """Sum south and west of places between the lines of a table."""
    (j, up), (i, across) = row, column
    flat, corner = table.ravel(), j * table.shape[1] + i
    south = flat[corner] * (1 - across) + flat[corner + 1] * across
    corner += table.shape[1]
    north = flat[corner] * (1 - across) + flat[corner + 1] * across
    value: Floats = south * (1 - up) + north * up
    return value
