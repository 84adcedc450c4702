"""The state of a stream: one SQLite file that its owner alone may read. Private side.

P1. A slice is drawn once. Proof. All draws of a slice take their bytes from one tape, in order. A
byte enters the tape from the operating system, and the tape is on the disk before a draw reads the
byte. The questions of a slice are a function of its records, of public parameters and of answers.
So a process that is killed at any step and runs again on the same records draws the same answers.
The tape is erased in the transaction that stores these, and from then on the slice is refused.
Nothing is published before that transaction, so no two draws of a slice are ever seen.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import BESIDE_DATABASES, write_file
from psd.errors import InputDataError, WriteError
from psd.ingest.tally import Tally, add_tallies
from psd.ledger.charges import DrawnSlice
from psd.mechanisms.random_words import system_bytes
from psd.version import old_format

FORMAT = 1
"""The format that is written, and the only one that is read."""

# Marks an SQLite file as the state of a stream: the bytes "psSt". States of older formats, whose
# numbers were 1 to 6, have "psdS": so neither is taken for the other.
_APPLICATION = 0x70735374
_OLD_APPLICATION = 0x70736453

# Seconds to wait for another process; reading the status takes milliseconds.
_TIMEOUT = 2.0

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE plan (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE answer (series INTEGER, number INTEGER, digest TEXT NOT NULL, file TEXT NOT NULL,
    drawn TEXT NOT NULL, release BLOB NOT NULL, PRIMARY KEY (series, number)) STRICT, WITHOUT ROWID;
CREATE TABLE draw (number INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE block (level INTEGER, step INTEGER, tally BLOB NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (level, step)) STRICT, WITHOUT ROWID;
CREATE TABLE word (slice INTEGER, block INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (slice, block))
    STRICT, WITHOUT ROWID;
CREATE TABLE contribution (period TEXT, id TEXT, records INTEGER NOT NULL, PRIMARY KEY (period, id))
    STRICT, WITHOUT ROWID;
"""

_SENTENCES = {
    "SQLITE_BUSY": "is in use by another process; try again when that has finished",
    "SQLITE_FULL": "cannot grow, the disk is full; free some space and add the slice again",
    "SQLITE_READONLY": "cannot be written; check its permissions, and those of its folder",
    "SQLITE_CANTOPEN": "cannot be opened; check its permissions, and those of its folder",
    "SQLITE_IOERR": "cannot be read or written; the disk may be full or the file too large",
    "SQLITE_NOTADB": "is not the state of a stream of psd",
    "SQLITE_CORRUPT": "is damaged or cut short; restore the latest copy, made after the last slice",
}


SLICES, TOTALS = 0, 1
"""Numbers of the public series of a stream."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class Block:
    """Exact tally and answer of a block of steps. Private."""

    tally: bytes  # private
    answer: bytes  # numbers of its nodes, which are public once totals are


class StoredAnswer(NamedTuple):
    """What the state keeps of a slice of a public series. Public."""

    release: bytes  # as a file has it
    digest: str  # of the series with the slice
    file: str  # SHA-256 of all bytes of the file of this series
    drawn: str  # digest of the slice alone, see `psd.release.file.slice_digest`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """An open state, locked against all other processes. Private.

    P1. What a method has written is on the disk when it returns, all of it or nothing.
    """

    database: sqlite3.Connection

    def plan(self) -> dict[str, str]:
        """Read the facts that were fixed when the stream was created."""
        return dict(self.database.execute("SELECT name, value FROM plan"))

    def digests(self, series: int = SLICES) -> dict[int, str]:
        """Digest of a public series after each slice that was added, by the slice's number."""
        query = "SELECT number, digest FROM answer WHERE series = ? ORDER BY number"
        return {int(n): str(digest) for n, digest in self.database.execute(query, [series])}

    def slice_digests(self, series: int) -> list[str]:
        """Digest of each slice of a public series alone, in the order of time. Public."""
        query = "SELECT drawn FROM answer WHERE series = ? ORDER BY number"
        return [digest for (digest,) in self.database.execute(query, [series])]

    def draws(self) -> dict[int, str]:
        """Random ids of the draws of the slices that were added, by the slice's number. Public."""
        return dict(self.database.execute("SELECT number, id FROM draw"))

    def drawn_slice(self, number: int) -> DrawnSlice:
        """Draw of a slice that was added. Public."""
        query = "SELECT id, drawn FROM draw JOIN answer USING (number) WHERE number = ?"
        rows = self.database.execute(f"{query} ORDER BY series", [number]).fetchall()
        return DrawnSlice(draw=rows[0][0], digests=tuple(digest for _, digest in rows))

    def file_digest(self, series: int, number: int) -> str:
        """SHA-256 of the file of a public series after a slice."""
        query = "SELECT file FROM answer WHERE series = ? AND number = ?"
        return str(self.database.execute(query, [series, number]).fetchone()[0])

    def latest_releases(self, series: int, number: int) -> list[bytes]:
        """Read the releases of the last slices that were added, in the order of time. Public."""
        query = "SELECT release FROM answer WHERE series = ? ORDER BY number DESC LIMIT ?"
        rows = self.database.execute(query, [series, number]).fetchall()
        return [content for (content,) in reversed(rows)]

    def releases(self, series: int = SLICES) -> Iterator[bytes]:
        """Yield the releases of a series that were added, in the order of time. Public."""
        query = "SELECT release FROM answer WHERE series = ? ORDER BY number"
        for (content,) in self.database.execute(query, [series]):
            yield content

    def blocks(self) -> dict[tuple[int, int], Block]:
        """Read the blocks of steps that a counter needs, by level and last step. Private."""
        query = "SELECT level, step, tally, answer FROM block ORDER BY step, level DESC"
        rows = self.database.execute(query)
        return {(level, step): Block(tally, answer) for level, step, tally, answer in rows}

    def random_words(self, number: int) -> bytes:
        """Read the random bytes that were stored for a slice. Private."""
        rows = self.database.execute(
            "SELECT bytes FROM word WHERE slice = ? ORDER BY block", [number]
        )
        return b"".join(block for (block,) in rows)

    def append_random_words(self, number: int, content: bytes) -> None:
        """Store further random bytes for a slice, before anything is drawn with them."""
        with self._transaction():
            self.database.execute(
                "INSERT INTO word SELECT ?, count(*), ? FROM word WHERE slice = ?",
                [number, content, number],
            )

    def contributions(self, period: str, ids: Iterable[str]) -> list[int]:
        """Count the records that earlier slices have of each unit, in the order of the ids."""
        query = "SELECT records FROM contribution WHERE period = ? AND id = ?"
        rows = (self.database.execute(query, [period, name]).fetchone() for name in ids)
        return [0 if row is None else int(row[0]) for row in rows]

    def add_slice(
        self,
        number: int,
        answers: Sequence[StoredAnswer],
        *,
        draw: str = "",
        period: str = "",
        contributions: Mapping[str, int] = _NOTHING,
        blocks: Mapping[tuple[int, int], Block] | None = None,
        keeps_blocks: bool = False,
    ) -> None:
        """Store the releases of a slice, with private contributions and blocks: all or nothing."""
        with self._transaction():
            self.database.executemany(
                "INSERT INTO answer (series, number, release, digest, file, drawn) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                ((series, number, *answer) for series, answer in enumerate(answers)),
            )
            self.database.execute("INSERT INTO draw VALUES (?, ?)", [number, draw])
            # Random bytes are overwritten with zeros (`secure_delete`).
            self.database.execute("DELETE FROM word")
            # Units are bounded in this period alone, so those of other periods are forgotten.
            self.database.execute("DELETE FROM contribution WHERE period <> ?", [period])
            self.database.executemany(
                "INSERT INTO contribution VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET records = records + excluded.records",
                ((period, name, records) for name, records in contributions.items()),
            )
            # Blocks are added to those of before, or take their place.
            if not keeps_blocks:
                self.database.execute("DELETE FROM block")
            self.database.executemany(
                "INSERT INTO block VALUES (?, ?, ?, ?)",
                ((*at, block.tally, block.answer) for at, block in (blocks or {}).items()),
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all of it or nothing."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.database.in_transaction:  # a full disk may have ended it
                self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")


def check_beside(path: str | os.PathLike[str]) -> None:
    """Refuse a name for a state beside which SQLite would find other files."""
    for beside in (f"{path}{end}" for end in BESIDE_DATABASES):
        if os.path.lexists(beside):
            raise WriteError(
                f"{beside} exists, and SQLite would read it as a part of the stream; remove it or "
                "choose another name"
            )


def create_state(path: str | os.PathLike[str], plan: Mapping[str, str]) -> None:
    """Write the state of a new stream, atomically, readable by its owner only."""
    check_beside(path)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO plan VALUES (?, ?)", plan.items())
        content = database.serialize()
    write_file(path, content, mode=0o600)


@contextmanager
def opened_state(path: str | os.PathLike[str]) -> Iterator[State]:
    """Open the state of a stream, if its owner alone can read it; lock it until the block ends."""
    try:
        resolved = Path(path).resolve(strict=True)
        facts = resolved.stat()
    except (OSError, RuntimeError, ValueError):
        raise InputDataError(
            f"state {path} does not exist; create it with `psd stream create`"
        ) from None
    if not stat.S_ISREG(facts.st_mode):
        raise InputDataError(f"state {path} is not a file")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise InputDataError(
            f"state {path} must be readable by its owner only, since it is PRIVATE; make it "
            "private: chmod 600"
        )
    if facts.st_nlink > 1:
        # SQLite finds the journal of a killed process by the name under which it opened the file.
        raise InputDataError(
            f"state {path} has a second name (a hard link), through which a slice could be lost; "
            "remove one of the two names"
        )
    if facts.st_size == 0:
        raise InputDataError(f"state {path} is empty, so its slices are lost; restore a copy")
    try:
        # Without mode=rw, SQLite would create a missing state, of which no slice was added.
        uri = f"{resolved.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)
        with closing(connection) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            # EXTRA is FULL and also flushes the folder: a commit must survive a power failure.
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA secure_delete = ON")
            # The lock of the first transaction stays until the file is closed.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            application = database.execute("PRAGMA application_id").fetchone()[0]
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if application == _OLD_APPLICATION:
                raise InputDataError(
                    f"state {path} {old_format('stream', version)}; what was spent stays spent, "
                    "and a new stream over the same data is no fresh budget"
                )
            if application != _APPLICATION:
                raise InputDataError(
                    f"state {path} is not the state of a stream, but another database"
                )
            if version != FORMAT:
                raise InputDataError(
                    f"state {path} has format {version}, and this version of psd reads format "
                    f"{FORMAT}"
                )
            objects = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
            if not objects <= {"plan", "answer", "draw", "block", "word", "contribution"}:
                raise InputDataError(
                    f"state {path} has tables, views or triggers that no stream has; restore a copy"
                )
            database.execute("BEGIN IMMEDIATE")
            database.execute(f"PRAGMA user_version = {FORMAT}")  # a write takes the lock
            database.execute("COMMIT")
            yield State(database)
    except sqlite3.Error as error:
        # The text of the error may quote a statement, so only its kind is shown.
        kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        sentence = _SENTENCES.get(kind, "cannot be used; it may be damaged")
        raise InputDataError(f"state {path} {sentence}") from None


def packed(tally: Tally, answer: NDArray[Any]) -> Block:
    """Block of a tally without slices and regions, and of the numbers of its nodes."""
    cells = np.stack([tally.columns, tally.rows, tally.counts]).astype("<i8")
    return Block(zlib.compress(cells.tobytes()), zlib.compress(answer.astype("<f8").tobytes()))


def tally_of(block: Block, contributions: int) -> Tally:
    """Tally of a block. Private."""
    # Columns, rows and counts of the cells, (3, cells).
    cells = np.frombuffer(zlib.decompress(block.tally), "<i8").reshape(3, -1)
    columns, rows, counts = cells
    return Tally(
        columns=columns.astype(np.int32),
        rows=rows.astype(np.int32),
        counts=counts.astype(np.int64),
        contributions=contributions,
    )


def numbers_of(block: Block) -> NDArray[np.float64]:
    """Numbers of the nodes of a block."""
    return np.frombuffer(zlib.decompress(block.answer), "<f8").astype(np.float64)


def empty_tally(contributions: int) -> Tally:
    """Tally of a step that was left out."""
    nothing = np.zeros(0, np.int32)
    counts = np.zeros(0, np.int64)
    return Tally(columns=nothing, rows=nothing, counts=counts, contributions=contributions)


def add_blocks(tallies: Iterable[Tally], weights: Iterable[int], contributions: int) -> Tally:
    """Sum of tallies, private, of different steps, each times a public whole number.

    P1. A unit in one of the steps changes the sum by at most k times the weight of this step.
    """
    weighted = [
        replace(tally, counts=tally.counts * weight)
        for tally, weight in zip(tallies, weights, strict=True)
    ]
    return replace(add_tallies(weighted), contributions=contributions)


# Bytes that are stored at once; a fixed grid of 4,096 cells takes about half of them.
_BLOCK = 2**17


class RandomTape:
    """Gives the random bytes of a slice in order, those of an earlier run first."""

    def __init__(self, state: State, number: int) -> None:
        self._state, self._number = state, number
        self._bytes, self._used = state.random_words(number), 0

    def __call__(self, size: int) -> bytes:
        """Give the next bytes; store more of them first if the tape is too short."""
        stop = self._used + size
        if stop > len(self._bytes):
            # At least as many as there are, so that a long tape takes few writes.
            more = system_bytes(max(stop - len(self._bytes), len(self._bytes), _BLOCK))
            self._state.append_random_words(self._number, more)
            self._bytes += more
        start, self._used = self._used, stop
        return self._bytes[start:stop]
