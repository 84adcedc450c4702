"""Kept records of each user, so that parts with the same users can be merged. Private side.

The k records with the smallest hashes of a union are among those of its parts. Users are identified
by their ids, not by digests: two users with one digest would share one contribution limit, so
removing one of them would bring back records of the other, which breaks the guarantee for data
with such a pair, however rare it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Integers
from psd.ingest.cell_counter import cell_counter
from psd.ingest.contribution_bounding import running_number
from psd.ingest.row_hash import row_hashes, user_salts
from psd.ingest.tally import Tally

if TYPE_CHECKING:
    from psd.ingest.user_partitions import UserPartition
    from psd.privacy.unit import ContributionScope, PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["DAY", "UserRows", "keep_user_rows", "merge_user_rows", "number_units"]

DAY = 86_400_000_000
"""Microseconds of a day."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UserRows:
    """Kept records of users, at most k of each unit, sorted by user and hash. Private.

    Parameters
    ----------
    names : pyarrow.Array of string
        Distinct ids.
    users : ndarray, shape (n,), int64
        Number of the id of each record.
    hashes : ndarray, shape (n,), int64
        See `psd.ingest.row_hash`.
    columns, rows : ndarray, shape (n,), int64
        Cells of the full lattice.
    time : ndarray, shape (n,), int64
        Microseconds of local time; 0 without times.
    counts : ndarray, shape (n,), int64
        Number of such records, above 0; more than one if two parts hold equal records.
    """

    names: Any
    users: Integers
    hashes: Integers
    columns: Integers
    rows: Integers
    time: Integers
    counts: Integers

    def __repr__(self) -> str:
        return "<UserRows: private>"

    def __len__(self) -> int:
        """Number of distinct records."""
        return len(self.users)

    def tally(self, domain: Domain, slices: TimeSlices | None, unit: PrivacyUnit) -> Tally:
        """Count per cell of the full lattice, and per slice."""
        width, height = domain.lattice
        number = 1 if slices is None else len(slices)
        counter = cell_counter(number * width * height)
        codes = self.rows * width + self.columns
        if slices is not None:
            codes = codes + slices.index(self.time.astype("datetime64[us]")) * (width * height)
        counter.add(codes, self.counts)
        codes, counts = counter.counts()
        return Tally(
            columns=(codes % width).astype(np.int32),
            rows=(codes // width % height).astype(np.int32),
            counts=counts,
            contributions=unit.contributions,
            slice=None if slices is None else codes // (width * height),
        )


def number_units(
    users: Integers,
    time: Integers,
    slices: TimeSlices | None,
    unit: PrivacyUnit,
    scope: ContributionScope,
) -> Integers:
    """Number of the unit of each record: its user, or the day or slice of the user."""
    if unit.kind == "user-day":
        group = time // DAY
    elif slices is not None and scope == "slice":
        group = slices.index(time.astype("datetime64[us]"))
    else:
        return users
    group = group - group.min(initial=0)
    return np.unique(users * (int(group.max(initial=0)) + 1) + group, return_inverse=True)[1]


def keep_user_rows(
    partitions: Iterable[UserPartition],
    domain: Domain,
    slices: TimeSlices | None,
    unit: PrivacyUnit,
    scope: ContributionScope,
    key: bytes,
) -> UserRows:
    """Keep the k records of each unit with the smallest hashes."""
    hashed = (_hash_partition(partition, domain, key) for partition in partitions)
    kept_rows = [_keep_smallest(rows, slices, unit, scope) for rows in hashed]
    return merge_user_rows(kept_rows, slices, unit, scope)


def merge_user_rows(
    parts: Sequence[UserRows],
    slices: TimeSlices | None,
    unit: PrivacyUnit,
    scope: ContributionScope,
) -> UserRows:
    """Merge parts and keep the k records of each unit with the smallest hashes.

    Records that agree in user, hash, cell and time are combined: they count in the same cell, so it
    makes no difference which of them are kept.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not parts:
        return _from_columns(pa.array([], pa.string()), [np.empty(0, np.int64)] * 6)
    ids = pa.chunked_array([part.names for part in parts], pa.string()).combine_chunks()
    names = ids.unique()
    names = names.take(pc.sort_indices(names))
    numbers = pc.index_in(ids, value_set=names).to_numpy().astype(np.int64)
    first = np.cumsum([0, *(len(part.names) for part in parts)])
    users = [numbers[first[i] + part.users] for i, part in enumerate(parts)]
    rest = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("hashes", "columns", "rows", "time", "counts")
    ]
    merged = _from_columns(names, [np.concatenate(users), *rest])
    return _keep_smallest(merged, slices, unit, scope)


def _from_columns(names: Any, values: Sequence[Integers]) -> UserRows:
    """Make records of their columns."""
    users, hashes, columns, rows, time, counts = values
    return UserRows(
        names=names,
        users=users,
        hashes=hashes,
        columns=columns,
        rows=rows,
        time=time,
        counts=counts,
    )


def _hash_partition(partition: UserPartition, domain: Domain, key: bytes) -> UserRows:
    """Hash all records of a partition; equal records are numbered."""
    rows, columns = np.divmod(partition.codes, domain.lattice[0])
    order = np.lexsort((partition.time, partition.codes, partition.users))
    users, columns, rows, time = (
        v[order] for v in (partition.users, columns, rows, partition.time)
    )
    salt = user_salts(partition.names.to_pylist(), key)[:, users]
    occurrence = running_number([users, columns, rows, time])
    hashes = row_hashes(salt, columns, rows, time, occurrence)
    counts = np.ones(len(users), np.int64)
    return _from_columns(partition.names, [users, hashes, columns, rows, time, counts])


def _keep_smallest(
    records: UserRows, slices: TimeSlices | None, unit: PrivacyUnit, scope: ContributionScope
) -> UserRows:
    """Keep the k records of each unit with the smallest hashes; ties by cell, then time."""
    units = number_units(records.users, records.time, slices, unit, scope)
    order = np.lexsort((records.time, records.rows, records.columns, records.hashes, units))
    columns = [records.users, records.hashes, records.columns, records.rows, records.time]
    units, *columns = (values[order] for values in (units, *columns))
    first = np.flatnonzero(running_number([units, *columns]) == 0)
    counts = np.add.reduceat(records.counts[order], first) if len(first) else records.counts
    units, *columns = (values[first] for values in (units, *columns))
    before = np.cumsum(counts) - counts
    starts = np.flatnonzero(running_number([units]) == 0)
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(units))))
    counts = np.minimum(counts, unit.max_contributions - before)
    fits = counts > 0
    return _sort(records.names, [values[fits] for values in (*columns, counts)])


def _sort(names: Any, values: Sequence[Integers]) -> UserRows:
    """Sort records by user and hash; drop names of users without records."""
    import pyarrow as pa

    order = np.lexsort((values[4], values[3], values[2], values[1], values[0]))
    values = [column[order] for column in values]
    present, users = np.unique(values[0], return_inverse=True)
    return _from_columns(names.take(pa.array(present)), [users.astype(np.int64), *values[1:]])
