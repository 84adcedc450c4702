"""The tally: exact counts per occupied lattice cell. Private.

Column c of stratum s is column s W + c of a wider lattice, with W columns for each stratum. So what
is done with cells (hashes, sorted codes, occurrence numbers) is done with pairs of a cell and a
stratum: records of one cell in two strata are different records. Regions, categories and levels of
an app's value are strata. Time slices are none: they bound the records of users as well.
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
    """Records of a source, as arrays of length n, private; None for what is not read.

    x, y: float64, in the CRS of the domain, NaN if missing; user: opaque ids, Arrow strings, null
    if missing; time: datetime64[us], local in the zone of the columns, NaT if missing; bid:
    float64, NaN or infinite if missing; label: of a category, Arrow large_string, null if missing;
    values: (n, V) float64, to sum, NaN if missing; match: bool, whether the filter selects a record
    and it has all values. All records are in the batch, so that their form is checked whether they
    are selected or not.
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

    columns, rows: (n,) int32, the south-west one if several lattice cells are counted together;
    counts: (n,) int64, records above 0, or the sum of their weights; contributions: largest amount
    that one unit adds, 1 if a record is the unit; slice: (n,) int64, or None; region: (n,) int32,
    stratum of each count, see `psd.ingest.tally`, or None (the parts of a lattice cell in several
    strata are counted separately); values: (n, V) int64, or None, sums of the weights m of values,
    see `psd.privacy.values`, 0 to `record_weight` times the count each; record_weight: weight of a
    record that counts one, M, or 1 where counts are sums of weights; report: records read, without
    coordinates, outside, over the contribution limit, for the private report.
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
        """Make a tally whose arrays are computed when first read; a method may read only codes."""
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
    # Columns of keys, slice first; slices or regions that tallies do not have are 0.
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
    """Columns (n,) of the lattice of `width` columns per stratum; unchanged without strata."""
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
    key (slice, stratum, cell), where it was counted under (slice, cell) without: a function of this
    record and of public input, so a record has one key or is dropped. All that holds for counts by
    cell holds for counts by key, with the keys as the cells of a larger lattice: one record more or
    less changes the count of one key by one, and the records of a unit that are kept change the
    counts by at most k in sum, since at most k of them are kept, of whichever keys. A question of
    the curator about a stratum reads the keys of this stratum, so the loss at a key is the sum of
    epsilon over the questions whose node has this key, as it is at a cell.
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
        """Stratum of each record inside the bounds, (n,) int, -1 for none. All private.

        x, y: (n,) float64, in the CRS of the domain; value: labels or bids of a `Batch`, or None.
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
