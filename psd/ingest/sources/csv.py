"""CSV files, read as a stream by SQL of DuckDB. Private side. No message quotes a field.

Fields are parsed by an explicit schema: coordinates are plain ASCII decimal numbers, ids are text
(007 is not 7). A record without a coordinate is left out; text there stops the build.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import from_arrow
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError, InternalError, PsdError, ResourceError
from psd.ingest import input_paths
from psd.ingest.memory_limit import apply_settings, open_session
from psd.ingest.points import MISSING, SPACES, Projection, column_projection, number_rule, srid_of
from psd.ingest.selection import selected_values
from psd.ingest.sources._arrow import fault_class
from psd.ingest.sources._csv_file import (
    CsvContent,
    Header,
    find_compression,
    plain_file,
    read_header,
    scan_content,
    standard_input,
)
from psd.ingest.sources._point_text import decode_point_text
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    import duckdb

    from psd.ingest.sources import Columns
    from psd.ingest.sources._copies import CopyCheck
    from psd.space.domain import Domain

__all__ = ["MISSING"]


@dataclass(frozen=True, slots=True)
class CsvQuery:
    """How a file is parsed."""

    header: Header  # names of its columns, and those to read
    compression: str
    content: CsvContent  # what one scan of it has shown

    @property
    def has_numbers(self) -> bool:
        """Whether `numbers` reads the file: coordinates are fields, and a line is a row at most."""
        columns, content = self.header.columns, self.content
        is_text = {columns.x, columns.y} & set(columns.filtered)  # a filter reads them as text
        is_plain = columns.decimal == "." and not is_text
        return is_plain and not content.quotes and not content.line_ends

    def points(self) -> str:
        """SQL of the texts of points."""
        columns = self.header.columns
        assert columns.wkt is not None  # else the file is read by `numbers`
        return f"SELECT {self._field(columns.wkt)} AS point {self._others()} FROM {self._table()}"

    def numbers(self) -> str:
        """SQL of coordinates that the parser itself converts; `left_out` reads the other rows."""
        columns = self.header.columns
        # Less work. Malformed rows and other text are left out, so there are fewer rows than lines.
        missing = "'nan'::DOUBLE"
        x, y = (f"coalesce({self._field(name)}, {missing})" for name in (columns.x, columns.y))
        table = self._table(numbers=(columns.x, columns.y))
        return f"SELECT {x} AS x, {y} AS y {self._others()} FROM {table}"

    def left_out(self) -> str:
        """SQL of the rows that `numbers` leaves out; malformed ones are refused."""
        odd = (f"text_{a} IS NOT NULL AND TRY_CAST(text_{a} AS DOUBLE) IS NULL" for a in "xy")
        return f"{self.text(with_texts=True)} WHERE {' OR '.join(odd)}"

    def size(self) -> str:
        """SQL of the number of rows."""
        return f"SELECT count(*) FROM {self._table()}"

    def text(self, *, with_texts: bool) -> str:
        """SQL that reads numbers strictly, NaN or infinite for others; their texts on request."""
        columns = self.header.columns
        x, y = self._field(columns.x), self._field(columns.y)
        comma = columns.decimal == ","
        numbers = f"{_number(x, comma=comma)} AS x, {_number(y, comma=comma)} AS y {self._others()}"
        if not with_texts:
            return f"SELECT {numbers} FROM {self._table()}"
        has_underscore = self.content.has_underscore
        odd = ", ".join(_odd(axis, has_underscore=has_underscore) for axis in ("x", "y"))
        return f"""
            SELECT * EXCLUDE (text_x, text_y), {odd}
            FROM (SELECT {x} AS text_x, {y} AS text_y, {numbers} FROM {self._table()})
        """

    def _others(self) -> str:
        """SQL of the other columns."""
        columns = self.header.columns
        others = "".join(
            f", {self._field(name)} AS {kind}"
            for kind, name in (("user", columns.user), ("time", columns.time))
            if name
        )
        others += "".join(
            f", {self._field(name)} AS f{index}" for index, name in enumerate(columns.filtered)
        )
        return others + (f", {self._bid(columns.bid)} AS bid" if columns.bid else "")

    def _bid(self, name: str) -> str:
        """SQL of a bid: NaN unless it is a plain number."""
        field = self._field(name)
        number = _number(field, comma=self.header.columns.decimal == ",")
        return f"CASE WHEN contains({field}, '_') THEN 'nan'::DOUBLE ELSE {number} END"

    def _field(self, name: str) -> str:
        """SQL of the text of a field."""
        return f"c{self.header.names.index(name)}"

    def _table(self, numbers: tuple[str, ...] = ()) -> str:
        """SQL of the fields, some of which are numbers; rows with other text are left out."""
        fields = (
            f"{_quoted(f'c{index}')}: '{'DOUBLE' if name in numbers else 'VARCHAR'}'"
            for index, name in enumerate(self.header.names)
        )
        schema, quotes = ", ".join(fields), "quote = '', escape = ''"
        # Several threads would guess whether they start inside of quotes, and whether a guess fails
        # would depend on other records.
        if self.content.quotes:
            quotes = """quote = '"', escape = '"', parallel = false"""
        return f"""read_csv($1, columns = {{{schema}}}, auto_detect = false, header = true,
            compression = '{self.compression}', delim = {_quoted(self.header.delimiter)}, {quotes},
            strict_mode = true{", ignore_errors = true" if numbers else ""})"""


def _quoted(text: str) -> str:
    """Quote a text literal for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _number(column: str, *, comma: bool) -> str:
    """SQL of the number in a text, else NaN; a bare TRY_CAST would stop the parser at such text."""
    number = f"TRY_CAST({column} AS DOUBLE)"
    if comma:
        number = f"TRY_CAST(replace({column}, ',', '.') AS DOUBLE)"
        number = f"CASE WHEN contains({column}, '.') THEN NULL ELSE {number} END"
    return f"coalesce({number}, 'nan'::DOUBLE)"


def _odd(axis: str, *, has_underscore: bool) -> str:
    """SQL of a text unless DuckDB reads a finite number (NaN sorts above) without underscores."""
    is_plain = f"{axis} < 'infinity'::DOUBLE"
    is_plain += f" AND NOT contains(text_{axis}, '_')" * has_underscore
    return f"CASE WHEN {is_plain} THEN NULL ELSE text_{axis} END AS odd_{axis}"


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
    """Read CSV files with the same columns; ``-`` is standard input. Each is told to `copies`."""
    with contextlib.ExitStack() as stack:
        # Plain files as they are, standard input and other text as unnamed files.
        paths = []
        for item in items:
            is_stream = str(item) == input_paths.STDIN
            file = stack.enter_context(standard_input()) if is_stream else item
            paths.append(stack.enter_context(plain_file(file, columns)))
        headers = [read_header(path, columns) for path in paths]
        for item, path, header in zip(items, paths, headers, strict=True):
            with input_paths.refuse_changes([path]):
                # Each is read once before it is parsed.
                content = scan_content(path, find_compression(path), header.delimiter)
                if content.quotes % 2:
                    raise InputDataError(f"{path} is malformed: {_WELL_FORMED}")
                name = "standard input" if str(item) == input_paths.STDIN else str(item)
                if copies is not None and content.has_rows:
                    copies.add(path, content.length, name)
                project = column_projection(columns, domain, name)
                srid = srid_of(domain.crs, columns.input_crs)
                yield from _stream(path, header, content, project, srid)


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
        columns = (from_arrow(batch.column(axis)) for axis in ("x", "y"))
        if not is_checked and not all(np.isfinite(column).all() for column in columns):
            for _ in run(connection.cursor(), layout.text(with_texts=True)):
                pass
            is_checked = True
        rows += len(batch)
        yield batch
    if layout.has_numbers and rows != content.lines - 1:
        for batch in run(connection, layout.left_out()):
            rows += len(batch)
            yield batch
        if rows != connection.sql(layout.size(), params=[glob.escape(str(path))]).fetchall()[0][0]:
            raise InputDataError(f"{path} changed while it was read; nothing was published")


def _run(
    path: Path, columns: Columns, connection: duckdb.DuckDBPyConnection, query: str
) -> Iterator[Any]:
    """Arrow record batches of a query; text in place of a number stops the build."""
    # Settings that limit the memory of the parser.
    memory = columns.memory
    threads = os.cpu_count() or 1
    if memory is None:
        memory = 2 * threads * _THREAD_BYTES
    threads = max(1, min(threads, memory // _THREAD_BYTES))
    apply_settings(
        connection,
        _ANY_ORDER
        + (
            f"SET threads = {threads}; SET memory_limit = '{memory}B'; "
            f"SET streaming_buffer_size = '{min(_STREAM_BUFFER, memory // 8)}B'"
        ),
    )  # of this cursor
    relation = connection.sql(query, params=[glob.escape(str(path))])
    for batch in relation.to_arrow_reader(_ROWS):
        if "odd_x" in batch.schema.names:
            for axis, name in zip(("x", "y"), (columns.x, columns.y), strict=True):
                is_infinite = np.isinf(from_arrow(batch.column(axis))).any()
                if is_infinite or not _all_missing(batch.column(f"odd_{axis}")):
                    raise InputDataError(f"column {name!r} of {path} {number_rule(columns)}")
        yield batch


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
    letters = None if user is None else user.buffers()[-1]
    if letters is not None and b"\0" in memoryview(letters).tobytes():  # ends texts elsewhere
        raise InputDataError(
            f"column {columns.user!r} of {path} must not hold NUL bytes; repair the file"
        )
    time = None
    if columns.time is not None:
        time = wall_clock(batch.column("time"), columns.time_zone, column=columns.time)
    bid = from_arrow(batch.column("bid")) if columns.bid else None
    filtered = {name: batch.column(f"f{index}") for index, name in enumerate(columns.filtered)}
    return Batch(x=x, y=y, user=user, time=time, bid=bid, **selected_values(columns, filtered))


def _all_missing(texts: Any) -> bool:
    """Whether all texts are usual marks of a missing number."""
    if texts.null_count == len(texts):
        return True
    return {
        text.strip(SPACES).lower() for text in texts.drop_null().unique().to_pylist()
    } <= MISSING
