"""The state of a stream: one SQLite file that its owner alone may read. Private side.

All SQL of a stream is in this module. It replaces error codes of SQLite by messages.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from psd._util.atomic_write import BESIDE_DATABASES, write_file
from psd.errors import InputDataError, WriteError

__all__ = ["FORMAT", "State", "check_beside", "create_state", "opened_state"]

FORMAT = 1

# Marks an SQLite file as the state of a stream: the bytes "psdS".
_APPLICATION = 0x70736453

# Seconds to wait for another process; reading the status takes milliseconds.
_TIMEOUT = 2.0

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE plan (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE slice (number INTEGER PRIMARY KEY, release BLOB NOT NULL, digest TEXT NOT NULL) STRICT;
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """An open state, locked against all other processes. Private.

    Guarantees
    ----------
    - What a method has written is on the disk when it returns, all of it or nothing.
    """

    database: sqlite3.Connection

    def plan(self) -> dict[str, str]:
        """Read the facts that were fixed when the stream was created."""
        return dict(self.database.execute("SELECT name, value FROM plan"))

    def digests(self) -> dict[int, str]:
        """Digest of the public series after each slice that was added, by the slice's number."""
        rows = self.database.execute("SELECT number, digest FROM slice ORDER BY number")
        return {int(number): str(digest) for number, digest in rows}

    def releases(self) -> Iterator[bytes]:
        """Yield the release of each slice that was added, in the order of time. Public."""
        for (content,) in self.database.execute("SELECT release FROM slice ORDER BY number"):
            yield content

    def words(self, number: int) -> bytes:
        """Read the random bytes that were stored for a slice. Private."""
        rows = self.database.execute(
            "SELECT bytes FROM word WHERE slice = ? ORDER BY block", [number]
        )
        return b"".join(block for (block,) in rows)

    def append_words(self, number: int, content: bytes) -> None:
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
        release: bytes,
        digest: str,
        *,
        period: str = "",
        contributions: Mapping[str, int],
    ) -> None:
        """Store the release of a slice; its random bytes are overwritten with zeros.

        Parameters
        ----------
        number : int
            Number of the slice.
        release : bytes
            Its release, as a file has it.
        digest : str
            Digest of the public series with this slice.
        period : str
            Period in which records of a unit are bounded; those of other periods are forgotten.
        contributions : mapping
            Records that the slice has of each unit. Private.
        """
        with self._transaction():
            row = [number, release, digest]
            self.database.execute("INSERT INTO slice VALUES (?, ?, ?)", row)
            self.database.execute("DELETE FROM word")
            self.database.execute("DELETE FROM contribution WHERE period <> ?", [period])
            self.database.executemany(
                "INSERT INTO contribution VALUES (?1, ?2, ?3) "
                "ON CONFLICT DO UPDATE SET records = records + ?3",
                ((period, name, records) for name, records in contributions.items()),
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
    """Refuse a name for a state beside which SQLite would find other files.

    Raises
    ------
    WriteError
        If there is such a file.
    """
    for beside in (f"{path}{end}" for end in BESIDE_DATABASES):
        if os.path.lexists(beside):
            raise WriteError(
                f"{beside} exists, and SQLite would read it as a part of the stream; remove it or "
                "choose another name"
            )


def create_state(path: str | os.PathLike[str], plan: Mapping[str, str]) -> None:
    """Write the state of a new stream, atomically, readable by its owner only.

    Raises
    ------
    WriteError
        If the file exists, or cannot be written.
    """
    check_beside(path)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO plan VALUES (?, ?)", plan.items())
        content = database.serialize()
    write_file(path, content, mode=0o600)


@contextmanager
def opened_state(path: str | os.PathLike[str]) -> Iterator[State]:
    """Open the state of a stream, and lock it until the block ends.

    Raises
    ------
    InputDataError
        If the file is not the state of a stream, is damaged, of another version, in use, or
        readable by others than its owner.
    """
    resolved = _existing(path)
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
            _check_format(path, database)
            database.execute("BEGIN IMMEDIATE")
            database.execute(f"PRAGMA user_version = {FORMAT}")  # a write takes the lock
            database.execute("COMMIT")
            yield State(database)
    except sqlite3.Error as error:
        # The text of the error may quote a statement, so only its kind is shown.
        kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        sentence = _SENTENCES.get(kind, "cannot be used; it may be damaged")
        raise InputDataError(f"state {path} {sentence}") from None


def _existing(path: str | os.PathLike[str]) -> Path:
    """Path of a state with links resolved, after a check of who may read it."""
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
    return resolved


def _check_format(path: str | os.PathLike[str], database: sqlite3.Connection) -> None:
    """Refuse other databases, and formats of other versions."""
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise InputDataError(f"state {path} is not the state of a stream, but another database")
    if version != FORMAT:
        raise InputDataError(
            f"state {path} has format {version}, and this version of psd reads format {FORMAT}"
        )
    objects = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
    if not objects <= {"plan", "slice", "word", "contribution"}:
        raise InputDataError(
            f"state {path} has tables, views or triggers that no stream has; restore a copy"
        )
