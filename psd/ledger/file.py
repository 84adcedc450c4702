"""The file of a ledger: one append-only SQLite table, all SQL, errors as messages. Private side.

The hash of an entry has no key, so an edited ledger can have correct hashes. Fields are therefore
checked against the types and ranges that `psd.ledger.ledger` writes.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from psd._util.atomic_write import BESIDE_DATABASES, write_file
from psd.accounting import PICO
from psd.errors import LedgerError, WriteError
from psd.ingest.columns import is_reading
from psd.ledger.charges import is_name
from psd.ledger.extents import is_slices
from psd.privacy.loss import MAX_EPSILON, NANO, is_delta
from psd.privacy.unit import MAX_CONTRIBUTIONS
from psd.space.domain import MAX_LATTICE
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


Valid = Callable[[Any], bool]


def validate_entry(kind: str, body: Any) -> None:
    """Refuse an entry with fields or values that this library does not write."""
    fields = _BODIES[kind]
    if not isinstance(body, dict):
        raise ValueError("a body that is not an object")
    if body.keys() != fields.keys():
        raise ValueError("fields that are missing or unknown")
    if not all(fields[name](value) for name, value in body.items()):
        raise ValueError("a value that this library does not write")
    if kind == "register" and (body["unit"] == "user-day") != (body["time_zone"] is not None):
        raise ValueError("days without a time zone, or a time zone without days")


def _is_name(value: Any) -> bool:
    """Whether a value is a valid name."""
    return isinstance(value, str) and is_name(value)


def _is_integer(low: int, high: int, value: Any) -> bool:
    """Whether a value is an integer between two limits."""
    return type(value) is int and low <= value <= high


def _or_none(valid: Valid, value: Any) -> bool:
    """Whether a value is null or valid."""
    return value is None or valid(value)


def _is_list(valid: Valid, value: Any) -> bool:
    """Whether a value is a list of valid items."""
    return isinstance(value, list) and all(map(valid, value))


def _is_mapping(valid: Valid, value: Any) -> bool:
    """Whether a value maps names to valid items."""
    return isinstance(value, dict) and all(_is_name(n) and valid(item) for n, item in value.items())


def _is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def _is_bounds(value: Any) -> bool:
    """Whether a value is west, south, east and north."""
    if not (isinstance(value, list) and len(value) == 4):
        return False
    if not all(type(edge) in (int, float) and math.isfinite(edge) for edge in value):
        return False
    west, south, east, north = value
    return bool(west < east and south < north)


def _is_region(value: Any) -> bool:
    """Whether a value is a region."""
    if not isinstance(value, dict) or value.keys() != _REGION.keys():
        return False
    return all(_REGION[name](value[name]) for name in _REGION)


_is_inputs = partial(_is_list, _is_name)
_is_price = partial(_is_integer, 1, MAX_EPSILON * NANO)
_is_bound = partial(_or_none, partial(_is_integer, 1, MAX_CONTRIBUTIONS))

_REGION: Mapping[str, Valid] = {
    "bounds": _is_bounds,
    "crs": _is_text,
    "columns": partial(_is_list, _is_text),
    "lattice": lambda value: (
        _is_list(partial(_is_integer, 1, MAX_LATTICE), value) and len(value) == 2
    ),
}

_BODIES: Mapping[str, Mapping[str, Valid]] = {
    "create": {"id": _is_name},
    "register": {
        "name": _is_name,
        "budget": _is_price,
        "unit": lambda value: value in ("record", "user", "user-day"),
        "time_zone": partial(_or_none, _is_name),
        "bound": _is_bound,
        "delta": partial(_or_none, is_delta),
        "caps": partial(_is_mapping, _is_price),
        "reading": is_reading,
        "inputs": _is_inputs,
    },
    "inputs": {"name": _is_name, "inputs": _is_inputs},
    "raise": {"name": _is_name, "budget": _is_price},
    "charge": {
        "id": _is_name,
        "dataset": _is_name,
        "analyst": partial(_or_none, _is_name),
        "what": _is_name,
        "epsilon": _is_price,
        "rho": partial(_or_none, partial(_is_integer, 1, MAX_EPSILON * PICO)),
        "delta": partial(_or_none, is_delta),
        "bound": _is_bound,
        "region": partial(_or_none, _is_region),
        "slices": partial(_or_none, is_slices),
        "files": partial(_is_list, _is_text),
        "terms": partial(_is_mapping, _is_name),
    },
    "slice": {
        "id": _is_name,
        "slice": _is_name,
        "draw": _is_name,
        "digests": partial(_is_list, _is_name),
    },
    "fault": {"name": _is_name},
    "done": {"id": _is_name, "digest": partial(_or_none, _is_text)},
}
