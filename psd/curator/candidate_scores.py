"""Candidates to choose one of, and integer scores of lines that divide a cell. Private side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.exponential_mechanism import Candidates
from psd.space.grids import BinGrid

if TYPE_CHECKING:
    from psd.ingest.tally import Tally
    from psd.space.domain import Domain

__all__ = ["CandidateScores"]


class CandidateScores(Protocol):
    """Public candidates, and how records score them. A frozen value that holds no record.

    P1. All members but `scores` are functions of public parameters.

    P2. One record more or less changes no score by more than ``sensitivity(1)``, and k records by
    no more than ``sensitivity(k)``; if `is_monotone`, a record more never lowers a score.
    `Curator.choose` relies on both.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores of the next draw."""

    @property
    def is_monotone(self) -> bool:
        """Whether a record more can never lower a score."""

    def sensitivity(self, contributions: int) -> int:
        """Largest change of a score by records of one unit, of at most so many contributions."""

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Compute all scores, int64. Private."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Records of some nodes. Private."""

    node: Integers  # (n,) int64; index of the node in the question, ascending
    cell: tuple[NDArray[np.integer], NDArray[np.integer]]  # (n,); lattice columns and rows
    count: Integers  # (n,) int64; records in each lattice cell


class Divisions:
    """Public lines of bins inside cells, (n, 4), or `max_lines` evenly spaced; their scores."""

    def __init__(self, boxes: Integers, axis: int, grid: BinGrid, max_lines: int) -> None:
        self.axis, self.grid = axis, grid
        self.edge = boxes[:, axis]
        self.low, self.high = grid.bin_range(axis, boxes)
        south, north = grid.bin_range(1 - axis, boxes)
        self.across = north - south
        inside = self.high - self.low - 1
        # The lines of all cells, one cell after another; a line is the bin that begins at it.
        self.lines = np.minimum(inside, max_lines)
        self.first = np.cumsum(self.lines) - self.lines
        self.node = np.repeat(np.arange(len(boxes)), self.lines)
        # Lines of a cell are spread evenly over the bins inside it.
        step = np.arange(len(self.node)) - self.first[self.node] + 1
        self.bin = (
            self.low[self.node] + step * (inside + 1)[self.node] // (self.lines + 1)[self.node]
        )

    def candidates(self, entries: Entries) -> Candidates:
        """Return every line with its score; for a cell without lines, its edge."""
        score = -self._heterogeneity(*self._occupied(entries))
        # A cell without lines has one candidate, its edge, of score 0.
        no_lines = np.flatnonzero(self.lines == 0)
        group = np.concatenate([self.node, no_lines])
        # Groups ascend, as candidates must.
        order = np.argsort(group, kind="stable")
        line = self.grid.line(self.axis, self.bin)
        return Candidates(
            group=group[order],
            first=np.concatenate([line, self.edge[no_lines]])[order],
            length=np.ones(len(group), np.int64),
            score=np.concatenate([score, np.zeros(len(no_lines), np.int64)])[order],
        )

    def _occupied(self, entries: Entries) -> tuple[Integers, Integers, Integers, Integers]:
        """Node, slot between lines and count of occupied bins; number of bins that share them."""
        x, y = (self.grid.number(a, entries.cell[a]) for a in (self.axis, 1 - self.axis))
        bins = self.grid.bins
        # Records of each occupied bin: those of equal keys of node, x and y.
        key = (entries.node * bins + x) * bins + y
        order = np.argsort(key)
        key, count = key[order], entries.count[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        count = np.add.reduceat(count, first) if len(first) else count
        at = key[first] // bins  # node and bin along the axis
        slot = np.searchsorted(self.node * bins + self.bin, at, side="right")

        # Equal pairs of slot and count, and how many bins have each. Along the lines of all nodes,
        # the slots of a node begin at its number plus its first.
        place = at // bins + slot
        order = np.lexsort((count, place))
        place, count = place[order], count[order]
        first = np.flatnonzero(np.diff(place, prepend=-1) | np.diff(count, prepend=-1))
        times = np.diff(first, append=len(place))
        starts = self.first + np.arange(len(self.first))
        node = np.searchsorted(starts, place[first], side="right") - 1
        return node, place[first] - starts[node], count[first], times

    def _heterogeneity(
        self, node: Integers, slot: Integers, count: Integers, times: Integers
    ) -> Integers:
        """Sum of the two parts' absolute deviations for each line, (lines,), of `_occupied`."""
        total = np.zeros(len(self.node), np.int64)
        for step in range(int(self.lines.max(initial=0))):
            # The step-th line of all cells at once: entries of cells with fewer lines drop out.
            has_line = self.lines[node] > step
            node, slot, count, times = (array[has_line] for array in (node, slot, count, times))
            nodes = np.flatnonzero(self.lines > step)
            line = self.first[nodes] + step
            # Number of bins in both parts of each line, occupied or not.
            west, east = self.bin[line] - self.low[nodes], self.high[nodes] - self.bin[line]
            bins = np.stack([west, east], axis=1).ravel() * np.repeat(self.across[nodes], 2)
            # Parts: twice the number of the cell among these, plus 1 above the line.
            part = 2 * np.searchsorted(nodes, node) + (slot > step)
            total[line] = deviations(part, count, times, bins).reshape(-1, 2).sum(axis=1)
        return total


def deviations(part: Integers, count: Integers, times: Integers, bins: Integers) -> Integers:
    """Floor of the sum over the bins of each part of abs(count - mean), (p,) int64. Private.

    part, count, times: (n,) int64, of occupied bins, and how many each entry stands for; bins: (p,)
    int64, bins of each part, occupied or not, at least 1.
    """
    # With n records in m bins and s records in the c bins above the mean, the sum is twice the part
    # above the mean, 2 (s - c n / m), because the part below is equal. With n = w m + r, a bin is
    # above the mean if it has more than w, and the sum is 2 (s - c w) - 2 c r / m, where no product
    # passes the square of the number of bins.
    # Whole part and rest of the mean of each part, (p,).
    mean, rest = np.divmod(_sums(part, count * times, len(bins)), bins)
    above = count > mean[part]
    part, count, times = part[above], count[above], times[above]
    records, many = _sums(part, count * times, len(bins)), _sums(part, times, len(bins))
    return 2 * (records - many * mean) + -2 * many * rest // bins


def _sums(group: Integers, values: Integers, groups: int) -> Integers:
    """Sum of integers in each group."""
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums
