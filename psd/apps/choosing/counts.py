"""Exact counts of records by catchment, by price and by region. Private side.

By price and by region, the level of a bid and its region are strata, see `psd.ingest.tally`. By
catchment, cells are sorted by strips of rows, then by column: a strip has an interval inside,
summed by a difference of two running totals, and two short ones at its edge, tested cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.errors import InputDataError
from psd.ingest.tally import Tally
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.apps.choosing.files import PriceList
    from psd.regions.hierarchy import RegionHierarchy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BidLevels:
    """Public prices, and regions if there are any, by which bids are counted.

    P1. The stratum of a record depends on its own bid and coordinates alone. A record without a
    finite number as its bid is in none; a bid above all prices counts as the largest of them, and
    one below all of them, also a negative one, reaches none.
    """

    prices: PriceList  # public
    regions: RegionHierarchy | None = None  # lowest regions by which bids are counted as well

    @property
    def parts(self) -> int:
        """Number of regions; 1 without any."""
        return 1 if self.regions is None else self.regions.size

    @property
    def size(self) -> int:
        """Number of strata."""
        return self.parts * (len(self.prices) + 1)

    def assign(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        bid: NDArray[np.float64] | None = None,
        /,
    ) -> NDArray[np.int32]:
        """Stratum of each record; -1 for one without a bid, or outside all regions. Private."""
        if bid is None:
            raise InputDataError("records have no bids; this kind of input has no such column")
        level = self.prices.levels(bid)
        if self.regions is None:
            return level
        # Strata stand region by region, and in each by level.
        region = self.regions.assign(x, y)
        both = region.astype(np.int64) * (len(self.prices) + 1) + level
        return np.where((level < 0) | (region < 0), -1, both).astype(np.int32)

    def reached(self, tally: Tally, cells: tuple[int, int] = (1, 1)) -> Integers:
        """Bids that reach each price or more: (parts, columns rows, prices) int64, private."""
        levels, columns = len(self.prices) + 1, cells[0]
        number = self.parts * cells[0] * cells[1]
        by_level = np.zeros((self.parts, cells[0] * cells[1], levels), np.int64)
        if tally.region is not None:
            # The stratum of a count, in the tally's place of a region, is a part and a level.
            part, level = np.divmod(tally.region.astype(np.int64), levels)
            cell = tally.rows.astype(np.int64) * columns + tally.columns
            # The cells of the lattice are parts as well, if there is more than one.
            cell = cell if number > self.parts else np.zeros_like(cell)
            np.add.at(by_level, (part, cell, level), tally.counts)
        # From the highest level down: who reaches a price reaches all below it.
        return np.cumsum(by_level[:, :, :0:-1], axis=2)[:, :, ::-1]


_STRIPS = 1024
_CANDIDATES_PER_CHUNK = 512
_CELLS_PER_CHUNK = 2**21

# Columns are below it, so that strip and column are one number.
_COLUMNS = 2**31


class PlacedCounts:
    """Private counts at the centres of their lattice cells, to be summed over catchments.

    P1. A record is in a catchment by the centre of its own lattice cell and public values alone, so
    one record more or less changes the sum of a catchment by at most 1.
    """

    def __init__(self, tally: Tally, domain: Domain) -> None:
        self._domain = domain
        self._height = -(-domain.lattice[1] // _STRIPS)
        # Strip and column in one number: cells of a strip stand together, from west to east.
        key = (tally.rows // self._height).astype(np.int64) * _COLUMNS + tally.columns
        order = np.argsort(key, kind="stable")
        self._key = key[order]
        self._x = domain.centres(0, tally.columns[order])
        self._y = domain.centres(1, tally.rows[order])
        self._counts = tally.counts[order].copy()

    def __repr__(self) -> str:
        return "<PlacedCounts: private>"

    def remove(self, catchments: CandidateAreas, candidate: int) -> None:
        """Set the counts in a catchment to 0."""
        catchments, owner = catchments.unrolled()
        for each in np.flatnonzero(owner == candidate):
            which = np.full(len(self._x), each)
            self._counts[catchments.contains(which, self._x, self._y)] = 0

    def sums(self, catchments: CandidateAreas) -> Integers:
        """Sum the counts in each catchment, shape (n,)."""
        number = len(catchments)
        catchments, owner = catchments.unrolled()
        # Inner cells by a difference of running totals; cells at the edge are tested one by one.
        before = np.concatenate([[0], np.cumsum(self._counts)])
        sums = np.zeros(len(catchments), np.int64)
        if not len(self._counts):  # as before a reading
            return sums[:number]
        for start in range(0, len(sums), _CANDIDATES_PER_CHUNK):
            which = np.arange(start, min(start + _CANDIDATES_PER_CHUNK, len(sums)))
            which, strip = self._strips(catchments, which)
            rows = np.stack([strip * self._height, (strip + 1) * self._height - 1])
            south, north = (
                self._domain.centres(1, np.minimum(row, self._domain.lattice[1] - 1))
                for row in rows
            )
            spans = catchments.spans(which, south, north)
            # A column more on each side, and one less inside, so that no rounding decides a cell.
            first = self._find(strip, np.floor(self._position(spans.left, 0)))
            last = self._find(strip, np.floor(self._position(spans.right, 0)) + 2)
            last = np.maximum(last, first)
            inner = self._find(strip, np.ceil(self._position(spans.inner_left, 0)) + 1)
            after = self._find(strip, np.floor(self._position(spans.inner_right, 0)))
            inner = np.clip(inner, first, last)
            after = np.clip(after, inner, last)
            # Of each pair, cells first to last may be inside, and inner to after are inside.
            np.add.at(sums, which, before[after] - before[inner])
            for low, high in ((first, inner), (after, last)):
                self._add_edges(sums, catchments, which, low, high)
        # Circles across longitude 180 have a second part, which no point has in common with the
        # first.
        np.add.at(sums, owner[number:], sums[number:])
        return sums[:number]

    def _strips(self, catchments: CandidateAreas, which: Integers) -> tuple[Integers, Integers]:
        """Pairs of a candidate and a strip that its box meets."""
        south, north = (self._position(catchments.boxes[which, side], 1) for side in (1, 3))
        rows = self._domain.lattice[1]
        # First and last row that each box may meet, (candidates,).
        first, last = np.clip(np.floor(south), 0, rows), np.clip(np.ceil(north), -1, rows - 1)
        low, high = (row.astype(np.int64) // self._height for row in (first, last))
        number = np.maximum(high - low + 1, 0)
        pairs = np.repeat(which, number)
        # Numbers low, low + 1, ... of each candidate, one after another, without a loop.
        start = np.repeat(low - np.cumsum(number) + number, number)
        return pairs, start + np.arange(len(pairs))

    def _position(self, values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        """Position among the centres of columns or rows: 0 at the first, 1 at the second."""
        last = self._domain.lattice[axis] - 1
        ends = self._domain.centres(axis, np.array([0, last]))
        side = (self._domain.width, self._domain.height)[axis]
        step = (ends[1] - ends[0]) / last if last else side
        position: NDArray[np.float64] = (values - ends[0]) / step
        return position

    def _find(self, strip: Integers, column: NDArray[np.float64]) -> Integers:
        """Index of the first cell of a strip that is at a column or beyond it."""
        within = np.clip(column, 0, self._domain.lattice[0]).astype(np.int64)
        key = strip * _COLUMNS + within
        order, first = np.argsort(key), np.empty(len(key), np.int64)
        first[order] = np.searchsorted(self._key, key[order])  # in order, which reads memory once
        return first

    def _add_edges(
        self,
        sums: Integers,
        catchments: CandidateAreas,
        which: Integers,
        low: Integers,
        high: Integers,
    ) -> None:
        """Add the cells of ranges that lie inside the catchment."""
        for pairs in _chunks(high - low):
            length = (high - low)[pairs]
            # The cells of all ranges in one array, and the range that each is of.
            pair = np.repeat(np.arange(len(length)), length)
            cell = np.arange(len(pair)) + np.repeat(low[pairs] - np.cumsum(length) + length, length)
            inside = catchments.contains(which[pairs][pair], self._x[cell], self._y[cell])
            # Sums of ranges, as differences of a running total.
            total = np.concatenate([[0], np.cumsum(np.where(inside, self._counts[cell], 0))])
            ends = np.cumsum(length)
            np.add.at(sums, which[pairs], total[ends] - total[ends - length])


def _chunks(lengths: Integers) -> Iterator[slice]:
    """Slices of ranges with a limited number of cells, or one range each."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        limit = (ends[start - 1] if start else 0) + _CELLS_PER_CHUNK
        stop = max(int(np.searchsorted(ends, limit, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
