"""SQL on a connection of DuckDB, streamed as Arrow. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psd._util.instances import type_text
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import arrow

if TYPE_CHECKING:
    import duckdb

    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


@dataclass(frozen=True, slots=True, repr=False)
class DuckDB:
    """Rows of a query on a connection of DuckDB.

    The query runs when records are read, and again if they are read again.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Open connection.
    query : str
        One SELECT; other statements are refused, since they could change data.

    Raises
    ------
    ParameterError
        If the connection is not one of DuckDB, or the query is not a text.

    Examples
    --------
    >>> import duckdb, psd
    >>> rows = psd.sources.DuckDB(duckdb.connect(), "SELECT 127.0 AS lon, 37.5 AS lat")
    >>> psd.build(rows, domain=(126.4, 37, 127.6, 38), epsilon=1, method="grid").method
    'grid'
    """

    connection: duckdb.DuckDBPyConnection
    query: str

    def __post_init__(self) -> None:
        """Check the types."""
        import duckdb

        if not isinstance(self.connection, duckdb.DuckDBPyConnection):
            raise ParameterError(
                f"connection must be one of DuckDB, got {type_text(self.connection)}; "
                "duckdb.connect(path) opens one"
            )
        if not isinstance(self.query, str):
            raise ParameterError(f"query must be a text, got {type_text(self.query)}")

    def __repr__(self) -> str:
        return "<DuckDB: a query>"


USES: tuple[str, ...] = arrow.USES
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is a query on a connection."""
    return isinstance(item, DuckDB)


def batches(items: list[DuckDB], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Run the queries and read their rows."""
    yield from arrow.batches([_relation(item) for item in items], columns, domain)


def _relation(item: DuckDB) -> Any:
    """Rows of a query, which is checked before it is run."""
    import duckdb

    try:
        statements = item.connection.extract_statements(item.query)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise InputDataError("the query must be one SELECT, without other statements")
        return item.connection.sql(item.query)
    except duckdb.Error:
        pass  # the message may quote a value
    raise InputDataError("the query cannot be run; does it name tables and columns that exist?")
