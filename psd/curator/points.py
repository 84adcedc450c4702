"""The occupied lattice cells, sorted so that those of each node are contiguous. Private side.

Exact integers from which the curator computes its questions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import morton_codes, ranges
from psd.curator.division_scores import Divisions, Entries
from psd.ingest.tally import Tally
from psd.mechanisms.exponential_mechanism import Candidates
from psd.space.bin_grid import BinGrid
from psd.space.growing_tree import Cut

__all__ = ["Points"]


class Points:
    """The occupied lattice cells, sorted so that those of each node are contiguous. Private."""

    def __init__(self, tally: Tally, codes: NDArray[np.int64] | None = None) -> None:
        if codes is None:
            # In this order, the cells of repeated halves are contiguous from the start.
            order = np.argsort(morton_codes(tally.columns, tally.rows))
            self.columns: NDArray[np.integer] = tally.columns[order]
            self.rows = tally.rows[order]
        else:  # codes of a curve instead of the plane
            order = np.argsort(codes)
            self.columns, self.rows = codes[order], np.zeros(len(codes), np.int32)
        self.counts = tally.counts[order]
        self.start, self.stop = np.array([0]), np.array([len(tally.counts)])
        self._sum_counts()

    def _sum_counts(self) -> None:
        """Running total, so that the count of a node is one difference."""
        self.total = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def count(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """True number of records in each node."""
        true: NDArray[np.int64] = self.total[self.stop[nodes]] - self.total[self.start[nodes]]
        return true

    def cut(self, cut: Cut) -> None:
        """Sort the entries of each cut node by quadrant, and record the range of each child."""
        lengths = self.stop[cut.nodes] - self.start[cut.nodes]
        owner = np.repeat(np.arange(len(cut.nodes)), lengths)
        index = ranges(self.start[cut.nodes], lengths)
        east = self.columns[index] >= cut.lines[owner, 0]
        north = self.rows[index] >= cut.lines[owner, 1]
        quadrant = owner * 4 + 2 * north + east
        self._reorder(index, quadrant)
        sizes = np.bincount(quadrant, minlength=4 * len(cut.nodes)).reshape(-1, 4)
        ends = self.start[cut.nodes, None] + np.cumsum(sizes, axis=1)
        filled = cut.child >= 0
        grown = np.zeros(len(cut.cells), np.int64)
        self.start, self.stop = (np.concatenate([old, grown]) for old in (self.start, self.stop))
        self.start[cut.child[filled]] = (ends - sizes)[filled]
        self.stop[cut.child[filled]] = ends[filled]

    def _reorder(self, index: NDArray[np.int64], quadrant: NDArray[np.int64]) -> None:
        """Sort the entries at some indices by quadrant; sorted ones are left as they are."""
        if (np.diff(quadrant) >= 0).all():
            return
        source = index[np.argsort(quadrant, kind="stable")]
        for name in ("columns", "rows", "counts"):
            values = getattr(self, name).copy()
            values[index] = values[source]
            setattr(self, name, values)
        self._sum_counts()

    def rank_scores(
        self,
        nodes: NDArray[np.int64],
        ends: NDArray[np.int64],
        axis: int,
        p: NDArray[np.int64],
        q: NDArray[np.int64],
    ) -> Candidates:
        """Scores -abs(q below(s) - p n) of the lattice lines s inside each node.

        Between two occupied lattice cells in a row, all lines have the same points below them;
        these intervals are exhaustive, so each line of the node is in exactly one.

        Parameters
        ----------
        nodes : ndarray, shape (n,), int64
            Nodes.
        ends : ndarray, shape (n, 2), int64
            Their first and last line on the axis.
        axis : int
            0 for x, 1 for y.
        p, q : ndarray, shape (n,), int64
            Quantiles.
        """
        entries = self.stop[nodes] - self.start[nodes]
        group = np.repeat(np.arange(len(nodes)), entries + 1)
        is_first, is_last = _ends_of_groups(entries + 1)
        line, counts = self._sorted(nodes, entries, axis)
        west, east = ends.T
        left, right = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        left[is_first], left[~is_first] = west + 1, line + 1
        right[is_last], right[~is_last] = east - 1, line
        # A node one lattice cell thin has no line inside; its edge means "not cut".
        thin = east - west == 1
        left[is_first] -= thin
        right[is_first] = np.where(thin, left[is_first], right[is_first])
        below = np.zeros(len(group), np.int64)
        below[~is_first] = counts
        inside = self.count(nodes)
        below = np.cumsum(below) - np.repeat(np.cumsum(inside) - inside, entries + 1)
        score = -np.abs(q[group] * below - (p * inside)[group])
        return Candidates(group=group, first=left, length=right - left + 1, score=score)

    def division_scores(
        self,
        nodes: NDArray[np.int64],
        boxes: NDArray[np.int64],
        axis: int,
        grid: BinGrid,
        max_lines: int,
    ) -> Candidates:
        """Scores of the bin lines inside each node; see `psd.curator.division_scores`."""
        entries = self.stop[nodes] - self.start[nodes]
        index = ranges(self.start[nodes], entries)
        records = Entries(
            node=np.repeat(np.arange(len(nodes)), entries),
            cell=(self.columns[index], self.rows[index]),
            count=self.counts[index],
        )
        return Divisions(boxes, axis, grid, max_lines).candidates(records)

    def _sorted(
        self, nodes: NDArray[np.int64], entries: NDArray[np.int64], axis: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lattice coordinates of the entries of each node in ascending order, and their counts."""
        index = ranges(self.start[nodes], entries)
        values = (self.columns, self.rows)[axis][index].astype(np.int64)
        owner = np.repeat(np.arange(len(nodes)), entries)
        # Lattice lines have up to 30 bits, codes of a curve up to 36.
        order = np.argsort(owner << int(values.max(initial=0)).bit_length() | values)
        return values[order], self.counts[index][order]


def _ends_of_groups(sizes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where groups of given sizes, one after another, begin and end."""
    ends = np.cumsum(sizes)
    first, last = np.zeros(int(ends[-1]), bool), np.zeros(int(ends[-1]), bool)
    first[ends - sizes], last[ends - 1] = True, True
    return first, last
