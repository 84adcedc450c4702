"""Arrow tables and streams of any library, and relations of DuckDB. Private side.

PyArrow, Polars, Ibis, GeoArrow and others provide records by one interface, the Arrow C stream,
batch by batch. Columns of GeoArrow types or WKB that state their CRS are points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from psd.ingest.sources import frame
from psd.ingest.sources._arrow import find_columns, geometry_columns
from psd.ingest.sources._faults import fault_class

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["accepts", "batches"]

_ROWS = 250_000


USES: tuple[str, ...] = ("geometry",)
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item gives an Arrow stream and is not a DataFrame."""
    return hasattr(item, "__arrow_c_stream__") and not frame.accepts(item)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read tables and streams, each once.

    Raises
    ------
    InputDataError
        If a column is missing or of another type, or the stream fails.
    DomainError
        If geometries have no CRS.
    """
    for item in items:
        what = f"the {type(item).__name__}"
        stream = _open_stream(item, what)
        chosen = find_columns(what, stream.schema, columns, domain, geometry_columns(stream.schema))
        yield from chosen.batches(_records(stream, what))


def _open_stream(item: Any, what: str) -> Any:
    """Open a reader of record batches."""
    import duckdb
    import pyarrow as pa

    try:
        if isinstance(item, duckdb.DuckDBPyRelation):
            return item.to_arrow_reader(_ROWS)
        return pa.RecordBatchReader.from_stream(item)
    except (duckdb.Error, pa.ArrowException, OSError, TypeError) as error:
        fault = fault_class(error)  # the message may quote a value
    raise fault(f"{what} cannot be read; does its query run, and is its connection open?")


def _records(stream: Any, what: str) -> Iterator[Any]:
    """Yield record batches; messages of the library behind them may quote a value."""
    import duckdb
    import pyarrow as pa

    try:
        yield from stream
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        fault = fault_class(error)
    else:
        return
    raise fault(f"{what} failed while it was read; does its query run?")
