"""Rows of users, kept until all have been read: those of one user stand in one part. Private side.

Parts are chosen by a hash of the id, so each fits into memory when the whole does not. What has
no room waits in temporary files that have no name: no one can open them, and nothing is left of
them when the process ends, however it ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import WriteError

__all__ = ["Part", "Shelf"]

_PARTS = 64

# Rows that are divided at once; users are given back once half as many are together.
_TOGETHER = 2**20

_MEMORY = 10**9

# Bytes of a row in memory: the number of its user, its cell, its time, and a share of its id.
_ROW = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Part:
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
        return "<Part: private>"


class Shelf:
    """Takes batches of rows and gives them back by user.

    Parameters
    ----------
    memory : int, optional
        Bytes that rows may take in memory; what is more goes to files without a name.
    """

    def __init__(self, memory: int | None = None) -> None:
        memory = _MEMORY if memory is None else memory
        self._most_rows = max(memory // _ROW, 1)
        self._pieces: list[list[Any]] = [[] for _ in range(_PARTS)]
        self._files: list[IO[bytes]] = []
        self._writers: list[Any] = []
        self._rows = 0
        self._together = max(min(_TOGETHER, memory // 512), 1)
        self._waiting: list[tuple[Any, NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, ids: Any, codes: NDArray[np.int64], time: NDArray[np.int64]) -> None:
        """Put rows away, each with the part of its user."""
        self._waiting.append((ids, codes, time))
        if sum(len(waiting) for _, waiting, _ in self._waiting) >= self._together:
            self._put_away()

    def _put_away(self) -> None:
        """Divide the waiting rows; many at once, since an id then stands there once."""
        import pyarrow as pa

        ids, codes, time = zip(*self._waiting, strict=True) if self._waiting else ((), (), ())
        self._waiting = []
        if not sum(map(len, codes)):
            return
        encoded = pa.chunked_array(ids, pa.string()).combine_chunks().dictionary_encode()
        for number, piece in _pieces(encoded, np.concatenate(codes), np.concatenate(time)):
            self._pieces[number].append(piece)
            self._rows += len(piece)
        if self._rows > self._most_rows:
            self._spill()

    def parts(self, *, again: bool = False) -> Iterator[Part]:
        """The rows of all users, some users at a time; whether they are asked for again."""
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
            schema = _schema()
            self._writers = [pa.ipc.new_stream(file, schema) for file in self._files]
        for writer, pieces in zip(self._writers, self._pieces, strict=True):
            for piece in pieces:
                writer.write_batch(piece)
            pieces.clear()
        self._rows = 0

    def _read(self, number: int, again: bool) -> list[Any]:
        """Pieces of a part in its file, which the last reading gives back to the disk."""
        import pyarrow as pa

        file = self._files[number]
        file.seek(0)
        found = list(pa.ipc.open_stream(file))
        if not again:
            file.close()
        return found


def _schema() -> Any:
    """Columns of a piece."""
    import pyarrow as pa

    ids = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([("id", ids), ("code", pa.int64()), ("time", pa.int64())])


def _pieces(
    ids: Any, codes: NDArray[np.int64], time: NDArray[np.int64]
) -> Iterator[tuple[int, Any]]:
    """Rows of a batch by part; each piece has the ids of its own rows alone."""
    import pyarrow as pa

    part = _part_of(ids.dictionary)
    names = np.argsort(part, kind="stable")
    rank = np.empty(len(names), np.int32)
    rank[names] = np.arange(len(names), dtype=np.int32)
    users = rank[ids.indices.to_numpy()]
    row_part = np.sort(part)[users]
    order = np.argsort(row_part, kind="stable")
    users, codes, time = users[order], codes[order], time[order]
    dictionary = ids.dictionary.take(pa.array(names))
    edges = np.arange(_PARTS + 1)
    first_name = np.searchsorted(np.sort(part), edges)
    first_row = np.searchsorted(row_part[order], edges)
    for number in np.flatnonzero(np.diff(first_row)).tolist():
        here = slice(first_row[number], first_row[number + 1])
        own = dictionary.slice(first_name[number], first_name[number + 1] - first_name[number])
        local = pa.DictionaryArray.from_arrays(
            users[here] - first_name[number].astype(np.int32), own
        )
        arrays = [local, pa.array(codes[here]), pa.array(time[here])]
        yield number, pa.RecordBatch.from_arrays(arrays, schema=_schema())


def _part_of(names: Any) -> NDArray[np.uint8]:
    """Part of each id, by a hash that is the same in every batch."""
    import pandas as pd

    hashed = pd.util.hash_array(names.to_numpy(zero_copy_only=False), categorize=False)
    return (hashed % np.uint64(_PARTS)).astype(np.uint8)


def _joined(pieces: list[Any]) -> Part:
    """One part of its pieces, ids numbered over all of them."""
    import pyarrow as pa

    table = pa.Table.from_batches(pieces).unify_dictionaries().combine_chunks()
    ids = table["id"].chunk(0)
    return Part(
        users=ids.indices.to_numpy().astype(np.int64),
        names=ids.dictionary,
        codes=table["code"].to_numpy(),
        time=table["time"].to_numpy(),
    )
