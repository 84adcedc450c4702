"""Build a tally of batches: `RecordFilter` places records, then k of a unit stay. Private side."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.contribution_bounding import (
    keep_in_slices,
    keep_smallest,
    number_slices,
    number_units,
    round_weights,
    rows_per_unit,
    user_weights,
)
from psd.ingest.quadrant_codes import (
    CodeRanks,
    QuadrantCodes,
    QuadrantOrder,
    cell_counter,
    is_dense,
)
from psd.ingest.row_hash import user_salts
from psd.ingest.tally import Batch, Tally, split_columns, widen_columns
from psd.ingest.user_ids import normalise_ids
from psd.ingest.user_partitions import UserPartition, UserPartitions, UserRows, keep_user_rows
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT, value_weights

if TYPE_CHECKING:
    from psd.ingest.tally import Area, Strata
    from psd.privacy.values import Value
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["TallyBuilder", "check_counting", "tally_batches", "tally_of_codes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FilteredBatch:
    """Records of a batch that are counted. Private."""

    inside: NDArray[np.bool_]  # (n,) bool; whether each record of the batch is counted
    # (m,) int32; cells of the full lattice, with `rows`, of the m records that are counted.
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    time: NDArray[np.int64] | None  # (m,) int64, or None; microseconds of local time
    stratum: NDArray[np.int32] | None = None  # (m,) int32, or None
    values: NDArray[np.float64] | None = None  # (m, V) float64, or None; none is missing

    def __repr__(self) -> str:
        return "<FilteredBatch: private>"


class RecordFilter:
    """Drops records that are not selected, without coordinates, or outside domain, area or slices.

    P1. Whether a record is dropped, and its stratum, depends only on that record.
    P2. Records are dropped before anything is bounded, so a record that is not selected takes no
    place among those that are kept of a user.
    P3. Whether the input is refused does not depend on where records lie: a record without a time
    is refused wherever it lies, and records that all lie outside are not refused. A coordinate
    beyond the limits of the CRS is outside.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        area: Area | None,
        slices: TimeSlices | None,
        needs_time: bool,
        strata: Strata | None = None,
    ) -> None:
        self.domain, self.area, self.slices, self.strata = domain, area, slices, strata
        self._needs_time = needs_time
        self.report = Counter({"read": 0, "without coordinates": 0, "outside": 0})
        """Records read and dropped so far. Private."""

    def filter_batch(self, batch: Batch) -> FilteredBatch:
        """Select the records of a batch that are counted."""
        if batch.time is None and self._needs_time:
            raise InputDataError(
                "records have no time, and days and slices need one; name its column with time=NAME"
            )
        if batch.time is not None and np.isnat(batch.time).any():
            raise InputDataError("records have no time; remove them, or build without time=")
        # Drop what the filter does not select, then what is outside, then what is in no area,
        # stratum or slice.
        match, batch = batch.match, batch.selected()
        columns, rows, inside = self.domain.quantise(batch.x, batch.y)
        bidless = 0  # records in the bounds without a number as their bid
        if batch.bid is not None:
            bidless = int(np.count_nonzero(~np.isfinite(batch.bid[inside])))
            self.report["without a bid"] += bidless
        time = None if batch.time is None else batch.time[inside]
        values = None if batch.values is None else batch.values[inside]
        stratum = None
        if self.strata is not None:
            value = None if batch.bid is None else batch.bid[inside]
            if batch.label is not None:
                import pyarrow as pa

                value = batch.label.filter(pa.array(inside))
            stratum = self.strata.assign(batch.x[inside], batch.y[inside], value)
        selected = self._select(batch, inside, time, stratum)
        if selected is not None and not selected.all():
            columns, rows = columns[selected], rows[selected]
            time = None if time is None else time[selected]
            stratum = None if stratum is None else stratum[selected]
            values = None if values is None else values[selected]
            inside[np.flatnonzero(inside)[~selected]] = False
        # Private counts for the holder of the data.
        missing = 0
        if len(columns) < len(inside):
            missing = int(np.count_nonzero(np.isnan(batch.x) | np.isnan(batch.y)))
        self.report["read"] += len(inside)
        if match is not None:
            self.report["read"] += len(match) - len(inside)
            self.report["not selected"] += len(match) - len(inside)
        self.report["without coordinates"] += missing
        self.report["outside"] += len(inside) - missing - len(columns) - bidless
        if match is not None:
            # One flag for each record of the whole batch.
            selected = match.copy()
            selected[match] = inside
            inside = selected
        return FilteredBatch(
            inside=inside,
            columns=columns,
            rows=rows,
            time=None if time is None else time.astype("datetime64[us]").astype(np.int64),
            stratum=stratum,
            values=values,
        )

    def _select(
        self,
        batch: Batch,
        inside: NDArray[np.bool_],
        time: NDArray[np.datetime64] | None,
        stratum: NDArray[np.int32] | None,
    ) -> NDArray[np.bool_] | None:
        """Whether records in the bounds are in the area, a stratum and a slice; None for all."""
        selected = None if stratum is None else stratum >= 0
        if self.area is not None:
            within = self.area.contains(batch.x[inside], batch.y[inside])
            selected = within if selected is None else selected & within
        if time is not None and self.slices is not None:
            within = self.slices.index(time) >= 0
            selected = within if selected is None else selected & within
        return selected


# Bytes of one worker, which bounds the records of one partition.
_WORKER_BYTES = 2**29

# Codes that are split together; few enough for the cache of a processor.
_CODES_PER_CHUNK = 2**15

Weighted = tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64] | None]
"""Cell codes of records, their weights if they do not count once each, and weights of values."""


class TallyBuilder:
    """Collects the records of a source, then makes one tally of them.

    Strata cost what counts by cell cost, as `psd.ingest.tally.Strata` proves. Records of users get
    a third of `memory`; `limits_cells` tells whether occupied cells that do not fit are refused,
    and `is_cube` whether slices are divided together. Weights of `values` are summed like records.
    P4. Whether a record is dropped (no coordinates, outside the domain, the area, all strata or all
    slices) depends on that record alone, and so do its cell, stratum and slice.
    P5. Records of users are stored until all are read; which are kept is a function of the user's
    own records and the key.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        unit: PrivacyUnit,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        slices: TimeSlices | None = None,
        strata: Strata | None = None,
        values: Sequence[Value] = (),
        memory: int | None = None,
        limits_cells: bool = True,
        is_cube: bool = False,
    ) -> None:
        check_counting(domain, unit, step, slices, strata)
        self.domain, self.unit, self.step = domain, unit, step
        self.slices, self.strata = slices, strata
        self._strata = 0 if strata is None else strata.size
        needs_time = unit.kind == "user-day" or slices is not None
        self._filter = RecordFilter(
            domain, area=area, slices=slices, needs_time=needs_time, strata=strata
        )
        self._columns, self._rows = _blocks(domain, step)
        parts = (1 if slices is None else len(slices)) * max(self._strata, 1)
        cells = parts * self._columns * self._rows
        memory_for_cells = memory if limits_cells else None
        self._order: QuadrantOrder | None = None
        self.values = tuple(values)
        # Codes in quadrant order have no place for sums of values.
        is_sparse = not (self._strata or values) and not is_dense(cells, memory_for_cells)
        # An adaptive method is drawn on the lattice of these blocks, so they are the cells.
        self._in_blocks = step == domain.cell_step
        if is_sparse and slices is None:
            lattice = (self._columns, self._rows) if self._in_blocks else domain.lattice
            self._order = QuadrantOrder(lattice)
            cells = 4**self._order.levels
        elif is_sparse and is_cube and self._in_blocks:
            order = QuadrantOrder(domain.blocks.coarse_lattice)
            if parts * 4**order.levels <= 2**62:
                self._order, cells = order, parts * 4**order.levels
        self._counter = cell_counter(cells, memory_for_cells)
        self._sums = [cell_counter(cells, memory_for_cells) for _ in self.values]
        self._partitions = UserPartitions(None if memory is None else memory // 3)
        self._workers = os.cpu_count() or 1
        if memory is not None:
            self._workers = max(1, min(self._workers, memory // _WORKER_BYTES))
        self._inside = 0

    def add_batch(self, batch: Batch) -> None:
        """Count records at once if each is its own unit; else store them by user."""
        records = self._filter.filter_batch(batch)
        self._inside += len(records.columns)
        weights = None
        if self.values:
            assert records.values is not None  # the columns of the request name them
            weights = value_weights(self.values, records.values)
        if not self.unit.has_user:
            cells = records.columns, records.rows, records.time, records.stratum
            self._count(self._cells(*cells), None, weights)
            return
        columns = widen_columns(records.columns, records.stratum, self.domain.lattice[0])
        codes = records.rows.astype(np.int64) * self._width + columns
        self._partitions.add_rows(_ids(batch.user), codes, records.time, records.inside, weights)

    def _count(
        self,
        codes: NDArray[np.int64],
        weights: NDArray[np.int64] | None,
        values: NDArray[np.int64] | None,
    ) -> None:
        """Count records, each once or with its weight, and sum the weights of their values."""
        self._counter.add(codes, weights)
        if values is not None:
            for sums, column in zip(self._sums, values.T, strict=True):
                sums.add(codes, np.ascontiguousarray(column))

    @property
    def _width(self) -> int:
        """Columns of the lattice for each stratum, see `psd.ingest.tally`."""
        return max(self._strata, 1) * self.domain.lattice[0]

    @property
    def has_read(self) -> bool:
        """Whether a record was read, inside or not. Private."""
        return self._filter.report["read"] > 0

    @property
    def report(self) -> dict[str, int]:
        """Records read and dropped so far, before any bound. Private."""
        return dict(self._filter.report)

    def rows_per_unit(self) -> NDArray[np.int64]:
        """Count the records of each unit inside, in no order. Private."""
        partitions = self._partitions.partitions(again=True)
        sizes = [rows_per_unit(self._units(partition)) for partition in partitions]
        return np.concatenate([np.empty(0, np.int64), *sizes])

    def build(self, key: bytes | None = None, unit: PrivacyUnit | None = None) -> Tally:
        """Count the records, once, by a hash with `key`; `unit` may have a later chosen limit."""
        unit = self.unit if unit is None else unit
        counted = self._inside
        if unit.has_user:
            bound = partial(self._bound_partition, unit, key or secrets.token_bytes(16))
            counted, partitions = 0, self._partitions.partitions()
            with ThreadPoolExecutor(self._workers) as pool:
                while batch := list(islice(partitions, self._workers)):
                    for user_codes, user_weights, user_values in pool.map(bound, batch):
                        self._count(user_codes, user_weights, user_values)
                        counted += len(user_codes)
        report = dict(self._filter.report)
        if unit.has_user and not unit.weight:
            report["over the limit"] = self._inside - counted
        report["kept"] = counted
        if self._order is not None:
            codes, weights = self._counter.entries()
            step = self.step if self._in_blocks else (1, 1)
            entries = CodeRanks(codes, self._order.levels, is_sorted=weights is not None)
            occupied = QuadrantCodes(
                order=self._order,
                entries=entries,
                counts=weights,
                step=step,
                slices=None if self.slices is None else len(self.slices),
            )
            return Tally.of_codes(occupied, contributions=unit.contributions, report=report)
        codes, counts = self._counter.counts()
        tally = tally_of_codes(codes, counts, self.domain, self.step, self.slices, self.strata)
        if self.values:
            sums = np.zeros((len(codes), len(self.values)), np.int64)
            for number, counter in enumerate(self._sums):
                # Cells whose values are all at the lower bound have no sum above 0.
                filled, total = counter.counts()
                sums[np.searchsorted(codes, filled), number] = total
            weight = 1 if unit.weight else WEIGHT
            tally = replace(tally, values=sums, record_weight=weight)
        return replace(tally, contributions=unit.contributions, report=report)

    def user_rows(self, key: bytes) -> UserRows:
        """Keep the records of users with their ids; can be called once, instead of `build`."""
        partitions = self._partitions.partitions()
        return keep_user_rows(partitions, self.unit, self.slices, self._width, key)

    def _cells(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        moment: NDArray[np.int64] | None,
        stratum: NDArray[np.integer] | None = None,
    ) -> NDArray[np.int64]:
        """Code of each record by slice, stratum, cell; columns are wide if `stratum` is None."""
        if self._strata and stratum is None:
            columns, stratum = split_columns(columns, self.domain.lattice[0])
        slices: NDArray[np.int64] | None = None
        if self.slices is not None and moment is not None:
            slices = self.slices.index(moment.astype("datetime64[us]"))
        # Sparse cells without strata have codes in quadrant order, with slices if these are divided
        # together; all others are numbered by slice, stratum, row and column.
        if self._order is not None and slices is not None:
            blocks = self.domain.blocks
            codes = self._order.codes(blocks.to_blocks(columns, 0), blocks.to_blocks(rows, 1))
            codes += slices << 2 * self._order.levels
            return codes
        if self.step != (1, 1):
            columns, rows = columns // self.step[0], rows // self.step[1]
        if self._order is not None:
            if not self._in_blocks:
                columns, rows = columns * self.step[0], rows * self.step[1]
            return self._order.codes(columns, rows)
        codes = rows.astype(np.int64) * self._columns + columns
        if stratum is not None:
            codes += stratum.astype(np.int64) * (self._columns * self._rows)
        if slices is None:
            return codes
        return codes + slices * (max(self._strata, 1) * self._columns * self._rows)

    def _units(self, partition: UserPartition) -> NDArray[np.int64]:
        """Number of the unit of each record."""
        return number_units(self.unit, partition.users, partition.time, self.slices)

    def _bound_partition(self, unit: PrivacyUnit, key: bytes, partition: UserPartition) -> Weighted:
        """Cells of the kept records of a partition, with their weights and those of values."""
        units, (rows, columns) = self._units(partition), _divide(partition.codes, self._width)
        time, values = partition.time, partition.values
        salt = None
        if not unit.weight or values is not None:
            salts = user_salts(partition.names, key).astype(np.int32)
            salt = salts.take(partition.users, axis=1)  # several times as fast as an index
        if unit.weight:
            weights = user_weights(units, unit.weight)
            if values is not None and salt is not None:
                values = round_weights(weights, values, salt, (columns, rows), time)
            index = np.flatnonzero(weights)  # a record of weight 0 occupies no cell
            kept = self._cells(columns[index], rows[index], time[index])
            return kept, weights[index], None if values is None else values[index]
        assert salt is not None
        k, limit, cells = unit.max_contributions, unit.max_per_slice, (columns, rows)
        if limit is None or self.slices is None:
            index = keep_smallest(units, salt, cells, time, k, values)
        else:
            of_slices = number_slices(units, time, self.slices)
            index = keep_in_slices(units, of_slices, salt, cells, time, (k, limit), values)
        kept = self._cells(columns[index], rows[index], time[index])
        return kept, None, None if values is None else values[index]


def tally_batches(
    batches: Iterable[Batch],
    domain: Domain,
    *,
    unit: PrivacyUnit | None = None,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    strata: Strata | None = None,
    values: Sequence[Value] = (),
    memory: int | None = None,
) -> Tally:
    """Count the records of a source per lattice cell, at most k records per unit.

    batches: of one source, with ids if the unit has users, with times if it has days or there are
    slices, private; all else public, and `key` independent of the data. Records outside the domain,
    the area, all slices or all strata are dropped before anything is counted or bounded. A record,
    inside the domain or not, without an id or a time that is needed is refused.
    P6. Unit record: one record more or less changes one count by 1.
    P7. Unit user: the kept records of a user are a function of the records of that user inside the
    domain and the key; one user more or less changes the counts by at most k in sum. The same holds
    for a day or a slice of a user.
    P8. Users counted: one user more or less changes the counts by at most M in sum.
    P9. The order of the records, and how they are split into batches, have no effect.
    Differential privacy holds for every fixed key, even a published one: the choice for user u
    reads records of u alone. The key keeps the choice unbiased: without it a user could choose
    locations so that they are kept.
    """
    unit = PrivacyUnit() if unit is None else unit
    limits: dict[str, Any] = {"slices": slices, "strata": strata, "values": values}
    builder = TallyBuilder(domain, unit=unit, step=step, area=area, memory=memory, **limits)
    for batch in batches:
        builder.add_batch(batch)
    return builder.build(key)


def check_counting(
    domain: Domain,
    unit: PrivacyUnit,
    step: tuple[int, int],
    slices: TimeSlices | None,
    strata: Strata | None,
) -> None:
    """Check that a code of 62 bits can state slice, stratum and cell of a record."""
    if unit.max_per_slice is not None and slices is None:
        raise ParameterError("max_per_slice must be given with slices=, whose records it limits")
    parts = 1 if strata is None else strata.size
    number = (1 if slices is None else len(slices)) * parts
    columns, rows = _blocks(domain, step)
    if max(number * columns * rows, parts * domain.lattice[0] * domain.lattice[1]) > 2**62:
        raise DomainError(
            f"lattice {domain.lattice[0]} x {domain.lattice[1]} is too fine for {number} "
            f"slices{'' if strata is None else ' times regions'}; use a coarser one"
        )


def tally_of_codes(
    codes: NDArray[np.int64],
    counts: NDArray[np.int64],
    domain: Domain,
    step: tuple[int, int],
    slices: TimeSlices | None,
    strata: Strata | None,
) -> Tally:
    """Tally of ascending codes ((slice strata + stratum) rows + row) columns + column of blocks."""
    sizes = (*_blocks(domain, step), 1 if strata is None else strata.size)
    columns, rows, stratum, slice_ = _split_codes(codes, sizes, step)
    return Tally(
        columns=columns,
        rows=rows,
        counts=counts,
        slice=None if slices is None else slice_.astype(np.int64),
        region=None if strata is None else stratum,
    )


def _blocks(domain: Domain, step: tuple[int, int]) -> tuple[int, int]:
    """Number of blocks of lattice columns, and of rows, that are counted together."""
    columns, rows = (-(-size // width) for size, width in zip(domain.lattice, step, strict=True))
    return columns, rows


def _split_codes(
    codes: NDArray[np.int64], sizes: tuple[int, int, int], step: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Columns, rows, strata and slices of codes; sizes are the numbers of the first three."""
    columns, rows, strata, slices = (np.empty(len(codes), np.int32) for _ in range(4))
    for start in range(0, len(codes), _CODES_PER_CHUNK):
        part = slice(start, start + _CODES_PER_CHUNK)
        rest, column = _divide(codes[part], sizes[0])
        rest, row = _divide(rest, sizes[1])
        slices[part], strata[part] = _divide(rest, sizes[2])
        columns[part], rows[part] = column * step[0], row * step[1]
    return columns, rows, strata, slices


def _divide(codes: NDArray[np.int64], divisor: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Quotients and remainders of numbers that are not negative, by shifts where that is enough."""
    if divisor & (divisor - 1) == 0:
        return codes >> (divisor.bit_length() - 1), codes & (divisor - 1)
    quotient = codes // divisor
    return quotient, codes - quotient * divisor


def _ids(user: Any) -> Any:
    """Ids of all records; a record without id is refused, wherever it lies."""
    ids = normalise_ids(user)
    if ids.null_count:
        raise InputDataError(
            "records have no user id, so no limit per user can hold for them; remove these "
            "records, or build without user="
        )
    return ids
