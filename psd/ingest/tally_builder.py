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

from psd.errors import DomainError, InputDataError
from psd.ingest.cell_counter import cell_counter
from psd.ingest.contribution_bounding import (
    keep_smallest,
    number_units,
    rows_per_unit,
    user_weights,
)
from psd.ingest.record_filter import Area, RecordFilter
from psd.ingest.row_hash import user_salts
from psd.ingest.tally import Batch, Tally
from psd.ingest.user_ids import normalise_ids
from psd.ingest.user_partitions import UserPartition, UserPartitions
from psd.ingest.user_rows import UserRows, keep_user_rows
from psd.privacy.unit import PrivacyUnit

if TYPE_CHECKING:
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["TallyBuilder", "tally_batches"]

# Bytes of one worker, which bounds the records of one partition.
_WORKER_BYTES = 2**29

Weighted = tuple[NDArray[np.int64], NDArray[np.int64] | None]
"""Cell codes of records, and their weights if they do not count once each."""


class TallyBuilder:
    """Collects the records of a source, then makes one tally of them.

    Guarantees
    ----------
    - Whether a record is dropped (no coordinates, outside the domain, the area or all slices)
      depends on that record alone.
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
    memory : int, optional
        Limit in bytes for records and cells; records of users get a third.
    limits_cells : bool
        Whether occupied cells that do not fit into the limit are refused.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        unit: PrivacyUnit,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        slices: TimeSlices | None = None,
        memory: int | None = None,
        limits_cells: bool = True,
    ) -> None:
        self.domain, self.unit, self.step = domain, unit, step
        self.slices = slices
        needs_time = unit.kind == "user-day" or slices is not None
        self._filter = RecordFilter(domain, area=area, slices=slices, needs_time=needs_time)
        self._columns, self._rows = (
            -(-size // width) for size, width in zip(domain.lattice, step, strict=True)
        )
        self._number = 1 if slices is None else len(slices)
        if self._number * self._columns * self._rows > 2**62:
            raise DomainError(
                f"lattice {domain.lattice[0]} x {domain.lattice[1]} is too fine for {self._number} "
                "slices; use a coarser one"
            )
        self._counter = cell_counter(
            self._number * self._columns * self._rows, memory if limits_cells else None
        )
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
            self._counter.add(self._cells(records.columns, records.rows, records.time))
            return
        codes = records.rows * self.domain.lattice[0] + records.columns
        self._partitions.add_rows(_ids(batch.user, records.inside), codes, records.time)

    @property
    def has_read(self) -> bool:
        """Whether a record was read, inside or not. Private."""
        return self._filter.report["read"] > 0

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
        codes, counts = self._counter.counts()
        return Tally(
            columns=(codes % self._columns * self.step[0]).astype(np.int32),
            rows=(codes // self._columns % self._rows * self.step[1]).astype(np.int32),
            counts=counts,
            contributions=unit.contributions,
            slice=None if self.slices is None else codes // (self._columns * self._rows),
            report={**report, "kept": counted},
        )

    def user_rows(self, key: bytes) -> UserRows:
        """Keep the records of users with their ids; can be called once, instead of `build`."""
        partitions, width = self._partitions.partitions(), self.domain.lattice[0]
        return keep_user_rows(partitions, self.unit, self.slices, width, key)

    def _cells(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64], moment: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Code of the cell in which each record is counted; the slice is a third coordinate."""
        codes = rows // self.step[1] * self._columns + columns // self.step[0]
        if self.slices is None or moment is None:
            return codes
        slices = self.slices.index(moment.astype("datetime64[us]"))
        return codes + slices * (self._columns * self._rows)

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
        units, rows = self._units(partition), partition.codes // self.domain.lattice[0]
        columns, time = partition.codes - rows * self.domain.lattice[0], partition.time
        if unit.weight:
            weights = user_weights(units, unit.weight)
            index = np.flatnonzero(weights)  # a record of weight 0 occupies no cell
            return self._cells(columns[index], rows[index], time[index]), weights[index]
        salt = user_salts(partition.names.to_pylist(), key)[:, partition.users]
        index = keep_smallest(units, salt, (columns, rows), time, unit.max_contributions)
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
    builder = TallyBuilder(domain, unit=unit, step=step, area=area, slices=slices, memory=memory)
    for batch in batches:
        builder.add_batch(batch)
    return builder.build(key)


def _ids(user: Any, inside: NDArray[np.bool_]) -> Any:
    """Ids of the records inside; a record without id is refused, wherever it lies."""
    import pyarrow as pa

    ids = normalise_ids(user)
    if ids.null_count:
        raise InputDataError(
            "records have no user id, so no limit per user can hold for them; remove these "
            "records, or build without user="
        )
    return ids if inside.all() else ids.filter(pa.array(inside))
