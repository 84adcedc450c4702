"""The node of each entry of a tally, while regions are divided into cells. Private side.

A cut gives each entry of the nodes that are cut a new node, by two comparisons. No entry is moved,
so a level takes a fraction of the time that sorting takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.space.growing_tree import Cut

__all__ = ["EntryNodes"]

# Entries looked at together; few enough for the cache of a processor.
_CHUNK = 2**15


class EntryNodes:
    """Nodes of the entries of a tally.

    Parameters
    ----------
    columns, rows : ndarray, shape (n,), int32
        Occupied cells. Private.
    counts : ndarray, shape (n,), int64
        Records in each. Private.
    node : ndarray, shape (n,), int32
        Node of each, which has not been cut. Private.
    nodes : int
        Number of nodes.
    """

    def __init__(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        counts: NDArray[np.int64],
        node: NDArray[np.int32],
        nodes: int,
    ) -> None:
        self._columns, self._rows, self._counts = columns, rows, counts
        self._node, self._nodes = node, nodes

    def cut(self, cut: Cut) -> NDArray[np.int64]:
        """Give the entries of nodes that are cut to the children; count the records of each child.

        Returns
        -------
        ndarray, shape (children,), int64
            True counts, in the order of the numbers of the children.
        """
        slot, number = np.full(self._nodes, -1), np.zeros(len(cut.cells), np.int64)
        slot[cut.nodes] = np.arange(len(cut.nodes))
        x, y = np.ascontiguousarray(cut.lines.T.astype(self._columns.dtype))
        child = (cut.child - self._nodes).astype(np.int32).ravel()
        for start in range(0, len(self._node), _CHUNK):
            moved: slice | NDArray[np.int64] = slice(start, start + _CHUNK)
            which = slot.take(self._node[moved])
            if which.min() < 0:
                rest = np.flatnonzero(which >= 0)
                which, moved = which[rest], rest + start
            if not len(which):
                continue
            quadrant = which << 1
            quadrant += self._rows[moved] >= y.take(which)
            quadrant <<= 1
            quadrant += self._columns[moved] >= x.take(which)
            below = child.take(quadrant)
            np.add.at(number, below, self._counts[moved])
            self._node[moved] = below + self._nodes
        self._nodes += len(cut.cells)
        return number
