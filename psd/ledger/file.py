"""The file of a ledger: one append-only SQLite table. Private side.

All SQL of a ledger is in this module. It replaces error codes of SQLite by messages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from psd._util.atomic_write import BESIDE_DATABASES, write_file
from psd.errors import LedgerError, WriteError
from psd.version import old_format

FORMAT = 1
"""The format that is written, and the only one that is read."""

# Seconds to wait for the lock of another process. One charge locks the file for milliseconds.
TIMEOUT = 20.0

# Where Linux lists the mounted file systems, and names of network file systems.
MOUNTS = Path("/proc/mounts")
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gluster", "fuse.sshfs")

# Longest name of a file on common file systems, minus "-journal", which SQLite appends.
_LONGEST = 255 - 8

# Marks an SQLite file as a ledger: the bytes "psLe". Ledgers of older formats, whose numbers were 1
# to 3, have "psdL": so neither is taken for the other, by this program or by an older one.
_APPLICATION = 0x70734C65
_OLD_APPLICATION = 0x7073644C

# The triggers prevent accidental edits; the hash chain detects all others. AUTOINCREMENT never
# uses a number twice, so the removal of the last entries is detected.
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER kept BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries stay'); END;
CREATE TRIGGER held BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries stay'); END;
"""

_SENTENCES = {
    "SQLITE_BUSY": "is in use by another process; try again when that has finished",
    "SQLITE_FULL": "cannot grow, the disk is full; nothing was charged",
    "SQLITE_READONLY": "cannot be written; check its permissions, and those of its folder",
    "SQLITE_CANTOPEN": "cannot be opened; check its permissions, and those of its folder",
    "SQLITE_IOERR": "cannot be read or written; the disk may be full or the file too large",
    "SQLITE_NOTADB": "is not a ledger of psd",
    "SQLITE_CORRUPT": "is damaged; restore it, and charge what was released since",
    "SQLITE_CONSTRAINT": "refuses the entry; it may have been changed by another program",
}

Row = tuple[int, str, str, str, str]


def create_file(path: str | os.PathLike[str], first: Row) -> None:
    """Write a new ledger with its first entry, atomically, readable only by its owner."""
    if len(os.fsencode(Path(path).name)) > _LONGEST:
        raise WriteError(
            f"{path} has a name of more than {_LONGEST} bytes, and SQLite adds 8 to it for its "
            "journal; choose a shorter name"
        )
    if os.path.isfile(path):
        raise WriteError(f"{path} exists; choose another name, a ledger is never overwritten")
    for beside in (f"{path}{end}" for end in BESIDE_DATABASES):
        if os.path.lexists(beside):
            raise WriteError(
                f"{beside} exists, and SQLite would read it as a part of the ledger; remove it or "
                "choose another name"
            )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(_SCHEMA)
        append(database, first)
        content = database.serialize()
    write_file(path, content, mode=0o600)


@contextmanager
def exclusive(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Lock a ledger for writing; appended entries are on the disk when the block ends.

    P1. No other process appends from the start of the block to its end.

    P2. An exception in the block, or the end of the process, rolls back its entries.
    """
    with _opened(path) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        try:
            yield ledger
        except BaseException:
            if ledger.in_transaction:  # a full disk may have ended it
                ledger.execute("ROLLBACK")
            raise
        ledger.execute("COMMIT")


@contextmanager
def dry_run(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Lock a ledger, check that it can be written, and change nothing."""
    with _opened(path) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        # SQLite also locks a read-only file, so only a write shows that file and folder allow one.
        ledger.execute(f"PRAGMA user_version = {FORMAT}")
        yield ledger
        ledger.execute("ROLLBACK")


@contextmanager
def snapshot(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Read a ledger as it is at one moment."""
    with _opened(path) as ledger:
        ledger.execute("BEGIN")
        yield ledger


def rows(ledger: sqlite3.Connection) -> Iterator[Row]:
    """Yield all entries in order; a replay stops at the first wrong entry."""
    return ledger.execute("SELECT number, time, kind, body, hash FROM entry ORDER BY number")


def append(ledger: sqlite3.Connection, row: Row) -> None:
    """Append an entry."""
    ledger.execute("INSERT INTO entry (number, time, kind, body, hash) VALUES (?, ?, ?, ?, ?)", row)


def last_number(ledger: sqlite3.Connection) -> int:
    """Read the largest number that an entry ever had; that entry may have been removed."""
    last = ledger.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    return int(last[0]) if last else 0


def last_hash(ledger: sqlite3.Connection) -> str:
    """Read the hash of the last entry; empty if there is none."""
    query = "SELECT hash FROM entry ORDER BY number DESC LIMIT 1"
    return str((ledger.execute(query).fetchone() or ("",))[0])


def is_intact(ledger: sqlite3.Connection) -> bool:
    """Whether the pages of the file are intact."""
    return bool(ledger.execute("PRAGMA quick_check").fetchone() == ("ok",))


def network_file_system(path: str | os.PathLike[str]) -> str | None:
    """Find the kind of the network file system of a file; None if local or unknown."""
    resolved = Path(path).resolve()
    try:
        mounted = [line.split() for line in MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return None
    # If two file systems are mounted on a folder, the last line counts; \040 is a space.
    kinds = {Path(line[1].replace("\\040", " ")): line[2] for line in mounted if len(line) > 2}
    parents = (resolved, *resolved.parents)
    kind = next((kinds[above] for above in parents if above in kinds), "")
    return kind if kind.startswith(_NETWORK) else None


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Open an existing ledger of the known format; replace errors of SQLite by messages."""
    resolved = _existing(path)
    try:
        # Without mode=rw, SQLite would create a missing ledger, with nothing spent.
        uri = f"{resolved.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)
        with closing(connection) as ledger:
            ledger.execute("PRAGMA trusted_schema = OFF")
            # EXTRA is FULL and also flushes the folder: a commit must survive a power failure.
            ledger.execute("PRAGMA synchronous = EXTRA")
            _check_format(path, ledger)
            yield ledger
    except sqlite3.Error as error:
        # The text of the error may quote a statement, so only its kind is shown.
        kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        sentence = _SENTENCES.get(kind, "cannot be used; it may be damaged")
        raise LedgerError(f"ledger {path} {sentence}") from None


def _existing(path: str | os.PathLike[str]) -> Path:
    """Path of a ledger with links resolved."""
    try:
        resolved = Path(path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise LedgerError(
            f"ledger {path} does not exist; create it with `psd ledger create`, in Python "
            "with psd.Ledger.create(path)"
        ) from None
    if not resolved.is_file():
        raise LedgerError(f"ledger {path} is not a file")
    if resolved.stat().st_nlink > 1:
        # SQLite finds the journal of a crashed process by the name under which it opened the file.
        raise LedgerError(
            f"ledger {path} has a second name (a hard link), through which a charge could be "
            "lost; remove one of the two names"
        )
    if resolved.stat().st_size == 0:
        raise LedgerError(f"ledger {path} is empty, so its charges are lost; restore a copy")
    return resolved


def _check_format(path: str | os.PathLike[str], ledger: sqlite3.Connection) -> None:
    """Refuse other databases, and other formats."""
    application = ledger.execute("PRAGMA application_id").fetchone()[0]
    version = ledger.execute("PRAGMA user_version").fetchone()[0]
    if application == _OLD_APPLICATION:
        raise LedgerError(
            f"ledger {path} {old_format('ledger', version)}; what was spent stays spent, and a new "
            "ledger over the same data is no fresh budget"
        )
    if application != _APPLICATION:
        raise LedgerError(f"ledger {path} is not a ledger of psd, but another database")
    if version != FORMAT:
        raise LedgerError(
            f"ledger {path} has format {version}, and this version of psd reads format {FORMAT}"
        )
    if not _objects(ledger) <= _known_objects(_SCHEMA):
        raise LedgerError(
            f"ledger {path} has tables, views or triggers that no ledger has, so it allows no "
            "charges; restore it from a copy"
        )


def _objects(ledger: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Tables, views, indices and triggers of a database, with the statements that make them."""
    return set(ledger.execute("SELECT type, name, sql FROM sqlite_schema"))


@cache
def _known_objects(schema: str) -> frozenset[tuple[str, str, str]]:
    """Objects of a ledger. Another trigger could drop a charge; another view could run forever."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema)
        return frozenset(_objects(database))
