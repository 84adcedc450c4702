"""The tally: exact counts per occupied lattice cell. Private.

A record that is counted by strata has a lattice cell and a stratum. Column c of stratum s is column
s W + c of a wider lattice, with W columns for each stratum. So what is done with cells of records
(hashes that choose the kept records of a user, sorted codes, occurrence numbers) is done with pairs
of a cell and a stratum: records of one cell in two strata are different records.

Regions are strata, and so are categories (`psd.space.categories`), and levels of a value that each
record has, which an app may define.
Engines and `psd.ingest.tally_builder` know no more of them than what stands here.

Time slices are not: they bound the records of users as well, so their times are kept with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from psd.ingest.quadrant_codes import QuadrantCodes, QuadrantOrder
from psd.space.domain import Blocks

if TYPE_CHECKING:
    from psd.space.even_odd import CertainCells

__all__ = ["Area", "Batch", "HasCertainCells", "Strata", "Tally", "add_tallies"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Records of a source, as arrays.

    Parameters
    ----------
    x, y : ndarray, shape (n,), float64
        Coordinates in the CRS of the domain; NaN if missing. Private.
    user : pyarrow.Array of string, length n, or None
        Opaque ids; null if missing. Private.
    time : ndarray, shape (n,), datetime64[us], or None
        Local times in the zone of the columns; NaT if missing. Private.
    bid : ndarray, shape (n,), float64, or None
        Bids; NaN or infinite if missing. Private.
    label : pyarrow.Array of large_string, length n, or None
        Labels of a category; null if missing. Private.
    values : ndarray, shape (n, V), float64, or None
        Values whose sums are counted; NaN if missing. Private.
    match : ndarray, shape (n,), bool, or None
        Whether the filter of the columns selects each record, and it has all values; None without
        both. All records
        are in the batch, so that their form is checked whether they are selected or not. Private.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    user: Any = None
    time: NDArray[np.datetime64] | None = None
    bid: NDArray[np.float64] | None = None
    label: Any = None
    values: NDArray[np.float64] | None = None
    match: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        return "<Batch: private>"

    def selected(self) -> Batch:
        """The records that the filter selects, without a filter all; private."""
        import pyarrow as pa

        match = self.match
        if match is None:
            return self
        return Batch(
            x=self.x[match],
            y=self.y[match],
            user=None if self.user is None else self.user.filter(pa.array(match)),
            time=None if self.time is None else self.time[match],
            bid=None if self.bid is None else self.bid[match],
            label=None if self.label is None else self.label.filter(pa.array(match)),
            values=None if self.values is None else self.values[match],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tally:
    """Counts of kept records per occupied lattice cell, by row, then column. Private.

    Parameters
    ----------
    columns, rows : ndarray, shape (n,), int32
        Occupied cells; the south-west one if several lattice cells are counted together.
    counts : ndarray, shape (n,), int64
        Records in each, above 0, or the sum of their weights.
    contributions : int
        Largest amount that one unit adds to the tally; 1 if a record is the unit.
    slice : ndarray, shape (n,), int64, or None
        Time slice of each count.
    region : ndarray, shape (n,), int32, or None
        Stratum of each count, which is the lowest region unless a build counts by categories, or an
        app by others, see `psd.ingest.tally`. A record has one lattice cell and one stratum; the
        parts of a lattice cell in several strata are counted separately.
    values : ndarray, shape (n, V), int64, or None
        Sums of the weights m of the V values of a release, see `psd.privacy.values`. Each is 0 to
        `record_weight` times the count.
    record_weight : int
        Weight of a record that counts one: M of `psd.privacy.values`, or 1 where counts are sums of
        weights themselves.
    report : dict of str to int
        Records read, without coordinates, outside, over the contribution limit. Private; for the
        private report.
    """

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    contributions: int = 1
    slice: NDArray[np.int64] | None = None
    region: NDArray[np.int32] | None = None
    values: NDArray[np.int64] | None = None
    record_weight: int = 1
    report: dict[str, int] = field(default_factory=dict)
    _codes: QuadrantCodes | None = field(init=False, default=None)

    @classmethod
    def of_codes(cls, codes: QuadrantCodes, *, contributions: int, report: dict[str, int]) -> Tally:
        """Make a tally whose arrays are computed when they are first read.

        A method that halves cells reads the codes alone.
        """
        tally = object.__new__(cls)
        fields = {"_codes": codes, "contributions": contributions, "report": report}
        others = {"region": None, "values": None, "record_weight": 1}
        none = {} if codes.slices else {"slice": None}
        for name, value in {**fields, **others, **none}.items():
            object.__setattr__(tally, name, value)
        return tally

    def __getattr__(self, name: str) -> Any:
        """Compute the arrays of a tally of codes; other fields are always set."""
        if name not in _ARRAYS or self._codes is None:
            raise AttributeError(name)
        for array, values in zip(_ARRAYS, self._codes.by_row(), strict=True):
            if array != "slice" or self._codes.slices:
                object.__setattr__(self, array, values)
        return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        return "<Tally: private>"

    def quadrant_codes(self, order: QuadrantOrder) -> QuadrantCodes:
        """Return the counts as codes of a tree of repeated halves."""
        codes = self._codes
        if codes is not None and codes.step == (1, 1) and codes.order.lattice == order.lattice:
            return codes.of_the_plane() if codes.slices else codes
        numbers = order.codes(self.columns, self.rows)
        # Code and count in one word, where both fit, are sorted in a tenth of the time.
        bits = int(self.counts.max(initial=0)).bit_length()
        if 2 * order.levels + bits <= 63:
            words = numbers << bits | self.counts
            words.sort()
            return QuadrantCodes.of_ascending(order, words >> bits, words & (1 << bits) - 1)
        by_code = np.argsort(numbers)
        return QuadrantCodes.of_ascending(order, numbers[by_code], self.counts[by_code])

    def sliced_codes(self, order: QuadrantOrder) -> QuadrantCodes | None:
        """The counts as codes with slices, if they were counted so."""
        codes = self._codes
        if codes is None or not codes.slices or codes.step != (1, 1):
            return None
        return codes if codes.order.lattice == order.lattice else None

    def with_contributions(self, contributions: int) -> Tally:
        """The same counts with another largest amount of one unit."""
        if self._codes is None:
            return replace(self, contributions=contributions)
        return Tally.of_codes(self._codes, contributions=contributions, report=self.report)

    @property
    def slices_below(self) -> int | None:
        """A number of slices that have all counts; None without slices. Private."""
        if self._codes is not None:
            return self._codes.slices
        return None if self.slice is None else int(self.slice.max(initial=0)) + 1

    def in_blocks(self, blocks: Blocks) -> Tally:
        """Counts by blocks of lattice cells."""
        codes = self._codes
        if codes is not None and (codes.slices is None or codes.is_of(blocks)):
            return Tally.of_codes(
                codes.in_blocks(blocks), contributions=self.contributions, report=self.report
            )
        # A block has an entry for each of its cells.
        if self.region is not None or self.slice is not None:
            columns, rows = blocks.to_blocks(self.columns, 0), blocks.to_blocks(self.rows, 1)
            return replace(self, columns=columns, rows=rows)
        if self.values is not None:  # codes have no place for sums of values
            columns, rows = blocks.to_blocks(self.columns, 0), blocks.to_blocks(self.rows, 1)
            merged = add_tallies([replace(self, columns=columns, rows=rows)])
            return replace(merged, contributions=self.contributions, report=self.report)
        codes = self.quadrant_codes(QuadrantOrder(blocks.lattice))
        return Tally.of_codes(
            codes.in_blocks(blocks), contributions=self.contributions, report=self.report
        )


_ARRAYS = ("columns", "rows", "counts", "slice")


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """Add counts, and sums of values, by slice, region and cell."""
    first = tallies[0]
    groups = [
        [np.zeros_like(t.counts) if getattr(t, name) is None else getattr(t, name) for t in tallies]
        for name in ("slice", "region")
    ]
    cells = [[getattr(t, name) for t in tallies] for name in ("rows", "columns")]
    keys = [np.concatenate(values) for values in (*groups, *cells)]
    counts = np.concatenate([t.counts for t in tallies])
    # `lexsort` sorts by its last key first, and slices come first in a tally.
    order = np.lexsort(keys[::-1])
    keys = [values[order] for values in keys]
    # Equal keys are adjacent now: each run becomes one count.
    is_first = np.ones(len(order), bool)
    is_first[1:] = np.any([np.diff(values) != 0 for values in keys], axis=0)
    starts = np.flatnonzero(is_first)
    slice_, region, rows, columns = (values[starts] for values in keys)
    values = None
    if first.values is not None:
        values = np.concatenate([t.values for t in tallies if t.values is not None])[order]
        values = np.add.reduceat(values, starts)
    return Tally(
        columns=columns.astype(np.int32),
        rows=rows.astype(np.int32),
        counts=np.add.reduceat(counts[order], starts),
        slice=None if first.slice is None else slice_,
        region=None if first.region is None else region.astype(np.int32),
        values=values,
        record_weight=first.record_weight,
    )


Integer = TypeVar("Integer", bound=np.integer)


def widen_columns(
    columns: NDArray[np.integer], stratum: NDArray[np.integer] | None, width: int
) -> NDArray[np.integer]:
    """Columns of the wider lattice; the columns themselves without strata.

    columns: (n,) int, private; stratum: (n,) int, or None, private; width: columns of the lattice;
    returns (n,) int, private.

    >>> widen_columns(np.array([5, 5]), np.array([0, 2]), 8)
    array([ 5, 21])
    """
    return columns if stratum is None else stratum.astype(np.int64) * width + columns


def split_columns(
    columns: NDArray[Integer], width: int
) -> tuple[NDArray[Integer], NDArray[Integer]]:
    """Columns of the lattice, and the stratum of each."""
    stratum = columns // width
    return np.asarray(columns - stratum * width), np.asarray(stratum)


class Strata(Protocol):
    """Public parts of all possible records, numbered from 0.

    P1. A record is in one stratum or in none. Which one is a public function of this record's own
    coordinates and value; no other record, and no order of records, has an effect.

    Why counts by stratum cost what counts by cell cost. With strata a record is counted under the
    key (slice, stratum, cell), where it was counted under (slice, cell) without. The key is a
    function of this record and of public input: a record has one key or is dropped. So all that
    holds for counts by cell holds for counts by key, with the keys as the cells of a larger
    lattice: one record more or less changes the count of one key by one, and the records of a unit
    that are kept change the counts by at most k in sum, since at most k of them are kept, of
    whichever keys. A question of the curator about a stratum reads the keys of this stratum, so the
    loss at a key is the sum of epsilon over the questions whose node has this key, as it is at a
    cell.
    """

    @property
    def size(self) -> int:
        """Number of strata. Public."""

    def assign(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        value: Any = None,
        /,
    ) -> NDArray[np.int32]:
        """Stratum of each record inside the bounds, -1 for none.

        x, y: (n,) float64, in the CRS of the domain; value: labels or bids of a
        `psd.ingest.tally.Batch`, or None. All private; returns (n,) int, private.
        """


class Area(Protocol):
    """A public part of the domain; records outside of it are dropped before every question."""

    def contains(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points lie in it."""


@runtime_checkable
class HasCertainCells(Protocol):
    """Strata, or an area, that a raster decides for most coordinates; engines use it."""

    def certain_cells(self) -> CertainCells | None:
        """Cells whose points are all in one stratum, or all in none; an area is stratum 0."""
