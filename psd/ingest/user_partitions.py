"""Partition records by user, spilling to temporary files. Private side.

Partitions are chosen by a hash of the id, so each fits into memory even if all records together do
not. Records beyond the memory limit go to temporary files without a name: no other process can open
them, and the system removes them when the process ends, even if it is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import from_arrow, to_arrow
from psd.errors import WriteError

__all__ = ["UserPartition", "UserPartitions"]

_PARTITIONS = 64

# Records that are partitioned at once; partitions are joined up to half as many.
_ROWS_PER_BATCH = 2**20

_MEMORY = 10**9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UserPartition:
    """All records of a set of users. Private.

    Parameters
    ----------
    users : ndarray, shape (n,), int64
        Number of the user of each record.
    names : pyarrow.Array of string
        Ids by number.
    codes : ndarray, shape (n,), int64
        Cells of the full lattice.
    time : ndarray, shape (n,), int64
        Microseconds of local time; 0 without times.
    """

    users: NDArray[np.int64]
    names: Any
    codes: NDArray[np.int64]
    time: NDArray[np.int64]

    def __repr__(self) -> str:
        return "<UserPartition: private>"


class UserPartitions:
    """Collects batches of records and returns them by user.

    Parameters
    ----------
    memory : int, optional
        Limit in bytes of records in memory; more records go to unnamed files.
    """

    def __init__(self, memory: int | None = None) -> None:
        self._memory = _MEMORY if memory is None else memory
        self._batch_size = max(min(_ROWS_PER_BATCH, self._memory // 512), 1)
        self._waiting: list[Any] = []
        self._pieces: list[list[Any]] = [[] for _ in range(_PARTITIONS)]
        self._bytes = 0
        self._files: list[IO[bytes]] = []
        self._writers: list[Any] = []

    @cached_property
    def _connection(self) -> Any:
        """Connection that hashes ids in memory, never in a named file."""
        import duckdb

        return duckdb.connect(config={"threads": 1, "temp_directory": ""})

    def add_rows(self, ids: Any, codes: NDArray[np.int64], time: NDArray[np.int64] | None) -> None:
        """Add records; all batches have times, or none has."""
        import pyarrow as pa

        columns = {"id": ids, "code": to_arrow(codes)}
        if time is not None:
            columns["time"] = to_arrow(time)
        self._waiting.append(pa.RecordBatch.from_pydict(columns))
        if sum(map(len, self._waiting)) >= self._batch_size:
            self._partition_waiting()

    def _partition_waiting(self) -> None:
        """Partition the waiting records."""
        import pyarrow as pa

        waiting, self._waiting = [batch for batch in self._waiting if len(batch)], []
        if not waiting:
            return
        rows = pa.concat_batches(waiting)
        for number, piece in _pieces(rows, _partition_numbers(rows.column("id"), self._connection)):
            self._pieces[number].append(piece)
        self._bytes += rows.nbytes
        if self._bytes > self._memory:
            self._spill()

    def partitions(self, *, again: bool = False) -> Iterator[UserPartition]:
        """Yield the records of all users by partition; ``again`` keeps the files."""
        if not self._bytes and not self._files:  # too few to be partitioned
            yield from [_join(self._waiting)] if sum(map(len, self._waiting)) else []
            return
        self._partition_waiting()
        if self._files:
            self._spill()
            for writer in self._writers:
                writer.close()
        pieces: list[Any] = []
        for number in range(_PARTITIONS):
            pieces += self._read(number, again) if self._files else self._pieces[number]
            if sum(map(len, pieces)) > self._batch_size // 2:
                yield _join(pieces)
                pieces = []
        if pieces:
            yield _join(pieces)

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
            f"{reason}; free some space, name another folder by TMPDIR, or raise memory="
        )

    def _write(self) -> None:
        """Append all records in memory to the files."""
        import pyarrow as pa

        if not self._files:
            self._files = [tempfile.TemporaryFile() for _ in range(_PARTITIONS)]  # noqa: SIM115
            schema = next(piece.schema for pieces in self._pieces for piece in pieces)
            self._writers = [pa.ipc.new_stream(file, schema) for file in self._files]
        for writer, pieces in zip(self._writers, self._pieces, strict=True):
            for piece in pieces:
                writer.write_batch(piece)
            pieces.clear()
        self._bytes = 0

    def _read(self, number: int, again: bool) -> list[Any]:
        """Read the pieces of a partition from its file; the last reading removes the file."""
        import pyarrow as pa

        file = self._files[number]
        file.seek(0)
        pieces = list(pa.ipc.open_stream(file))
        if not again:
            file.close()
        return pieces


def _pieces(rows: Any, part: NDArray[np.uint8]) -> Iterator[tuple[int, Any]]:
    """Split a batch by partition."""
    sorted_rows = rows.take(to_arrow(np.argsort(part, kind="stable")))
    sizes = np.bincount(part, minlength=_PARTITIONS)
    for number in np.flatnonzero(sizes).tolist():
        yield number, sorted_rows.slice(int(sizes[:number].sum()), int(sizes[number]))


def _partition_numbers(ids: Any, connection: Any) -> NDArray[np.uint8]:
    """Partition of each id, by a hash that is the same in every batch."""
    import pyarrow as pa

    table = connection.from_arrow(pa.table({"id": ids}))
    parts = table.project(f"(hash(id) % {_PARTITIONS})::UTINYINT AS part").to_arrow_table()
    return from_arrow(parts["part"])


def _join(pieces: list[Any]) -> UserPartition:
    """Join pieces to one partition, with ids numbered across them."""
    import pyarrow as pa

    table = pa.Table.from_batches(pieces)
    ids = table["id"].dictionary_encode().combine_chunks()
    codes = from_arrow(table["code"])
    has_time = "time" in table.column_names
    return UserPartition(
        users=from_arrow(ids.indices).astype(np.int64),
        names=ids.dictionary,
        codes=codes,
        time=from_arrow(table["time"]) if has_time else np.broadcast_to(np.int64(0), len(codes)),
    )
