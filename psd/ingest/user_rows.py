"""Tallies that carry each user's kept rows, so that parts of one user can be joined. Private side.

A line is a row that a user keeps, with its mark: the k lines of smallest marks of a union are
among those of its parts. Users are told apart by their ids as they are. A digest would not do: two
users of one digest would share one bound, so that removing one of them brings back rows of the
other, which breaks the guarantee for data that hold such a pair, however rare it is.
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
    """Kept rows of users, at most k of each unit, by user and mark. Private.

    Parameters
    ----------
    names : pyarrow.Array of string
        Different ids.
    users : ndarray, shape (n,), int64
        Number of each line's id.
    hashes : ndarray, shape (n,), int64
        See `psd.ingest.row_hash`.
    columns, rows : ndarray, shape (n,), int64
        Cells of the full lattice.
    time : ndarray, shape (n,), int64
        Microseconds of the wall clock; 0 where rows have no time.
    counts : ndarray, shape (n,), int64
        Rows that agree in all of this, above 0; more than one where two parts hold equal rows.
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
        """Number of lines."""
        return len(self.users)

    def tally(self, domain: Domain, slices: TimeSlices | None, unit: PrivacyUnit) -> Tally:
        """Counts per cell of the full lattice, and per slice."""
        width, height = domain.lattice
        number = 1 if slices is None else len(slices)
        counter = cell_counter(number * width * height)
        codes = self.rows * width + self.columns
        if slices is not None:
            codes = codes + slices.index(self.time.astype("datetime64[us]")) * (width * height)
        counter.add(codes, self.counts)
        codes, counts = counter.counted()
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
    bound: ContributionScope,
) -> Integers:
    """Number of each line's unit: its user, or the user's day or slice."""
    if unit.kind == "user-day":
        group = time // DAY
    elif slices is not None and bound == "slice":
        group = slices.index(time.astype("datetime64[us]"))
    else:
        return users
    group = group - group.min(initial=0)
    return np.unique(users * (int(group.max(initial=0)) + 1) + group, return_inverse=True)[1]


def keep_user_rows(
    parts: Iterable[UserPartition],
    domain: Domain,
    slices: TimeSlices | None,
    unit: PrivacyUnit,
    bound: ContributionScope,
    key: bytes,
) -> UserRows:
    """The k rows of each unit with the smallest marks, of rows by user."""
    found = [_marked(part, domain, key) for part in parts]
    return merge_user_rows(
        [_smallest(one, slices, unit, bound) for one in found], slices, unit, bound
    )


def merge_user_rows(
    several: Sequence[UserRows],
    slices: TimeSlices | None,
    unit: PrivacyUnit,
    bound: ContributionScope,
) -> UserRows:
    """The k rows of each unit with the smallest marks, of all lines together.

    Lines that agree in user, mark, cell and time are one with several rows: they count in the
    same cell, so which of them are kept is the same to everybody.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not several:
        return _lines(pa.array([], pa.string()), [np.empty(0, np.int64)] * 6)
    ids = pa.chunked_array([one.names for one in several], pa.string()).combine_chunks()
    names = ids.unique()
    names = names.take(pc.sort_indices(names))
    numbers = pc.index_in(ids, value_set=names).to_numpy().astype(np.int64)
    first = np.cumsum([0, *(len(one.names) for one in several)])
    users = [numbers[first[i] + one.users] for i, one in enumerate(several)]
    rest = [
        np.concatenate([getattr(one, name) for one in several])
        for name in ("hashes", "columns", "rows", "time", "counts")
    ]
    return _smallest(_lines(names, [np.concatenate(users), *rest]), slices, unit, bound)


def _lines(names: Any, values: Sequence[Integers]) -> UserRows:
    """Lines of their columns."""
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


def _marked(part: UserPartition, domain: Domain, key: bytes) -> UserRows:
    """All rows of some users, each with its mark; equal rows are numbered."""
    rows, columns = np.divmod(part.codes, domain.lattice[0])
    order = np.lexsort((part.time, part.codes, part.users))
    users, columns, rows, time = (v[order] for v in (part.users, columns, rows, part.time))
    salt = user_salts(part.names.to_pylist(), key)[:, users]
    occurrence = running_number([users, columns, rows, time])
    found = row_hashes(salt, columns, rows, time, occurrence)
    return _lines(part.names, [users, found, columns, rows, time, np.ones(len(users), np.int64)])


def _smallest(
    lines: UserRows, slices: TimeSlices | None, unit: PrivacyUnit, bound: ContributionScope
) -> UserRows:
    """The k rows of each unit with the smallest marks; ties by cell, then time."""
    units = number_units(lines.users, lines.time, slices, unit, bound)
    order = np.lexsort((lines.time, lines.rows, lines.columns, lines.hashes, units))
    columns = [lines.users, lines.hashes, lines.columns, lines.rows, lines.time]
    units, *columns = (values[order] for values in (units, *columns))
    first = np.flatnonzero(running_number([units, *columns]) == 0)
    counts = np.add.reduceat(lines.counts[order], first) if len(first) else lines.counts
    units, *columns = (values[first] for values in (units, *columns))
    before = np.cumsum(counts) - counts
    starts = np.flatnonzero(running_number([units]) == 0)
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(units))))
    counts = np.minimum(counts, unit.max_contributions - before)
    kept = counts > 0
    return _of_kept(lines.names, [values[kept] for values in (*columns, counts)])


def _of_kept(names: Any, values: Sequence[Integers]) -> UserRows:
    """Lines by user and mark; a user without a line has no name."""
    import pyarrow as pa

    order = np.lexsort((values[4], values[3], values[2], values[1], values[0]))
    values = [column[order] for column in values]
    there, users = np.unique(values[0], return_inverse=True)
    return _lines(names.take(pa.array(there)), [users.astype(np.int64), *values[1:]])
