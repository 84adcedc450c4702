"""Arrow tables and streams, relations of DuckDB; WKB with a CRS, and GeoArrow, are points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from psd.ingest.sources import frame
from psd.ingest.sources._arrow import fault_class, find_columns, geometry_columns
from psd.ingest.tally_marks import refuse_tally_columns

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


_ROWS = 250_000

T = TypeVar("T")


USES: tuple[str, ...] = ("geometry", "wkt", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item gives an Arrow stream and is not a DataFrame."""
    is_stream = hasattr(item, "__arrow_c_stream__") or _is_lazy(item)
    return is_stream and not frame.accepts(item)


def _is_lazy(item: Any) -> bool:
    """Whether the item is a LazyFrame of Polars, which is collected when it is read."""
    kind = type(item)
    return kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read tables and streams, each once."""
    for item in items:
        what = f"the {type(item).__name__}"
        stream = _open_stream(item, what)
        refuse_tally_columns(what, stream.schema.names)
        chosen = find_columns(what, stream.schema, columns, domain, geometry_columns(stream.schema))
        yield from chosen.batches(_records(stream, what))


def _open_stream(item: Any, what: str) -> Any:
    """Open a reader of record batches."""
    import duckdb
    import pyarrow as pa

    try:
        if isinstance(item, duckdb.DuckDBPyRelation):
            return item.to_arrow_reader(_ROWS)
        if _is_lazy(item):
            return _collect(item, what)
        return pa.RecordBatchReader.from_stream(item)
    except (duckdb.Error, pa.ArrowException, OSError, TypeError) as error:
        fault = fault_class(error)  # the message may quote a value
    raise fault(f"{what} cannot be read; does its query run, and is its connection open?")


def _collect(item: Any, what: str) -> Any:
    """Rows of a LazyFrame, in batches where its version of Polars gives them."""
    import polars
    import pyarrow as pa

    def parts() -> Iterator[Any]:
        chunks = getattr(item, "collect_batches", None)
        tables = (item.collect(),) if chunks is None else chunks(chunk_size=_ROWS)
        for table in tables:
            yield from table.to_arrow().to_batches()

    def checked(read: Callable[[], T]) -> T:
        try:
            return read()
        except (polars.exceptions.PolarsError, pa.ArrowException, OSError, ValueError) as error:
            fault = fault_class(error)  # the message may quote a value
        raise fault(f"{what} cannot be collected; does its query run?")

    schema = checked(lambda: polars.DataFrame(schema=item.collect_schema()).to_arrow().schema)
    rows = parts()
    batches = iter(lambda: checked(lambda: next(rows, None)), None)
    return pa.RecordBatchReader.from_batches(schema, batches)


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
