"""Build a tally from batches of records. Private side.

Each record is checked and placed on the public lattice; under a contribution limit each unit keeps
at most k records. Which records these are depends only on the unit's own records and a key. So
removing a user changes no kept record of another user, and the order of the records has no effect.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.cell_counter import cell_counter, is_dense
from psd.ingest.code_ranks import CodeRanks
from psd.ingest.contribution_bounding import (
    keep_in_slices,
    keep_smallest,
    number_slices,
    number_units,
    rows_per_unit,
    user_weights,
)
from psd.ingest.quadrant_codes import QuadrantCodes
from psd.ingest.record_filter import Area, RecordFilter
from psd.ingest.row_hash import user_salts
from psd.ingest.tally import Batch, Tally
from psd.ingest.user_ids import normalise_ids
from psd.ingest.user_partitions import UserPartition, UserPartitions
from psd.ingest.user_rows import UserRows, keep_user_rows
from psd.ingest.wide_columns import split_columns, widen_columns
from psd.privacy.unit import PrivacyUnit
from psd.space.quadrant_order import QuadrantOrder

if TYPE_CHECKING:
    from psd.apps.choosing.bid_levels import BidLevels
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["TallyBuilder", "tally_batches"]

# Bytes of one worker, which bounds the records of one partition.
_WORKER_BYTES = 2**29

# Codes that are split together; few enough for the cache of a processor.
_CODES_PER_CHUNK = 2**15

Weighted = tuple[NDArray[np.int64], NDArray[np.int64] | None]
"""Cell codes of records, and their weights if they do not count once each."""


class TallyBuilder:
    """Collects the records of a source, then makes one tally of them.

    Guarantees
    ----------
    - Whether a record is dropped (no coordinates, outside the domain, the area, all regions or
      all slices) depends on that record alone, and so do its cell, region and slice.
    - Records of users are stored until all are read; which are kept is a function of the user's
      own records and the key.

    Parameters
    ----------
    domain : Domain
        Public.
    unit : PrivacyUnit
        Public.
    step : tuple of int
        Lattice columns and rows that are counted together. Public.
    area : Area, optional
        Public.
    slices : TimeSlices, optional
        Public.
    regions : RegionHierarchy or BidLevels, optional
        Public; records are counted by cell and lowest region, or by the level of their bid.
    memory : int, optional
        Limit in bytes for records and cells; records of users get a third.
    limits_cells : bool
        Whether occupied cells that do not fit into the limit are refused.

    Notes
    -----
    With regions a record is counted under the key (slice, region, cell), where it was counted under
    (slice, cell) without. The key is a function of this record and of public input, see
    `psd.regions.hierarchy`: a record has one key or is dropped. So all that holds for counts
    by cell holds for counts by key, with the keys as the cells of a larger lattice: one record more
    or less changes the count of one key by one, and the records of a unit that are kept change the
    counts by at most k in sum, since at most k of them are kept, of whichever keys. A question of
    the curator about a region reads the keys of this region, so the loss at a key is the sum of
    epsilon over the questions whose node has this key, as it is at a cell.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        unit: PrivacyUnit,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        slices: TimeSlices | None = None,
        regions: RegionHierarchy | BidLevels | None = None,
        memory: int | None = None,
        limits_cells: bool = True,
    ) -> None:
        if unit.max_per_slice is not None and slices is None:
            raise ParameterError(
                "max_per_slice must be given with slices=, whose records it limits"
            )
        self.domain, self.unit, self.step = domain, unit, step
        self.slices, self.regions = slices, regions
        self._regions = 0 if regions is None else regions.size
        needs_time = unit.kind == "user-day" or slices is not None
        self._filter = RecordFilter(
            domain, area=area, slices=slices, needs_time=needs_time, regions=regions
        )
        self._columns, self._rows = (
            -(-size // width) for size, width in zip(domain.lattice, step, strict=True)
        )
        self._number = (1 if slices is None else len(slices)) * max(self._regions, 1)
        cells = self._number * self._columns * self._rows
        if max(cells, max(self._regions, 1) * domain.lattice[0] * domain.lattice[1]) > 2**62:
            raise DomainError(
                f"lattice {domain.lattice[0]} x {domain.lattice[1]} is too fine for {self._number} "
                f"slices{' times regions' if self._regions else ''}; use a coarser one"
            )
        memory_for_cells = memory if limits_cells else None
        self._order: QuadrantOrder | None = None
        if slices is None and not self._regions and not is_dense(cells, memory_for_cells):
            # An adaptive method is drawn on the lattice of these blocks, so they are the cells.
            self._in_blocks = step == domain.cell_step
            lattice = (self._columns, self._rows) if self._in_blocks else domain.lattice
            self._order = QuadrantOrder(lattice)
            cells = 4**self._order.levels
        self._counter = cell_counter(cells, memory_for_cells)
        self._partitions = UserPartitions(None if memory is None else memory // 3)
        self._workers = os.cpu_count() or 1
        if memory is not None:
            self._workers = max(1, min(self._workers, memory // _WORKER_BYTES))
        self._inside = 0

    def add_batch(self, batch: Batch) -> None:
        """Count records at once if each is its own unit; else store them by user."""
        records = self._filter.filter_batch(batch)
        self._inside += len(records.columns)
        if not self.unit.has_user:
            cells = records.columns, records.rows, records.time, records.region
            self._counter.add(self._cells(*cells))
            return
        columns = widen_columns(records.columns, records.region, self.domain.lattice[0])
        codes = records.rows.astype(np.int64) * self._width + columns
        self._partitions.add_rows(_ids(batch.user), codes, records.time, records.inside)

    @property
    def _width(self) -> int:
        """Columns of the lattice for each region, see `psd.ingest.wide_columns`."""
        return max(self._regions, 1) * self.domain.lattice[0]

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
        """Count the records. It can be called once.

        Parameters
        ----------
        key : bytes, optional
            Key of the hash that chooses the kept records; by default random.
        unit : PrivacyUnit, optional
            Unit of the same kind, with a contribution limit that was chosen after reading.
        """
        unit = self.unit if unit is None else unit
        counted = self._inside
        if unit.has_user:
            bound = partial(self._bound_partition, unit, key or secrets.token_bytes(16))
            counted = self._count_users(bound)
        report = dict(self._filter.report)
        if unit.has_user and not unit.weight:
            report["over the limit"] = self._inside - counted
        report["kept"] = counted
        if self._order is not None:
            codes, weights = self._counter.entries()
            step = self.step if self._in_blocks else (1, 1)
            entries = CodeRanks(codes, self._order.levels, is_sorted=weights is not None)
            occupied = QuadrantCodes(order=self._order, entries=entries, counts=weights, step=step)
            return Tally.of_codes(occupied, contributions=unit.contributions, report=report)
        codes, counts = self._counter.counts()
        columns, rows, region, slices = _split_codes(
            codes, (self._columns, self._rows, max(self._regions, 1)), self.step
        )
        return Tally(
            columns=columns,
            rows=rows,
            counts=counts,
            contributions=unit.contributions,
            slice=None if self.slices is None else slices.astype(np.int64),
            region=region if self._regions else None,
            report=report,
        )

    def user_rows(self, key: bytes) -> UserRows:
        """Keep the records of users with their ids; can be called once, instead of `build`."""
        partitions = self._partitions.partitions()
        return keep_user_rows(partitions, self.unit, self.slices, self._width, key)

    def _cells(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        moment: NDArray[np.int64] | None,
        region: NDArray[np.integer] | None = None,
    ) -> NDArray[np.int64]:
        """Code of the cell in which each record is counted; slice and region come before it.

        Without a region of each record, columns are those of the wider lattice.
        """
        if self._regions and region is None:
            columns, region = split_columns(columns, self.domain.lattice[0])
        if self.step != (1, 1):
            columns, rows = columns // self.step[0], rows // self.step[1]
        if self._order is not None:
            if not self._in_blocks:
                columns, rows = columns * self.step[0], rows * self.step[1]
            return self._order.codes(columns, rows)
        codes = rows.astype(np.int64) * self._columns + columns
        if region is not None:
            codes += region.astype(np.int64) * (self._columns * self._rows)
        if self.slices is None or moment is None:
            return codes
        slices = self.slices.index(moment.astype("datetime64[us]"))
        return codes + slices * (max(self._regions, 1) * self._columns * self._rows)

    def _units(self, partition: UserPartition) -> NDArray[np.int64]:
        """Number of the unit of each record."""
        return number_units(self.unit, partition.users, partition.time, self.slices)

    def _count_users(self, bound: Callable[[UserPartition], Weighted]) -> int:
        """Bound and count the records of all users; return how many are counted."""
        counted, partitions = 0, self._partitions.partitions()
        with ThreadPoolExecutor(self._workers) as pool:
            while batch := list(islice(partitions, self._workers)):
                for codes, weights in pool.map(bound, batch):
                    self._counter.add(codes, weights)
                    counted += len(codes)
        return counted

    def _bound_partition(self, unit: PrivacyUnit, key: bytes, partition: UserPartition) -> Weighted:
        """Cells of the kept records of a partition, and their weights if they have any."""
        units, rows = self._units(partition), partition.codes // self._width
        columns, time = partition.codes - rows * self._width, partition.time
        if unit.weight:
            weights = user_weights(units, unit.weight)
            index = np.flatnonzero(weights)  # a record of weight 0 occupies no cell
            return self._cells(columns[index], rows[index], time[index]), weights[index]
        salts = user_salts(partition.names.to_pylist(), key).astype(np.int32)
        salt = salts.take(partition.users, axis=1)  # several times as fast as an index
        k, limit, cells = unit.max_contributions, unit.max_per_slice, (columns, rows)
        if limit is None or self.slices is None:
            index = keep_smallest(units, salt, cells, time, k)
        else:
            of_slices = number_slices(units, time, self.slices)
            index = keep_in_slices(units, of_slices, salt, cells, time, (k, limit))
        return self._cells(columns[index], rows[index], time[index]), None


def tally_batches(
    batches: Iterable[Batch],
    domain: Domain,
    *,
    unit: PrivacyUnit | None = None,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    regions: RegionHierarchy | BidLevels | None = None,
    memory: int | None = None,
) -> Tally:
    """Count the records of a source per lattice cell, at most k records per unit.

    Guarantees
    ----------
    - Unit record: one record more or less changes one count by 1.
    - Unit user: the kept records of a user are a function of the records of that user inside
      the domain and the key; one user more or less changes the counts by at most k in sum. The
      same holds for a day or a slice of a user.
    - Users counted: one user more or less changes the counts by at most M in sum.
    - The order of the records, and how they are split into batches, have no effect.

    Parameters
    ----------
    batches : iterable of Batch
        Records of one source; with ids if the unit has users, with times if it has days or there
        are slices. Private.
    domain : Domain
        Public; records outside are dropped before anything is counted or bounded.
    unit : PrivacyUnit, optional
        Unit of privacy; by default a record. Public.
    key : bytes, optional
        Key of the hash that chooses the kept records; by default random. Independent of the data.
    step : tuple of int
        Lattice columns and rows that are counted together. Public.
    area : Area, optional
        Public part of the domain; records outside of it are dropped.
    slices : TimeSlices, optional
        Public time slices; records outside all of them are dropped.
    regions : RegionHierarchy or BidLevels, optional
        Public regions, or levels of bids; records in none of them are dropped, and the others
        counted by region or level.
    memory : int, optional
        Limit in bytes; more records of users are stored in unnamed files.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    InputDataError
        If a record, inside the domain or not, has no user id or time although they are needed.

    Notes
    -----
    Differential privacy holds for every fixed key, even a published one: the choice for user u
    reads records of u alone. The key keeps the choice unbiased: without it a user could choose
    locations so that they are kept.
    """
    unit = PrivacyUnit() if unit is None else unit
    builder = TallyBuilder(
        domain, unit=unit, step=step, area=area, slices=slices, regions=regions, memory=memory
    )
    for batch in batches:
        builder.add_batch(batch)
    return builder.build(key)


def _split_codes(
    codes: NDArray[np.int64], sizes: tuple[int, int, int], step: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Columns, rows, regions and slices of codes; sizes are the numbers of the first three."""
    columns, rows, region, slices = (np.empty(len(codes), np.int32) for _ in range(4))
    for start in range(0, len(codes), _CODES_PER_CHUNK):
        part = slice(start, start + _CODES_PER_CHUNK)
        rest, column = _divide(codes[part], sizes[0])
        rest, row = _divide(rest, sizes[1])
        slices[part], region[part] = _divide(rest, sizes[2])
        columns[part], rows[part] = column * step[0], row * step[1]
    return columns, rows, region, slices


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
