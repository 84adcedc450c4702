"""Connections to PostgreSQL, and its errors in one sentence each. Holds no data.

What the server says is never passed on: it may quote a row, and the client's words the password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from psd.errors import MissingExtraError, ParameterError, PsdError

__all__ = ["connected", "home", "identifier", "is_address", "shown", "table_name"]

_SCHEMES = ("postgresql://", "postgres://")

_STATES = {
    "25006": "would write, which the read-only transaction does not allow",
    "2BP01": "cannot be replaced, because other objects such as views depend on it",
    "3F000": "is in a schema that does not exist; create it first",
    "42501": "may not be used by this user; ask for the permission (GRANT)",
    "42601": "is no single SQL query; give one SELECT, without a semicolon",
    "42703": "names a column that does not exist",
    "42704": "needs a type that the database does not have; is PostGIS installed in it (CREATE "
    "EXTENSION postgis)?",
    "42809": "is no table but a view or another object, which is not replaced",
    "42883": "needs a function that the database does not have; is PostGIS installed in it (CREATE "
    "EXTENSION postgis)?",
    "42P01": "names a table that does not exist; names are taken letter by letter, with the schema "
    "before a dot",
    "42P07": "exists; choose another name, or allow it (--overwrite, overwrite=True)",
    "57014": "was cancelled by the server; is there a limit of time for statements?",
}

# What the client says when there is no connection, and what to do about it.
_FAILURES = {
    r"password authentication failed|no password supplied": "does not take the password; is it in "
    "the address, in PGPASSWORD or in ~/.pgpass?",
    r"pg_hba\.conf|authentication failed": "does not let this user in; see its pg_hba.conf",
    r"role .* does not exist": "has no such user",
    r"database .* does not exist": "has no such database",
    r"translate host name": "has a host name that nobody knows",
    r"refused|no such file|timeout expired|timed out|unreachable|no route": "does not answer; is "
    "it running, and are host and port right?",
    r"invalid|missing|end of string|unexpected": "has an address that is malformed; write "
    "postgresql://user@host:5432/database, special characters in percent signs",
}


def is_address(item: Any) -> bool:
    """Whether an input or an output is the address of a PostgreSQL database."""
    return isinstance(item, str) and item.lower().startswith(_SCHEMES)


def shown(url: str) -> str:
    """Name of a database for messages: its host and name, never a user or password.

    Examples
    --------
    >>> shown("postgresql://ann:secret@db.example.org/city?sslmode=require")
    'database city on db.example.org'
    """
    rest = url.partition("://")[2]
    place, _, name = re.split(r"\?", rest, maxsplit=1)[0].partition("/")
    host = place.rpartition("@")[2].partition(":")[0]
    if "@" in rest.removeprefix(place) or place.count("@") > 1:
        return "the database"  # a password with such signs may stand anywhere
    return f"database {name or '(default)'} on {host or 'the local server'}"


def identifier(name: str) -> str:
    """Name in SQL, letter by letter.

    Examples
    --------
    >>> identifier("visits of 2024")
    '"visits of 2024"'
    """
    return '"' + name.replace('"', '""') + '"'


def table_name(text: str) -> str:
    """Name of a table in SQL, with its schema if there is one.

    Raises
    ------
    ParameterError
        If it is no name.

    Examples
    --------
    >>> table_name("public.visits")
    '"public"."visits"'
    """
    parts = text.split(".")
    if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
        raise ParameterError(
            f"table {text!r} is no name of a table; write for instance public.visits"
        )
    return ".".join(map(identifier, parts))


@contextmanager
def connected(url: str, what: str, kind: type[PsdError]) -> Iterator[Any]:
    """Cursor in a transaction, which is undone unless the block commits it.

    Parameters
    ----------
    url : str
        Address, ``postgresql://...``.
    what : str
        What messages call the statements of the block.
    kind : type
        Error that stands for all errors of the database.

    Raises
    ------
    MissingExtraError
        If the driver is not installed.
    """
    try:
        import adbc_driver_manager as adbc
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError(
            "postgresql:// needs adbc-driver-postgresql; install psd-publisher[postgis]"
        ) from None
    try:
        connection = dbapi.connect(_patient(url))
    except adbc.Error as error:
        raise kind(f"{shown(url)} {_failure(str(error))}") from None
    try:
        with closing(connection), connection.cursor() as cursor:
            yield cursor
    except adbc.Error as error:
        state = error.sqlstate or ""
        told = _STATES.get(state, f"ended in an error of the database (SQLSTATE {state})")
        raise kind(f"{what} of {shown(url)} {told}") from None


def home(cursor: Any) -> str | None:
    """Schema in SQL in which PostGIS is installed, which is not on every user's path."""
    cursor.execute(
        "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
        "WHERE extname = 'postgis'"
    )
    row = cursor.fetchone()
    return None if row is None else identifier(str(row[0]))


def _patient(url: str) -> str:
    """Address with a limit to how long a server may take to answer, where none is set."""
    if "connect_timeout" in url or "PGCONNECT_TIMEOUT" in os.environ:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout=15"


def _failure(message: str) -> str:
    """Why there is no connection."""
    for pattern, told in _FAILURES.items():
        if re.search(pattern, message.lower()):
            return told
    return "cannot be reached"
