"""Rows of users, kept until all have been read: those of one user stand in one part. Private side.

Parts are chosen by a hash of the id, so each fits into memory when the whole does not. What has
no room waits in temporary files that have no name: no one can open them, and nothing is left of
them when the process ends, however it ends.
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

_PARTS = 64

# Rows that are divided at once; users are given back once half as many are together.
_TOGETHER = 2**20

_MEMORY = 10**9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UserPartition:
    """All rows of some users. Private.

    Parameters
    ----------
    users : ndarray, shape (n,), int64
        Number of each row's user.
    names : pyarrow.Array of string
        Ids by number.
    codes : ndarray, shape (n,), int64
        Cells of the full lattice.
    time : ndarray, shape (n,), int64
        Microseconds of the wall clock; 0 where rows have no time.
    """

    users: NDArray[np.int64]
    names: Any
    codes: NDArray[np.int64]
    time: NDArray[np.int64]

    def __repr__(self) -> str:
        return "<UserPartition: private>"


class UserPartitions:
    """Takes batches of rows and gives them back by user.

    Parameters
    ----------
    memory : int, optional
        Bytes that rows may take in memory; what is more goes to files without a name.
    """

    def __init__(self, memory: int | None = None) -> None:
        self._memory = _MEMORY if memory is None else memory
        self._together = max(min(_TOGETHER, self._memory // 512), 1)
        self._waiting: list[Any] = []
        self._pieces: list[list[Any]] = [[] for _ in range(_PARTS)]
        self._bytes = 0
        self._files: list[IO[bytes]] = []
        self._writers: list[Any] = []

    @cached_property
    def _connection(self) -> Any:
        """Where ids are hashed: in memory, and never in a file that has a name."""
        import duckdb

        return duckdb.connect(config={"threads": 1, "temp_directory": ""})

    def add_rows(self, ids: Any, codes: NDArray[np.int64], time: NDArray[np.int64] | None) -> None:
        """Put rows away, each with the part of its user; all batches have times, or none has."""
        import pyarrow as pa

        columns = {"id": ids, "code": to_arrow(codes)}
        if time is not None:
            columns["time"] = to_arrow(time)
        self._waiting.append(pa.RecordBatch.from_pydict(columns))
        if sum(map(len, self._waiting)) >= self._together:
            self._put_away()

    def _put_away(self) -> None:
        """Divide the waiting rows."""
        import pyarrow as pa

        waiting, self._waiting = [batch for batch in self._waiting if len(batch)], []
        if not waiting:
            return
        rows = pa.concat_batches(waiting)
        for number, piece in _pieces(rows, _part_of(rows.column("id"), self._connection)):
            self._pieces[number].append(piece)
        self._bytes += rows.nbytes
        if self._bytes > self._memory:
            self._spill()

    def partitions(self, *, again: bool = False) -> Iterator[UserPartition]:
        """The rows of all users, some users at a time; whether they are asked for again."""
        if not self._bytes and not self._files:  # so few that they were never divided
            yield from [_joined(self._waiting)] if sum(map(len, self._waiting)) else []
            return
        self._put_away()
        if self._files:
            self._spill()
            for writer in self._writers:
                writer.close()
        pieces: list[Any] = []
        for number in range(_PARTS):
            pieces += self._read(number, again) if self._files else self._pieces[number]
            if sum(map(len, pieces)) > self._together // 2:
                yield _joined(pieces)
                pieces = []
        if pieces:
            yield _joined(pieces)

    def _spill(self) -> None:
        """Move all rows in memory to the files."""
        try:
            self._write()
        except OSError as error:
            reason = error.strerror or "the disk may be full"
        else:
            return
        raise WriteError(
            f"rows that do not fit into memory cannot be kept in {tempfile.gettempdir()}: "
            f"{reason}; make room, name another folder by TMPDIR, or allow more --memory"
        )

    def _write(self) -> None:
        """Append all rows in memory to the files."""
        import pyarrow as pa

        if not self._files:
            self._files = [tempfile.TemporaryFile() for _ in range(_PARTS)]  # noqa: SIM115
            schema = next(piece.schema for pieces in self._pieces for piece in pieces)
            self._writers = [pa.ipc.new_stream(file, schema) for file in self._files]
        for writer, pieces in zip(self._writers, self._pieces, strict=True):
            for piece in pieces:
                writer.write_batch(piece)
            pieces.clear()
        self._bytes = 0

    def _read(self, number: int, again: bool) -> list[Any]:
        """Pieces of a part in its file, which the last reading gives back to the disk."""
        import pyarrow as pa

        file = self._files[number]
        file.seek(0)
        found = list(pa.ipc.open_stream(file))
        if not again:
            file.close()
        return found


def _pieces(rows: Any, part: NDArray[np.uint8]) -> Iterator[tuple[int, Any]]:
    """Rows of a batch by part."""
    sorted_rows = rows.take(to_arrow(np.argsort(part, kind="stable")))
    sizes = np.bincount(part, minlength=_PARTS)
    for number in np.flatnonzero(sizes).tolist():
        yield number, sorted_rows.slice(int(sizes[:number].sum()), int(sizes[number]))


def _part_of(ids: Any, connection: Any) -> NDArray[np.uint8]:
    """Part of each id, by a hash that is the same in every batch."""
    import pyarrow as pa

    table = connection.from_arrow(pa.table({"id": ids}))
    parts = table.project(f"(hash(id) % {_PARTS})::UTINYINT AS part").to_arrow_table()
    return from_arrow(parts["part"])


def _joined(pieces: list[Any]) -> UserPartition:
    """One part of its pieces, ids numbered over all of them."""
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
