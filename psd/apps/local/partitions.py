"""From the partitions of a campaign to the tree of a release."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import DEPTH
from psd.errors import ParameterError

__all__ = ["PartitionTree", "box_of", "grid_cells", "grow_tree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTree:
    """Nodes in level order, and the level of each partition."""

    keys: tuple[str, ...]  # cell of each node
    parent: NDArray[np.int32]  # (n,) int32; as in `psd.space.box_tree.Tree`
    level: NDArray[np.int16]
    at: tuple[int, ...]  # level whose nodes are the cells of each partition, in their order

    @property
    def boxes(self) -> NDArray[np.int32]:
        """Lattice lines of each node, shape (n, 4)."""
        return np.array([box_of(key) for key in self.keys], np.int32)


def grid_cells(level: int) -> tuple[str, ...]:
    """Cells of a grid of 2^level columns and rows, in the order of their keys."""
    cells = [""]
    for _ in range(level):
        cells = [cell + digit for cell in cells for digit in "0123"]
    return tuple(cells)


def box_of(key: str) -> tuple[int, int, int, int]:
    """West, south, east and north lattice line of a cell."""
    column = row = 0
    for digit in map(int, key):
        column, row = column << 1 | digit & 1, row << 1 | digit >> 1
    side = 1 << DEPTH - len(key)
    return column * side, row * side, (column + 1) * side, (row + 1) * side


def grow_tree(partitions: Sequence[Sequence[str]]) -> PartitionTree:
    """Tree whose levels hold the partitions, each at least as fine as the one before."""
    keys, parent, level, at = [""], [-1], [0], []
    frontier = [0]
    # A cell that is not cut between two partitions stands below itself, so that all cells of a
    # partition are on one level.
    for cells in partitions:
        depths = [_depth_below(keys[node], cells) for node in frontier]
        for remaining in range(max(1, *depths), 0, -1):
            # The next level: cells that must be cut now have four children, others themselves.
            above, above_depths, number = frontier, depths, level[-1] + 1
            frontier, depths = [], []
            for node, depth in zip(above, above_depths, strict=True):
                is_cut = depth == remaining
                for key in [keys[node] + digit for digit in "0123"] if is_cut else [keys[node]]:
                    frontier.append(len(keys))
                    depths.append(_depth_below(key, cells) if is_cut else depth)
                    keys.append(key)
                    parent.append(node)
                    level.append(number)
        at.append(level[-1])
    return PartitionTree(
        keys=tuple(keys),
        parent=np.array(parent, np.int32),
        level=np.array(level, np.int16),
        at=tuple(at),
    )


def _depth_below(key: str, cells: Sequence[str]) -> int:
    """Levels from a cell down to the deepest one of a partition that is inside it."""
    start, end = bisect_left(cells, key), bisect_left(cells, key + "4")
    if start == end:
        raise ParameterError("a partition must be at least as fine as the one before it")
    return max(len(cell) for cell in cells[start:end]) - len(key)
