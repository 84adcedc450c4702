"""Limit of the memory of reading, and sessions of DuckDB that keep it. Private side."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from psd._util.instances import shown
from psd.errors import InternalError, ParameterError

if TYPE_CHECKING:
    import duckdb

__all__ = ["memory_for_rows", "parse_memory", "split_memory"]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?B)?", re.IGNORECASE)

# Memory of Python and the libraries before the first record is read.
_LIBRARIES = 350 * 10**6

MIN_MEMORY = 800 * 10**6


def parse_memory(text: str | int) -> int:
    """Parse a memory limit to bytes, from a number of them or a size in powers of ten ("1.5GB")."""
    match = _SIZE.fullmatch(str(text).strip())
    if match is None or isinstance(text, bool):
        raise ParameterError(f"memory must be a size such as 2GB, got {shown(text)}")
    size = int(float(match[1]) * _UNITS[(match[2] or "").upper()])
    if size < MIN_MEMORY:
        raise ParameterError(f"memory must be at least 800MB, got {text}")
    return size


def memory_for_rows(memory: str | int | None) -> int | None:
    """Return the bytes of a limit that remain for records, cells and the parser."""
    return None if memory is None else parse_memory(memory) - _LIBRARIES


def split_memory(memory: int | None) -> tuple[int | None, int | None]:
    """Split a limit between the rows that are kept, two thirds, and the parser, one third."""
    return (None, None) if memory is None else (memory * 2 // 3, memory // 3)


def open_session(settings: str = "") -> duckdb.DuckDBPyConnection:
    """Open a session in memory, rows never in files; a setting it refuses is an `InternalError`."""
    import duckdb

    connection = duckdb.connect(":memory:")
    apply_settings(connection, settings)
    return connection


def apply_settings(connection: duckdb.DuckDBPyConnection, settings: str) -> None:
    """Set up a session or a cursor of it, with its own settings; raises as `open_session`."""
    import duckdb

    try:
        connection.execute(f"SET temp_directory = ''; {settings}")
        # In a notebook that cannot draw a bar DuckDB refuses to set this, even to the value it has.
        (is_on,) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0]
        if is_on:
            connection.execute("SET enable_progress_bar = false")
        return
    except duckdb.Error as error:
        kind = type(error).__name__
    raise InternalError(f"DuckDB has refused its settings ({kind}); please report it")
