"""Partition records by user, spilling to temporary files. Private side.

Partitions are chosen by a hash of the id, so each fits into memory even if all records do not.
Records beyond the memory limit go to files without a name: no other process can open them, and the
system removes them when the process ends, even if it is killed.

The number of an id of at most eight bytes is its bytes, the first one lowest, which is faster than
text. An id whose last byte is 0 would have the number of a shorter one, so it stays a text. No
digest stands for an id: two users with the same one would share one contribution limit, and
removing one of them would add records of the other, which breaks the guarantee, however rare it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers, from_arrow, to_arrow
from psd.errors import WriteError
from psd.ingest.contribution_bounding import (
    number_slices,
    number_units,
    running_number,
    smallest_in_order,
)
from psd.ingest.memory_limit import open_session
from psd.ingest.row_hash import row_hashes, user_salts
from psd.ingest.tally import Tally, add_tallies, split_columns

if TYPE_CHECKING:
    from psd.privacy.unit import PrivacyUnit
    from psd.space.time_slices import TimeSlices


PARTITIONS = 64
"""Number of partitions."""

_LONGEST = 8

# For each length: the least number of an id whose last byte is not 0.
_LEAST = np.array([0] + [256**size for size in range(_LONGEST)], np.uint64)

# An odd number near 2^64 divided by the golden ratio spreads consecutive numbers.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def short_numbers(ids: Any) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Compute the number of each id, Arrow texts without nulls, and whether it has one. Private."""
    import pyarrow.compute as pc

    _, offsets, data = ids.buffers()
    if len(ids) == 0 or data is None:
        return np.zeros(len(ids), np.uint64), np.ones(len(ids), bool)
    edges = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    length = np.diff(edges)
    # Without the long ids all others can be padded to one length, and their bytes read as numbers.
    if length.max() > _LONGEST:
        rows, is_short = np.flatnonzero(length <= _LONGEST), np.zeros(len(ids), bool)
        numbers = np.zeros(len(ids), np.uint64)
        numbers[rows], is_short[rows] = short_numbers(ids.take(to_arrow(rows)))
        return numbers, is_short
    padded = pc.ascii_rpad(ids, _LONGEST, padding="\0")
    words = np.frombuffer(padded.buffers()[-1], "<u8")[padded.offset :][: len(ids)]
    # Without a zero byte all ids have numbers; else those whose last byte is not 0.
    if np.frombuffer(data, np.uint8)[edges[0] : edges[-1]].all():
        return words, np.ones(len(ids), bool)
    return words, words >= _LEAST[length]


def short_names(numbers: Any) -> Any:
    """Convert numbers of ids back to the ids. Private."""
    import pyarrow as pa

    values = from_arrow(numbers).astype("<u8")
    # The last byte that is not 0 tells the length.
    length = np.searchsorted(_LEAST[1:], values, side="right")
    letters = values.view(np.uint8).reshape(-1, _LONGEST)
    data = letters[np.arange(_LONGEST) < length[:, None]]
    offsets = np.append(0, np.cumsum(length)).astype(np.int32)
    # Not by pyarrow.array, which imports pandas.
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def number_partitions(numbers: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Partition of each number, the same in every batch."""
    return ((numbers * _SPREAD) >> np.uint64(64 - PARTITIONS.bit_length() + 1)).astype(np.uint8)


# Records that wait until they are partitioned.
_ROWS_PER_BATCH = 2**17

# Partitions are joined up to about as many records, which a processor has in its cache.
_ROWS_PER_PARTITION = 2**17

# Numbers of each column for which memory is requested at once. The system gives it in large pages,
# many times as fast as in small ones.
_ROWS_PER_BLOCK = 2**21

# Without a limit: 25 million records. Pieces of a batch share its memory, which is free only after
# the last partition; a partition in a file is free after it was counted.
_MEMORY = 4 * 10**8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UserPartition:
    """All records of a set of users. Private."""

    users: NDArray[np.int64]  # (n,) int64; number of the user of each record
    names: Any  # ids by number
    codes: NDArray[np.int64]  # (n,) int64; row * width + column, of the (wider) full lattice
    time: NDArray[np.int64]  # (n,) int64; microseconds of local time; 0 without times
    values: NDArray[np.int64] | None = None  # (n, V) int64; weights of values

    def __repr__(self) -> str:
        return "<UserPartition: private>"


class UserPartitions:
    """Collects records, in files beyond `memory`, to return them by user; short ids are numbers."""

    def __init__(self, memory: int | None = None) -> None:
        self._memory = _MEMORY if memory is None else memory
        self._batch_size = max(min(_ROWS_PER_BATCH, self._memory // 512), 1)
        self._join_size = min(_ROWS_PER_PARTITION, self._memory // 1024)
        self._block, self._used = np.empty((0, 0), np.int64), 0
        self._waiting: tuple[list[Any], list[Any]] = ([], [])
        self._pieces: list[list[Any]] = [[] for _ in range(2 * PARTITIONS)]
        self._bytes = 0
        self._files: dict[int, IO[bytes]] = {}
        self._writers: dict[int, Any] = {}

    @cached_property
    def _connection(self) -> Any:
        """Connection that hashes ids in memory, never in a named file."""
        return open_session("SET threads = 1")

    def add_rows(
        self,
        ids: Any,
        codes: NDArray[np.int64],
        time: NDArray[np.int64] | None,
        inside: NDArray[np.bool_] | None = None,
        values: NDArray[np.int64] | None = None,
    ) -> None:
        """Add private records; all batches have times, or none has, and so with values.

        ids: Arrow texts without nulls; of those inside codes, time (m,) and values (m, V), int64.
        """
        import pyarrow as pa

        numbers, is_short = short_numbers(ids)
        if inside is not None and not inside.all():
            numbers, is_short = numbers[inside], is_short[inside]
            if not is_short.all():
                ids = ids.filter(pa.array(inside))
        columns = {"code": codes} | ({} if time is None else {"time": time})
        if values is not None:
            columns |= {f"value{number}": column for number, column in enumerate(values.T)}
        kinds: list[tuple[int, Any]] = [(0, slice(None))]  # short ids, by their numbers
        if not is_short.all():
            kinds = [(0, np.flatnonzero(is_short)), (1, np.flatnonzero(~is_short))]
        for kind, rows in kinds:
            chosen = ids.take(to_arrow(rows)) if kind else to_arrow(numbers[rows])
            waiting = {"id": chosen}
            for name, column in columns.items():
                waiting[name] = to_arrow(np.ascontiguousarray(column[rows]))
            self._waiting[kind].append(pa.RecordBatch.from_pydict(waiting))
        if max(sum(map(len, waiting)) for waiting in self._waiting) >= self._batch_size:
            self._partition_waiting()

    def _partition_waiting(self) -> None:
        """Partition the waiting records."""
        import pyarrow as pa

        for kind, all_waiting in enumerate(self._waiting):
            waiting = [batch for batch in all_waiting if len(batch)]
            all_waiting.clear()
            if not waiting:
                continue
            rows = waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            self._bytes += rows.nbytes
            if kind:
                # Partition of each id, by a hash that is the same in every batch.
                table = self._connection.from_arrow(pa.table({"id": rows.column("id")}))
                part = table.project(f"(hash(id) % {PARTITIONS})::UTINYINT AS part")
                parts = from_arrow(part.to_arrow_table()["part"])
                rows = rows.take(to_arrow(np.argsort(parts, kind="stable")))
            else:
                parts = number_partitions(from_arrow(rows.column("id")))
                rows = self._take_numbers(rows, np.argsort(parts, kind="stable"))
            for number, piece in _pieces(rows, parts):
                self._pieces[kind * PARTITIONS + number].append(piece)
        if self._bytes > self._memory:
            self._spill()

    def _take_numbers(self, rows: Any, order: NDArray[np.int64]) -> Any:
        """Take records whose columns are all numbers, in an order."""
        import pyarrow as pa

        end = self._used + len(order)
        # Batches before keep the old block alive as long as they need it.
        if rows.num_columns != len(self._block) or end > self._block.shape[1]:
            size = (rows.num_columns, max(_ROWS_PER_BLOCK, len(order)))
            self._block, self._used, end = np.empty(size, np.int64), 0, len(order)
        taken = {}
        for name, values, block in zip(rows.schema.names, rows.columns, self._block, strict=True):
            numbers = from_arrow(values)
            room = block[self._used : end].view(numbers.dtype)
            taken[name] = to_arrow(numbers.take(order, out=room, mode="clip"))
        self._used = end
        return pa.RecordBatch.from_pydict(taken)

    def partitions(self, *, again: bool = False) -> Iterator[UserPartition]:
        """Yield the records of all users by partition; ``again`` keeps the files."""
        if not self._bytes and not self._files:  # too few to be partitioned
            yield from (_join(waiting) for waiting in self._waiting if sum(map(len, waiting)))
            return
        self._partition_waiting()
        for writer in self._writers.values():
            writer.close()
        pieces: list[Any] = []
        for number in range(2 * PARTITIONS):
            pieces += self._read(number, again)
            is_last = number % PARTITIONS == PARTITIONS - 1  # kinds of ids are not joined
            if pieces and (is_last or sum(map(len, pieces)) > self._join_size):
                yield _join(pieces)
                pieces = []

    def _spill(self) -> None:
        """Move all records from memory to the files."""
        try:
            self._write()
        except OSError as error:
            reason = error.strerror or "the disk may be full"
        else:
            return
        raise WriteError(
            f"records that exceed the memory limit cannot be stored in {tempfile.gettempdir()}: "
            f"{reason}; free some space, name another folder by TMPDIR, or raise memory=SIZE"
        )

    def _write(self) -> None:
        """Append all records in memory to the files."""
        import pyarrow as pa

        for kind in (0, 1):
            numbers = range(kind * PARTITIONS, (kind + 1) * PARTITIONS)
            piece = next((piece for number in numbers for piece in self._pieces[number]), None)
            if piece is not None and numbers[0] not in self._files:
                for number in numbers:
                    self._files[number] = tempfile.TemporaryFile()  # noqa: SIM115
                    self._writers[number] = pa.ipc.new_stream(self._files[number], piece.schema)
            for number in numbers:
                for piece in self._pieces[number]:
                    self._writers[number].write_batch(piece)
                self._pieces[number].clear()
        self._bytes = 0

    def _read(self, number: int, again: bool) -> list[Any]:
        """Pieces of a partition in its file and in memory; the last reading removes the file."""
        import pyarrow as pa

        file = self._files.get(number)
        if file is None:
            return self._pieces[number]
        file.seek(0)
        pieces = list(pa.ipc.open_stream(file))
        if not again:
            file.close()
        return pieces + self._pieces[number]


def _pieces(rows: Any, part: NDArray[np.uint8]) -> Iterator[tuple[int, Any]]:
    """Split a batch that is in the order of its partitions."""
    sizes = np.bincount(part, minlength=PARTITIONS)
    starts = (np.cumsum(sizes) - sizes).tolist()
    for number, (start, size) in enumerate(zip(starts, sizes.tolist(), strict=True)):
        if size:
            yield number, rows.slice(start, size)


def _join(pieces: list[Any]) -> UserPartition:
    """Join pieces to one partition, with ids numbered across them."""
    import pyarrow as pa

    table = pa.Table.from_batches(pieces)
    ids = table["id"].dictionary_encode().combine_chunks()
    codes = from_arrow(table["code"])
    has_time = "time" in table.column_names
    values = [from_arrow(table[name]) for name in table.column_names if name.startswith("value")]
    names = ids.dictionary
    return UserPartition(
        users=from_arrow(ids.indices).astype(np.int64),
        names=short_names(names) if pa.types.is_integer(names.type) else names,
        codes=codes,
        time=from_arrow(table["time"]) if has_time else np.broadcast_to(np.int64(0), len(codes)),
        values=np.stack(values, axis=1) if values else None,
    )


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
        """Count per cell of the full lattice, slice, stratum; width: columns of a wider lattice."""
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
    """Keep the k smallest of each unit, M in each slice; width: columns of the (wide) lattice."""
    hashed = (_hash_records(partition, width, key) for partition in partitions)
    return merge_user_rows([_keep_smallest(rows, unit, slices) for rows in hashed], unit, slices)


def merge_user_rows(
    parts: Sequence[UserRows], unit: PrivacyUnit, slices: TimeSlices | None
) -> UserRows:
    """Merge parts and keep the k smallest of each unit; equal records are interchangeable."""
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
    # Equal records become neighbours, so that they can be numbered.
    order = np.lexsort((partition.time, partition.codes, partition.users))
    users, codes, time = (v[order] for v in (partition.users, partition.codes, partition.time))
    rows, columns = np.divmod(codes, width)
    salt = user_salts(partition.names, key)[:, users]
    hashes = row_hashes(salt, columns, rows, time, running_number([users, codes, time]))
    return UserRows(
        names=partition.names, users=users, hashes=hashes, columns=columns, rows=rows, time=time
    )


def _keep_smallest(records: UserRows, unit: PrivacyUnit, slices: TimeSlices | None) -> UserRows:
    """Keep the k smallest of each unit, of the M smallest per slice; ties by cell, then time."""
    units, k = number_units(unit, records.users, records.time, slices), unit.max_contributions
    order = np.lexsort((records.time, records.rows, records.columns, records.hashes, units))
    if unit.max_per_slice is None or slices is None:
        smallest = order[running_number([units[order]]) < k]
    else:
        of_slices = number_slices(records.users, records.time, slices)
        smallest = smallest_in_order(order, units, of_slices, (k, unit.max_per_slice))
    columns = {name: getattr(records, name)[smallest] for name in ("users", *_COLUMNS)}
    return UserRows(names=records.names, **columns)
