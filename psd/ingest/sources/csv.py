"""CSV files, read as a stream by DuckDB. Private side.

Fields are parsed by an explicit schema, never by guessing: coordinates are plain ASCII decimal
numbers, ids are text (007 is not 7). A record without a coordinate is left out and counted in the
private report; text that is not a number stops the build, since the column is probably a wrong
one. No message quotes a field.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import from_arrow
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError, InternalError, PsdError, ResourceError
from psd.ingest import input_paths
from psd.ingest.coordinate_text import MISSING, SPACES, number_rule, srid_of
from psd.ingest.duckdb_session import apply_settings, open_session
from psd.ingest.points import Projection, column_projection
from psd.ingest.selection import matches
from psd.ingest.sources._csv_file import CsvContent, find_compression, scan_content
from psd.ingest.sources._csv_header import Header, read_header
from psd.ingest.sources._csv_query import CsvQuery
from psd.ingest.sources._faults import fault_class
from psd.ingest.sources._plain_text import plain_file, standard_input
from psd.ingest.sources._point_text import decode_point_text
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    import duckdb

    from psd.ingest.sources import Columns
    from psd.ingest.sources._copies import CopyCheck
    from psd.space.domain import Domain

__all__ = ["MISSING", "accepts", "batches"]

# A batch of this many records fits into the cache of a processor.
_ROWS = 2**17

_WELL_FORMED = (
    "each row needs as many fields as the header line, closed quotes, line ends of "
    "one kind, and UTF-8 text"
)

# Rows may arrive in any order; they wait in memory while others are counted.
_ANY_ORDER = "SET preserve_insertion_order = false; "

# How DuckDB begins its messages about the content of a file of CSV. Errors of its other kinds, and
# other messages of this kind, are no faults of a file.
_ABOUT_CONTENT = ("invalid input error: csv error", "invalid input error: the csv parser")

_STREAM_BUFFER = 64 * 2**20

# Memory of one thread of the parser.
_THREAD_BYTES = 2**27


STATES_LENGTHS = True
"""Whether this source passes the length of its files after decompression to the check of copies."""

USES: tuple[str, ...] = ("wkt", "delimiter", "decimal", "encoding", "skip_rows", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(data: Any) -> bool:
    """Whether the input is a path, and not that of a file of another known format."""
    return input_paths.file_kind(data) == "csv"


def batches(
    items: list[Path], columns: Columns, domain: Domain, *, copies: CopyCheck | None = None
) -> Iterator[Batch]:
    """Read CSV files with the same columns.

    Parameters
    ----------
    items : list of Path
        Files, or ``-`` for standard input.
    columns : Columns
        Names of the columns.
    domain : Domain
        Its CRS is that of the coordinates, unless ``columns`` state another one.
    copies : CopyCheck, optional
        Receives each file and its length, which is known after one scan of the file.

    Raises
    ------
    InputDataError
        If a file is malformed, lacks a column or changes while it is read.
    """
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(_as_file(path, columns)) for path in items]
        headers = [read_header(path, columns) for path in paths]
        for item, path, header in zip(items, paths, headers, strict=True):
            with input_paths.refuse_changes([path]):
                content = _scan(path, header.delimiter)
                if copies is not None and content.has_rows:
                    copies.add(path, content.length, _display_name(item))
                project = column_projection(columns, domain, _display_name(item))
                srid = srid_of(domain.crs, columns.input_crs)
                yield from _stream(path, header, content, project, srid)


def _display_name(item: Path) -> str:
    """What an input is called in messages."""
    return "standard input" if str(item) == input_paths.STDIN else str(item)


def _scan(path: Path, delimiter: str) -> CsvContent:
    """Read a file once before it is parsed; refuse a quote that is not closed."""
    content = scan_content(path, find_compression(path), delimiter)
    if content.quotes % 2:
        raise InputDataError(f"{path} is malformed: {_WELL_FORMED}")
    return content


@contextmanager
def _as_file(path: Path, columns: Columns) -> Iterator[Path]:
    """Yield a plain file as it is, and standard input and other text as an unnamed file."""
    is_stream = str(path) == input_paths.STDIN
    opened = standard_input() if is_stream else contextlib.nullcontext(path)
    with opened as file, plain_file(file, columns) as plain:
        yield plain


def _stream(
    path: Path, header: Header, content: CsvContent, project: Projection, srid: int | None
) -> Iterator[Batch]:
    """Read one file."""
    import duckdb
    import pyarrow as pa

    layout = CsvQuery(header, find_compression(path), content)
    fault: str | None = None
    kind: type[PsdError] = InputDataError
    try:
        with open_session() as connection:
            for batch in _rows(path, layout, connection):
                yield _batch(path, batch, header.columns, project, srid)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        fault, kind = _explain_fault(str(path), error), _kind_of_fault(error)
    if fault:  # raised here, so that no context carries the message
        raise kind(fault)


def _rows(path: Path, layout: CsvQuery, connection: duckdb.DuckDBPyConnection) -> Iterator[Any]:
    """Arrow record batches of one file, the fields of which are checked."""
    content, run = layout.content, partial(_run, path, layout.header.columns)
    if layout.header.columns.wkt is not None:
        yield from run(connection, layout.points())
        return
    if content.has_underscore or content.may_have_gaps:
        yield from run(connection, layout.text(with_texts=True))
        return
    query = layout.numbers() if layout.has_numbers else layout.text(with_texts=False)
    is_checked, rows = False, 0
    for batch in run(connection, query):
        if not is_checked and not _is_finite(batch):
            for _ in run(connection.cursor(), layout.text(with_texts=True)):
                pass
            is_checked = True
        rows += len(batch)
        yield batch
    if layout.has_numbers and rows != content.lines - 1:
        for batch in run(connection, layout.left_out()):
            rows += len(batch)
            yield batch
        if rows != connection.sql(layout.size(), params=_parameters(path)).fetchall()[0][0]:
            raise InputDataError(f"{path} changed while it was read; nothing was published")


def _run(
    path: Path, columns: Columns, connection: duckdb.DuckDBPyConnection, query: str
) -> Iterator[Any]:
    """Arrow record batches of a query; text in place of a number stops the build."""
    apply_settings(connection, _ANY_ORDER + _memory_settings(columns.memory))  # of this cursor
    relation = connection.sql(query, params=_parameters(path))
    for batch in relation.to_arrow_reader(_ROWS):
        if "odd_x" in batch.schema.names:
            _check_texts(path, batch, columns)
        yield batch


def _parameters(path: Path) -> list[str]:
    """Parameters of a query that reads one file, whatever characters its name has."""
    return [glob.escape(str(path))]


def _memory_settings(memory: int | None) -> str:
    """Settings that limit the memory of the parser."""
    threads = os.cpu_count() or 1
    if memory is None:
        memory = 2 * threads * _THREAD_BYTES
    threads = max(1, min(threads, memory // _THREAD_BYTES))
    return (
        f"SET threads = {threads}; SET memory_limit = '{memory}B'; "
        f"SET streaming_buffer_size = '{min(_STREAM_BUFFER, memory // 8)}B'"
    )


def _kind_of_fault(error: Exception) -> type[PsdError]:
    """Class of the error that replaces an error of DuckDB or Arrow."""
    import duckdb

    if isinstance(error, duckdb.IOException):
        return ResourceError
    is_of_file = str(error).lower().startswith(_ABOUT_CONTENT)
    is_of_engine = isinstance(error, duckdb.Error) and not is_of_file
    return InternalError if is_of_engine else fault_class(error)


def _explain_fault(path: str, error: Exception) -> str:
    """Explain an error of DuckDB or Arrow, whose message quotes the row and is not passed on."""
    kind, message = _kind_of_fault(error), str(error).replace(path, "").lower()
    if kind is InternalError:
        return (
            f"DuckDB has failed ({type(error).__name__}) while CSV was read, which is no fault of "
            "the file; please report it"
        )
    if kind is ResourceError:
        return f"{path} could not be read to its end; is there memory, and is its disk reachable?"
    if "unicode" in message or "utf-8" in message:
        return f"{path} is not in UTF-8: {_WELL_FORMED}"
    if "maximum line size" in message:
        return f"{path} has a row of more than 2 MB: {_WELL_FORMED}"
    return f"{path} is malformed: {_WELL_FORMED}"


def _is_finite(batch: Any) -> bool:
    """Whether all coordinates are finite numbers."""
    return all(np.isfinite(from_arrow(batch.column(axis))).all() for axis in ("x", "y"))


def _check_texts(path: Path, batch: Any, columns: Columns) -> None:
    """Refuse text in place of a number."""
    for axis, name in zip(("x", "y"), (columns.x, columns.y), strict=True):
        is_infinite = np.isinf(from_arrow(batch.column(axis))).any()
        if is_infinite or not _all_missing(batch.column(f"odd_{axis}")):
            raise InputDataError(f"column {name!r} of {path} {number_rule(columns)}")


def _batch(
    path: Path, batch: Any, columns: Columns, project: Projection, srid: int | None
) -> Batch:
    """Convert an Arrow record batch."""
    if columns.wkt is None:
        points = from_arrow(batch.column("x")), from_arrow(batch.column("y"))
    else:
        text = batch.column("point")
        points = decode_point_text(text, columns.wkt, srid, where=f" of {path}")
    x, y = project(points)
    user = batch.column("user") if columns.user else None
    if user is not None and _has_nul(user):
        raise InputDataError(
            f"column {columns.user!r} of {path} must not hold NUL bytes; repair the file"
        )
    time = None
    if columns.time is not None:
        time = wall_clock(batch.column("time"), columns.time_zone, column=columns.time)
    bid = from_arrow(batch.column("bid")) if columns.bid else None
    filtered = {name: batch.column(f"f{index}") for index, name in enumerate(columns.filtered)}
    return Batch(x=x, y=y, user=user, time=time, bid=bid, match=matches(columns, filtered))


def _all_missing(texts: Any) -> bool:
    """Whether all texts are usual marks of a missing number."""
    if texts.null_count == len(texts):
        return True
    return {
        text.strip(SPACES).lower() for text in texts.drop_null().unique().to_pylist()
    } <= MISSING


def _has_nul(ids: Any) -> bool:
    """Whether an id holds a NUL byte, which ends texts in other programs."""
    data = ids.buffers()[-1]
    return data is not None and b"\0" in memoryview(data).tobytes()
