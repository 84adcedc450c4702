"""The file of a ledger: one SQLite table that is only ever appended to. Private side.

What the engine says in codes becomes a sentence here, so that no other module speaks SQL.
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

__all__ = [
    "FORMAT",
    "TIMEOUT",
    "appended",
    "create_file",
    "last_number",
    "network",
    "reading",
    "rows",
    "trying",
    "whole",
    "writing",
]

FORMAT = 1

# Seconds that others may hold the file. One charge holds it for milliseconds.
TIMEOUT = 20.0

# Where Linux says what is mounted, and file systems of other machines.
MOUNTS = Path("/proc/mounts")
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gluster", "fuse.sshfs")

# The longest name of a file on the usual file systems, less what SQLite appends: "-journal".
_LONGEST = 255 - 8

# Tells a ledger from any other SQLite file: the bytes "psdL".
_APPLICATION = 0x7073644C

# The triggers are no lock, only a hedge against a hand that slips; the chain finds the rest.
# A number is never given out twice, so an end that was cut off is missed.
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
    "SQLITE_NOTADB": "is no ledger of psd",
    "SQLITE_CORRUPT": "is damaged; restore it, and charge what was released since",
    "SQLITE_CONSTRAINT": "refuses the entry; it may have been changed by another program",
}

Row = tuple[int, str, str, str, str]


def create_file(path: str | os.PathLike[str], first: Row) -> None:
    """Write a ledger with its first entry; it appears whole, readable by its owner alone.

    Raises
    ------
    WriteError
        If the file exists, or cannot be written.
    """
    if len(os.fsencode(Path(path).name)) > _LONGEST:
        raise WriteError(
            f"{path} has a name of more than {_LONGEST} bytes; beside a ledger lies a file whose "
            "name is longer by 8 while it is written, so choose a shorter one"
        )
    if os.path.isfile(path):
        raise WriteError(f"{path} exists; choose another name, a ledger is never overwritten")
    for beside in (f"{path}{end}" for end in BESIDE_DATABASES):
        if os.path.lexists(beside):
            raise WriteError(
                f"{beside} lies there, which SQLite would take for a part of the ledger; remove it "
                "or choose another name"
            )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.executescript(_SCHEMA)
        appended(made, first)
        content = made.serialize()
    write_file(path, content, mode=0o600)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Have a ledger to oneself; what was appended is on the disk when the block has ended.

    Guarantees
    ----------
    - Nobody else appends between the first reading in the block and its end.
    - An exception in the block takes back what it appended, and so does the end of the process.

    Raises
    ------
    LedgerError
        If the file is no ledger, or cannot be had or written.
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
def trying(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """Have a ledger to oneself, see that it can be written, and leave it as it is.

    Raises
    ------
    LedgerError
        As `writing`.
    """
    with _opened(path) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        # The lock alone is also had of a file that is read-only; a write is not, in file or folder.
        ledger.execute(f"PRAGMA user_version = {FORMAT}")
        yield ledger
        ledger.execute("ROLLBACK")


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """See a ledger as it is at one moment.

    Raises
    ------
    LedgerError
        If the file is no ledger, or cannot be read.
    """
    with _opened(path) as ledger:
        ledger.execute("BEGIN")
        yield ledger


def rows(ledger: sqlite3.Connection) -> Iterator[Row]:
    """All entries in their order, one by one, since whoever reads them stops at a wrong one."""
    return ledger.execute("SELECT number, time, kind, body, hash FROM entry ORDER BY number")


def appended(ledger: sqlite3.Connection, row: Row) -> None:
    """Append an entry."""
    ledger.execute("INSERT INTO entry (number, time, kind, body, hash) VALUES (?, ?, ?, ?, ?)", row)


def last_number(ledger: sqlite3.Connection) -> int:
    """The number that was given out last, whether or not its entry is there."""
    found = ledger.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    return int(found[0]) if found else 0


def whole(ledger: sqlite3.Connection) -> bool:
    """Whether the pages of the file are sound."""
    return bool(ledger.execute("PRAGMA quick_check").fetchone() == ("ok",))


def network(path: str | os.PathLike[str]) -> str | None:
    """Kind of the network file system that a file lies on; None where it is none, or not known."""
    place = Path(path).resolve()
    try:
        mounted = [line.split() for line in MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return None
    # Of a folder that was mounted over, the last line counts; /proc writes a space as \040.
    found = {Path(line[1].replace("\\040", " ")): line[2] for line in mounted if len(line) > 2}
    kind = next((found[above] for above in (place, *place.parents) if above in found), "")
    return kind if kind.startswith(_NETWORK) else None


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A ledger that exists, in its one format; errors of the engine as sentences."""
    place = _existing(path)
    try:
        # Without mode=rw a missing ledger would be made here, with nothing spent.
        uri = f"{place.as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)) as made:
            made.execute("PRAGMA trusted_schema = OFF")
            # FULL, and the folder too: a commit must not come undone by a power cut.
            made.execute("PRAGMA synchronous = EXTRA")
            _check_format(path, made)
            yield made
    except sqlite3.Error as error:
        # The text of the engine may quote a statement, so only its kind is shown.
        kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        said = _SENTENCES.get(kind, "cannot be used; it may be damaged")
        raise LedgerError(f"ledger {path} {said}") from None


def _existing(path: str | os.PathLike[str]) -> Path:
    """Where a ledger is, links followed."""
    try:
        place = Path(path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise LedgerError(
            f"ledger {path} does not exist; it is made by `psd ledger create` and by nothing else"
        ) from None
    if not place.is_file():
        raise LedgerError(f"ledger {path} is no file")
    if place.stat().st_nlink > 1:
        # What a crash left half done is undone by the name that it was begun under.
        raise LedgerError(
            f"ledger {path} has a second name, a hard link, by which a charge could come undone; "
            "remove one of the two"
        )
    if place.stat().st_size == 0:
        raise LedgerError(f"ledger {path} is empty, so what was spent is lost; restore it")
    return place


def _check_format(path: str | os.PathLike[str], ledger: sqlite3.Connection) -> None:
    """Refuse other databases, and formats of other versions."""
    application = ledger.execute("PRAGMA application_id").fetchone()[0]
    version = ledger.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise LedgerError(f"ledger {path} is no ledger of psd, but another database")
    if version != FORMAT:
        raise LedgerError(
            f"ledger {path} has format {version}, and this version of psd knows {FORMAT}"
        )
    if not _objects(ledger) <= _known_objects(_SCHEMA):
        raise LedgerError(
            f"ledger {path} has tables, views or triggers that no ledger has, so nothing is "
            "granted from it; restore it from a copy"
        )


def _objects(ledger: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Tables, views, indices and triggers of a database, with the statements that make them."""
    return set(ledger.execute("SELECT type, name, sql FROM sqlite_schema"))


@cache
def _known_objects(schema: str) -> frozenset[tuple[str, str, str]]:
    """Those of a ledger: another one's could drop a charge, or never end."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(schema)
        return frozenset(_objects(made))
