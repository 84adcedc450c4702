"""Ranges of the records of nodes that are repeated halves. Private side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.ingest.code_ranks import CodeRanks
from psd.space.growing_tree import Cut
from psd.space.quadrant_order import QuadrantOrder

__all__ = ["HalvedNodes"]


class HalvedNodes:
    """Nodes of a tree of repeated halves: the ranks of the codes of each are a range.

    Parameters
    ----------
    order : QuadrantOrder
        Public.
    entries : CodeRanks
        Codes of records or occupied cells. Private.
    """

    def __init__(self, order: QuadrantOrder, entries: CodeRanks) -> None:
        self._order, self._entries = order, entries
        self._first, self._level = np.array([0]), np.array([0])

    def cut(
        self, cut: Cut, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Find the range of each child in the order of their numbers; None for other lines.

        Parameters
        ----------
        cut : Cut
            Of nodes of this tree, each halved on both axes or not at all.
        start, stop : ndarray, shape (n,), int64
            Range of each node that is cut. Private.
        """
        divided = _are_halved(cut)
        if divided is None:
            return None
        level = self._level[cut.nodes]
        quarter = self._order.size(np.minimum(level + 1, self._order.levels))
        first = self._first[cut.nodes, None] + quarter[:, None] * np.arange(4)
        ends = np.repeat(stop[:, None], 5, axis=1)
        ends[:, 0] = start
        ends[divided, 1:4] = self._entries.ranks(first[divided, 1:].ravel()).reshape(-1, 3)
        filled = cut.child >= 0
        self._first = np.append(self._first, first[filled])
        self._level = np.append(self._level, np.repeat(level + divided, filled.sum(axis=1)))
        return ends[:, :4][filled], ends[:, 1:][filled]


def _are_halved(cut: Cut) -> NDArray[np.bool_] | None:
    """Which nodes are halved on both axes, the others being left as they are; else None."""
    boxes, lines = cut.boxes, cut.lines
    is_middle = lines == (boxes[:, :2] + boxes[:, 2:]) // 2
    is_far = lines == boxes[:, 2:]
    # One lattice cell cannot be divided.
    is_thin = boxes[:, 2:] - boxes[:, :2] == 1
    divided: NDArray[np.bool_] = is_middle.any(axis=1)
    if not np.where(divided[:, None], is_middle | is_thin, is_far).all():
        return None
    return divided
