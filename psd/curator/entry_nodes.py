"""The node of each entry of a tally, while regions are divided into cells. Private side.

A cut gives each entry of the nodes that are cut a new node, by two comparisons. No entry is moved,
so a level takes a fraction of the time that sorting takes. Parts of the entries run in threads.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from psd._util.threads import even_parts, in_threads
from psd.space.growing_tree import Cut

__all__ = ["EntryNodes"]

# Entries looked at together; few enough for the cache of a processor.
_CHUNK = 2**15

_ENTRIES_PER_THREAD = 2**17


class EntryNodes:
    """Nodes of the entries of a tally. Private.

    columns, rows: (n,) int32, occupied cells; counts: (n,) int64, records in each; node: (n,)
    int32, node of each, which has not been cut.
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

        Returns (children,) int64, true counts, in the order of the numbers of the children.
        """
        table = _Table(cut, self._nodes, self._columns.dtype)
        parts = even_parts(len(self._node), _ENTRIES_PER_THREAD)
        counts = in_threads(partial(self._move, table), parts)
        self._nodes += len(cut.cells)
        number: NDArray[np.int64] = np.sum(counts, axis=0, dtype=np.int64)
        return number

    def _move(self, table: _Table, part: slice) -> NDArray[np.int64]:
        """Move entries to the children of their nodes; the records that each child gets."""
        number = np.zeros(table.children, np.int64)
        for start in range(part.start, part.stop, _CHUNK):
            moved: slice | NDArray[np.int64] = slice(start, min(start + _CHUNK, part.stop))
            is_cut = table.is_cut.take(self._node[moved])
            if not is_cut.all():
                moved = start + np.flatnonzero(is_cut)
            below = table.below(self._node[moved], self._columns[moved], self._rows[moved])
            np.add.at(number, below, self._counts[moved])
            self._node[moved] = below + self._nodes
        return number


class _Table:
    """Lines of nodes that are cut, and their children, by the number of the node. Public."""

    def __init__(self, cut: Cut, nodes: int, dtype: np.dtype[np.integer]) -> None:
        self.children = len(cut.cells)
        self.is_cut = np.zeros(nodes, bool)
        self.is_cut[cut.nodes] = True
        self._lines = np.zeros((2, nodes), dtype)
        self._lines[:, cut.nodes] = cut.lines.T
        child = np.zeros((nodes, 4), np.int32)
        child[cut.nodes] = cut.child - nodes
        self._child = child.ravel()

    def below(
        self, node: NDArray[np.int32], columns: NDArray[np.integer], rows: NDArray[np.integer]
    ) -> NDArray[np.int32]:
        """Child of each entry, 0 for the first one of the cut."""
        quadrant = node.astype(np.int64)
        x, y = (lines.take(quadrant) for lines in self._lines)
        quadrant <<= 1
        quadrant |= rows >= y
        quadrant <<= 1
        quadrant |= columns >= x
        below: NDArray[np.int32] = self._child.take(quadrant)
        return below
