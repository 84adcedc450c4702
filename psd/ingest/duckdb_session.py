"""Sessions of DuckDB that show nothing and store nothing. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.errors import InternalError

if TYPE_CHECKING:
    import duckdb

__all__ = ["apply_settings", "open_session"]


def open_session(settings: str = "") -> duckdb.DuckDBPyConnection:
    """Open a session in memory; rows that wait are never written to a file.

    Parameters
    ----------
    settings : str
        SQL of further settings. Public.

    Raises
    ------
    InternalError
        If DuckDB refuses a setting, which is no fault of an input.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    apply_settings(connection, settings)
    return connection


def apply_settings(connection: duckdb.DuckDBPyConnection, settings: str) -> None:
    """Set up a session or a cursor of it, which has settings of its own; raises as `open_session`.

    A progress bar is switched off only where it is on: DuckDB starts one where it can draw it, and
    in a notebook that cannot it refuses to change the setting, even to its value.
    """
    import duckdb

    try:
        connection.execute(f"SET temp_directory = ''; {settings}")
        (is_on,) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0]
        if is_on:
            connection.execute("SET enable_progress_bar = false")
        return
    except duckdb.Error as error:
        kind = type(error).__name__
    raise InternalError(f"DuckDB has refused its settings ({kind}); please report it")
