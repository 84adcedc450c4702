"""Rows on their way to a tally: checked, laid on the lattice, put away by user. Private side.

Batches of coordinates come in, each is laid on the public lattice, and under a bound each unit
keeps at most k rows. Which rows these are depends on the unit's own rows and a key alone, so that
removing a user changes no other user's kept rows, and the order of the rows is nothing.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError
from psd.ingest.cell_counter import cell_counter
from psd.ingest.contribution_bounding import keep_smallest, rows_per_unit, user_weights
from psd.ingest.row_hash import user_salts
from psd.ingest.tally import Batch, Tally
from psd.ingest.user_ids import normalise_ids
from psd.ingest.user_partitions import UserPartition, UserPartitions
from psd.privacy.unit import PrivacyUnit

if TYPE_CHECKING:
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["Area", "TallyBuilder", "tally_batches"]

_DAY = 86_400_000_000

# Bytes that the rows of some users take while they are bounded.
_WORKER = 2**29

Weighted = tuple[NDArray[np.int64], NDArray[np.int64] | None]
"""Codes of rows, and weights where each does not count once."""


class Area(Protocol):
    """A public part of the domain; rows outside of it are dropped before every question."""

    def contains(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which points lie in it."""


class TallyBuilder:
    """Takes in the rows of a source once; then makes one tally of them.

    Guarantees
    ----------
    - What is dropped (no coordinates, outside the domain, the area or all slices) depends on
      the row alone.
    - Rows of users wait until all are read; which are kept is a function of the user's own
      rows and the key.

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
        Bytes for rows and cells while rows are read; rows of users get a third.
    anywhere : bool
        Whether rows may all lie elsewhere: after an answer has been drawn it is too late to
        refuse them. Public.
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
        anywhere: bool = False,
    ) -> None:
        self.domain, self.unit, self.step = domain, unit, step
        self.area, self.slices, self._anywhere = area, slices, anywhere
        self._columns, self._rows = (
            -(-size // width) for size, width in zip(domain.lattice, step, strict=True)
        )
        self._number = 1 if slices is None else len(slices)
        if self._number * self._columns * self._rows > 2**62:
            raise DomainError(
                f"a lattice of {domain.lattice[0]} x {domain.lattice[1]} cells is too fine for "
                f"{self._number} slices; take a coarser one"
            )
        self._counter = cell_counter(self._number * self._columns * self._rows, memory)
        self._partitions = UserPartitions(None if memory is None else memory // 3)
        self._workers = os.cpu_count() or 1
        if memory is not None:
            self._workers = max(1, min(self._workers, memory // _WORKER))
        self._seen = Counter({"read": 0, "without coordinates": 0, "outside": 0})
        self._placed = self._inside = 0

    def add_batch(self, batch: Batch) -> None:
        """Take in one batch."""
        if batch.time is None and (self.unit.kind == "user-day" or self.slices is not None):
            raise InputDataError("rows without a time, which days and slices need; name its column")
        self._check_coordinates(batch)
        columns, rows, inside = self.domain.quantise(batch.x, batch.y)
        read, missing = len(inside), int(np.count_nonzero(np.isnan(batch.x) | np.isnan(batch.y)))
        time = None if batch.time is None else batch.time[inside]
        self._placed += len(columns)
        kept = self._wanted(batch, inside, time)
        if kept is not None:
            columns, rows = columns[kept], rows[kept]
            time = None if time is None else time[kept]
            inside[np.flatnonzero(inside)[~kept]] = False
        cells = (columns.astype(np.int64), rows.astype(np.int64))
        put = self._put(*cells, time, batch.user, inside)
        self._seen["read"] += read
        self._seen["without coordinates"] += missing
        self._seen["outside"] += read - missing - put
        self._inside += put

    def rows_per_unit(self) -> NDArray[np.int64]:
        """Rows of each unit inside, in no order. Private: a question to users is about these."""
        self._check_place()
        found = [
            rows_per_unit(self._units(part)) for part in self._partitions.partitions(again=True)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    def build(self, key: bytes | None = None, unit: PrivacyUnit | None = None) -> Tally:
        """Count what was taken in; once.

        Parameters
        ----------
        key : bytes, optional
            Key of the hash that chooses the kept rows; random where not given.
        unit : PrivacyUnit, optional
            A bound found since, of the kind that the rows were taken in for.
        """
        self._check_place()
        unit = self.unit if unit is None else unit
        kept = self._inside
        if unit.has_user:
            kept = self._count_users(partial(self._bounded, unit, key or secrets.token_bytes(16)))
        report = dict(self._seen)
        if unit.has_user and not unit.weight:
            report["over the limit"] = self._inside - kept
        codes, counts = self._counter.counted()
        return Tally(
            columns=(codes % self._columns * self.step[0]).astype(np.int32),
            rows=(codes // self._columns % self._rows * self.step[1]).astype(np.int32),
            counts=counts,
            contributions=unit.contributions,
            slice=None if self.slices is None else codes // (self._columns * self._rows),
            report={**report, "kept": kept},
        )

    def user_partitions(self) -> Iterator[UserPartition]:
        """Rows of users as they were put away, once; in place of `build`."""
        self._check_place()
        yield from self._partitions.partitions()

    def _check_place(self) -> None:
        """Refuse rows that all lie elsewhere."""
        if self._anywhere:
            return
        if self._placed == 0 and self._seen["read"] > self._seen["without coordinates"]:
            raise DomainError(
                f"no row lies inside the bounds {self.domain.bounds}; are x and y swapped, are the "
                "bounds in the order west south east north, or is the CRS another one?"
            )

    def _check_coordinates(self, batch: Batch) -> None:
        """Degrees have limits; a value beyond them says that the columns are not what was said."""
        if not self.domain.geographic:
            return
        for name, values, limit in (("x", batch.x, 180), ("y", batch.y, 90)):
            if len(values) and max(np.fmax.reduce(values), -np.fmin.reduce(values)) > limit:
                raise DomainError(
                    f"column for {name} holds values beyond {limit} degrees, which no coordinate "
                    "of the CRS has; are x and y swapped, are these metres of a projected CRS "
                    "(give crs=), or longitudes from 0 to 360?"
                )

    def _wanted(
        self, batch: Batch, inside: NDArray[np.bool_], time: NDArray[np.datetime64] | None
    ) -> NDArray[np.bool_] | None:
        """Which of the rows in the bounds lie in the area and in a slice; None for all."""
        wanted = None
        if self.area is not None:
            wanted = self.area.contains(batch.x[inside], batch.y[inside])
        if time is not None:
            if np.isnat(time).any():
                raise InputDataError("rows without a time; remove them, or build without --time")
            if self.slices is not None:
                within = self.slices.index(time) >= 0
                wanted = within if wanted is None else wanted & within
        return wanted

    def _put(
        self,
        columns: NDArray[np.int64],
        rows: NDArray[np.int64],
        time: NDArray[np.datetime64] | None,
        user: Any,
        inside: NDArray[np.bool_],
    ) -> int:
        """Count rows at once where each is its own unit; else put them away by user."""
        moment = None if time is None else time.astype("datetime64[us]").astype(np.int64)
        if not self.unit.has_user:
            self._counter.add(self._cells(columns, rows, moment))
            return len(columns)
        ids, codes = _ids(user, inside), rows * self.domain.lattice[0] + columns
        self._partitions.add_rows(ids, codes, moment)
        return len(codes)

    def _cells(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64], moment: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Code of the cell that each row is counted in; the slice is one more coordinate of it."""
        codes = rows // self.step[1] * self._columns + columns // self.step[0]
        if self.slices is None or moment is None:
            return codes
        return codes + self._slice_of(moment) * (self._columns * self._rows)

    def _slice_of(self, moment: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slice of each row."""
        if self.slices is None:
            return np.zeros(1, np.int64)
        return self.slices.index(moment.astype("datetime64[us]"))

    def _units(self, part: UserPartition) -> NDArray[np.int64]:
        """Number of each row's unit."""
        if self.unit.kind == "user":
            return part.users
        group = self._slice_of(part.time) if self.unit.kind == "user-slice" else part.time // _DAY
        group = group - group.min(initial=0)
        several = int(group.max(initial=0)) + 1
        return np.unique(part.users * several + group, return_inverse=True)[1]

    def _count_users(self, bounded: Callable[[UserPartition], Weighted]) -> int:
        """Count what is kept of all users' rows; its number of rows."""
        kept, parts = 0, self._partitions.partitions()
        with ThreadPoolExecutor(self._workers) as pool:
            while few := list(islice(parts, self._workers)):
                for codes, weights in pool.map(bounded, few):
                    self._counter.add(codes, weights)
                    kept += len(codes)
        return kept

    def _bounded(self, unit: PrivacyUnit, key: bytes, part: UserPartition) -> Weighted:
        """Cells of the rows that are kept of some users, and their weights where they have any."""
        units, rows = self._units(part), part.codes // self.domain.lattice[0]
        columns = part.codes - rows * self.domain.lattice[0]
        if unit.weight:
            weights = user_weights(units, unit.weight)
            kept = np.flatnonzero(weights)  # a share of nothing occupies no cell
            return self._cells(columns[kept], rows[kept], part.time[kept]), weights[kept]
        salt = user_salts(part.names.to_pylist(), key)[:, part.users]
        kept = keep_smallest(units, salt, (columns, rows), part.time, unit.max_contributions)
        return self._cells(columns[kept], rows[kept], part.time[kept]), None


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
    """Count the rows of a source per lattice cell, at most k rows per unit.

    Guarantees
    ----------
    - Unit record: one row more or less changes one count by 1.
    - Unit user: the rows kept of a user are a function of that user's rows inside the domain
      and the key; one user more or less changes the counts by at most k in sum. Likewise a
      user's day, or a user's slice.
    - Users counted: one user more or less changes the counts by at most M in sum.
    - The order and the partition of the rows change nothing.

    Parameters
    ----------
    batches : iterable of Batch
        Rows of one source; with ids where the unit has users, with times where it has days or
        there are slices. Private.
    domain : Domain
        Public; rows outside are dropped before anything is counted or bounded.
    unit : PrivacyUnit, optional
        Whose presence is hidden; each row its own where not given. Public.
    key : bytes, optional
        Key of the hash that chooses the kept rows; random where not given. Independent of the
        data.
    step : tuple of int
        Lattice columns and rows that are counted together. Public.
    area : Area, optional
        Public part of the domain; rows outside of it are dropped like those outside the domain.
    slices : TimeSlices, optional
        Public time slices; rows in none of them are dropped too.
    memory : int, optional
        Cap in bytes; rows of users that have no room wait in files without a name.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    DomainError
        If a value is no coordinate of the CRS, or rows exist and none lies inside the bounds.
    InputDataError
        If a row has no user id, or no time where times were asked for.

    Notes
    -----
    Differential privacy holds for each fixed key, also a known one: the choice for user u reads
    rows of u alone. The key serves unbiasedness, so that no one can aim a place at being kept.
    """
    unit = PrivacyUnit() if unit is None else unit
    builder = TallyBuilder(domain, unit=unit, step=step, area=area, slices=slices, memory=memory)
    for batch in batches:
        builder.add_batch(batch)
    return builder.build(key)


def _ids(user: Any, inside: NDArray[np.bool_]) -> Any:
    """Ids of the rows inside; a row without one is refused."""
    import pyarrow as pa

    ids = normalise_ids(user if inside.all() else user.filter(pa.array(inside)))
    if ids.null_count:
        raise InputDataError(
            "rows without a user id; a bound per user cannot hold for them: remove these rows "
            "or build without --user"
        )
    return ids
