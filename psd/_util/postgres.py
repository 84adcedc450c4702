"""Connections to PostgreSQL; errors without its text, which may quote a record or password."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from psd._util.extras import install_text
from psd.errors import MissingExtraError, ParameterError, PsdError

_SCHEMES = ("postgresql://", "postgres://")

_STATES = {
    "25006": "would write, which the read-only transaction does not allow",
    "2BP01": "cannot be replaced, because other objects such as views depend on it",
    "3F000": "is in a schema that does not exist; create it first",
    "42501": "may not be used by this user; ask for the permission (GRANT)",
    "42601": "must be a single SQL query; give one SELECT, without a semicolon",
    "42703": "names a column that does not exist",
    "42704": "needs a type that the database does not have; is PostGIS installed in it (CREATE "
    "EXTENSION postgis)?",
    "42809": "is a view or another object, not a table, and is not replaced",
    "42883": "needs a function that the database does not have; is PostGIS installed in it (CREATE "
    "EXTENSION postgis)?",
    "42P01": "names a table that does not exist; names are case-sensitive, with the schema "
    "before a dot",
    "42P07": "exists; choose another name, or pass overwrite=True",
    "57014": "was cancelled by the server; does it limit the time of statements?",
}

# Patterns of the client's messages when the connection fails, and what to do about each.
_FAILURES = {
    r"password authentication failed|no password supplied": "rejects the password; is it in "
    "the address, in PGPASSWORD or in ~/.pgpass?",
    r"pg_hba\.conf|authentication failed": "does not let this user in; see its pg_hba.conf",
    r"role .* does not exist": "has no such user",
    r"database .* does not exist": "has no such database",
    r"translate host name": "has an unknown host name",
    r"refused|no such file|timeout expired|timed out|unreachable|no route": "does not answer; is "
    "it running, and are host and port right?",
    r"invalid|missing|end of string|unexpected": "has an address that is malformed; write "
    "postgresql://user@host:5432/database, special characters in percent signs",
}


def is_address(item: Any) -> bool:
    """Whether an input or an output is the address of a PostgreSQL database."""
    return isinstance(item, str) and item.lower().startswith(_SCHEMES)


def display_name(url: str) -> str:
    """Host and name of a database for messages, never a user or password."""
    rest = url.partition("://")[2]
    authority, _, name = re.split(r"\?", rest, maxsplit=1)[0].partition("/")
    host = authority.rpartition("@")[2].partition(":")[0]
    if "@" in rest.removeprefix(authority) or authority.count("@") > 1:
        return "the database"  # a password with such characters may be anywhere
    return f"database {name or '(default)'} on {host or 'the local server'}"


def quote_identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_table(text: str) -> str:
    """Quote the name of a table for SQL, with its schema if it has one."""
    parts = text.split(".")
    if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
        raise ParameterError(f"table must be a name such as public.visits, got {text!r}")
    return ".".join(map(quote_identifier, parts))


@contextmanager
def connect(url: str, what: str, kind: type[PsdError]) -> Iterator[Any]:
    """Give a cursor in a transaction, rolled back unless committed; errors are of `kind`."""
    try:
        import adbc_driver_manager as adbc
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError(
            f"postgresql:// needs adbc-driver-postgresql; {install_text('postgis')}",
            extra="postgis",
        ) from None
    address = url
    if "connect_timeout" not in url and "PGCONNECT_TIMEOUT" not in os.environ:
        address += f"{'&' if '?' in url else '?'}connect_timeout=15"
    try:
        connection = dbapi.connect(address)
    except adbc.Error as error:
        message = str(error).lower()
        reasons = (text for pattern, text in _FAILURES.items() if re.search(pattern, message))
        raise kind(f"{display_name(url)} {next(reasons, 'cannot be reached')}") from None
    try:
        with closing(connection), connection.cursor() as cursor:
            yield cursor
    except adbc.Error as error:
        state = error.sqlstate or ""
        reason = _STATES.get(state, f"failed with a database error (SQLSTATE {state})")
        raise kind(f"{what} of {display_name(url)} {reason}") from None


def postgis_schema(cursor: Any) -> str | None:
    """Quoted schema of PostGIS, which is not on every user's search path."""
    cursor.execute(
        "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
        "WHERE extname = 'postgis'"
    )
    row = cursor.fetchone()
    return None if row is None else quote_identifier(str(row[0]))
