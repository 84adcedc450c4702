"""Arrow tables and streams of any library, and relations of DuckDB. Private side.

PyArrow, Polars, Ibis, GeoArrow and others hand over their rows by one interface, the Arrow C
stream, batch by batch. Columns of GeoArrow types or WKB that say their CRS are points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.sources import frame
from psd.ingest.sources._arrow import geometries, layout

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["accepts", "batches"]

_ROWS = 250_000


USES: tuple[str, ...] = ("geometry",)
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(item: Any) -> bool:
    """Whether the item hands over an Arrow stream; DataFrames know more of their types."""
    return hasattr(item, "__arrow_c_stream__") and not frame.accepts(item)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of tables and streams, which are read once.

    Raises
    ------
    InputDataError
        If a column is missing or of another type, or the stream ends in an error.
    DomainError
        If geometries have no CRS.
    """
    for item in items:
        what = f"the {type(item).__name__}"
        stream = _opened(item, what)
        chosen = layout(what, stream.schema, columns, domain, geometries(stream.schema))
        yield from chosen.batches(_records(stream, what))


def _opened(item: Any, what: str) -> Any:
    """Reader of record batches."""
    import duckdb
    import pyarrow as pa

    try:
        if isinstance(item, duckdb.DuckDBPyRelation):
            return item.to_arrow_reader(_ROWS)
        return pa.RecordBatchReader.from_stream(item)
    except (duckdb.Error, pa.ArrowException, OSError, TypeError):
        pass  # the message may quote a value
    raise InputDataError(f"{what} cannot be read; does its query run, and is its connection open?")


def _records(stream: Any, what: str) -> Iterator[Any]:
    """Record batches; what the library behind them says may quote a value."""
    import duckdb
    import pyarrow as pa

    try:
        yield from stream
    except (duckdb.Error, pa.ArrowException, OSError):
        fault = True
    else:
        fault = False
    if fault:
        raise InputDataError(f"{what} ended in an error while it was read; does its query run?")
