"""Kept records of each user, so that parts with the same users can be merged. Private side.

The k records with the smallest hashes of a union are among those of its parts. Users are identified
by their ids, not by digests: two users with the same digest would share one contribution limit.
Removing one of them would then add records of the other, which breaks the guarantee for data with
such a pair, even if such pairs are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Integers
from psd.ingest.contribution_bounding import (
    number_slices,
    number_units,
    running_number,
    smallest_in_order,
)
from psd.ingest.row_hash import row_hashes, user_salts
from psd.ingest.tally import Tally, add_tallies, split_columns

if TYPE_CHECKING:
    from psd.ingest.user_partitions import UserPartition
    from psd.privacy.unit import PrivacyUnit
    from psd.space.time_slices import TimeSlices

__all__ = ["UserRows", "keep_user_rows", "merge_user_rows"]

_COLUMNS = ("hashes", "columns", "rows", "time")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UserRows:
    """Kept records of users, at most k of each unit, sorted by unit and hash. Private."""

    names: Any  # distinct ids
    users: Integers  # (n,) int64; number of the id of each record
    hashes: Integers  # (n,) int64; see `psd.ingest.row_hash`
    # (n,) int64; cells of the full lattice; with regions, of the wider one of `psd.ingest.tally`.
    columns: Integers
    rows: Integers
    time: Integers  # (n,) int64; microseconds of local time; 0 without times

    def __repr__(self) -> str:
        return "<UserRows: private>"

    def tally(self, slices: TimeSlices | None, width: int | None = None) -> Tally:
        """Count per cell of the full lattice, and per slice and stratum.

        width: columns of the lattice, if the columns are those of a wider one.
        """
        columns, region = self.columns, None
        if width is not None:
            columns, region = split_columns(columns, width)
        records = Tally(
            columns=columns.astype(np.int32),
            rows=self.rows.astype(np.int32),
            counts=np.ones(len(self.users), np.int64),
            slice=None if slices is None else slices.index(self.time.astype("datetime64[us]")),
            region=None if region is None else region.astype(np.int32),
        )
        return add_tallies([records])


def keep_user_rows(
    partitions: Iterable[UserPartition],
    unit: PrivacyUnit,
    slices: TimeSlices | None,
    width: int,
    key: bytes,
) -> UserRows:
    """Keep the k records of each unit with the smallest hashes, of at most M in each slice.

    partitions: private; all else public, and `key` independent of the data. width: columns of the
    lattice, or of the wider one.
    """
    hashed = (_hash_records(partition, width, key) for partition in partitions)
    return merge_user_rows([_keep_smallest(rows, unit, slices) for rows in hashed], unit, slices)


def merge_user_rows(
    parts: Sequence[UserRows], unit: PrivacyUnit, slices: TimeSlices | None
) -> UserRows:
    """Merge parts and keep the k records of each unit with the smallest hashes.

    Records of two parts that agree in user, hash, cell and time count in the same cell, so it makes
    no difference which of them are kept.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # Number the distinct ids of all parts in their order, and the users of each part by these.
    ids = pa.chunked_array([part.names for part in parts], pa.string()).combine_chunks()
    names = ids.unique()
    names = names.take(pc.sort_indices(names))
    numbers = pc.index_in(ids, value_set=names).to_numpy().astype(np.int64)
    first = np.cumsum([0, *(len(part.names) for part in parts)])
    users = [numbers[start + part.users] for start, part in zip(first, parts, strict=False)]
    columns = {name: [getattr(part, name) for part in parts] for name in _COLUMNS}
    merged = {
        name: np.concatenate([np.empty(0, np.int64), *values])
        for name, values in {"users": users, **columns}.items()
    }
    return _keep_smallest(UserRows(names=names, **merged), unit, slices)


def _hash_records(partition: UserPartition, width: int, key: bytes) -> UserRows:
    """Hash all records of a partition; equal records are numbered."""
    order = np.lexsort((partition.time, partition.codes, partition.users))
    users, codes, time = (v[order] for v in (partition.users, partition.codes, partition.time))
    rows, columns = np.divmod(codes, width)
    salt = user_salts(partition.names.to_pylist(), key)[:, users]
    hashes = row_hashes(salt, columns, rows, time, running_number([users, codes, time]))
    return UserRows(
        names=partition.names, users=users, hashes=hashes, columns=columns, rows=rows, time=time
    )


def _keep_smallest(records: UserRows, unit: PrivacyUnit, slices: TimeSlices | None) -> UserRows:
    """Keep the k records of each unit with the smallest hashes; ties by cell, then time.

    With a limit per slice, these are of the M of each slice with the smallest hashes.
    """
    units, k = number_units(unit, records.users, records.time, slices), unit.max_contributions
    order = np.lexsort((records.time, records.rows, records.columns, records.hashes, units))
    if unit.max_per_slice is None or slices is None:
        smallest = order[running_number([units[order]]) < k]
    else:
        of_slices = number_slices(records.users, records.time, slices)
        smallest = smallest_in_order(order, units, of_slices, (k, unit.max_per_slice))
    columns = {name: getattr(records, name)[smallest] for name in ("users", *_COLUMNS)}
    return UserRows(names=records.names, **columns)
