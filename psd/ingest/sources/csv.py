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
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import from_arrow
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError, ResourceError
from psd.ingest.sources import _paths
from psd.ingest.sources._csv_file import (
    BUFFER,
    CsvContent,
    check_columns,
    find_compression,
    read_header,
    scan_content,
)
from psd.ingest.sources._faults import fault_class
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.sources._copies import CopyCheck
    from psd.space.domain import Domain

__all__ = ["MISSING", "accepts", "batches"]

# A batch of this many records fits into the cache of a processor.
_ROWS = 2**17

_WELL_FORMED = (
    "each row needs as many comma-separated fields as the first line, closed quotes, line ends of "
    "one kind, and UTF-8 text"
)

# Rows may arrive in any order; they wait in memory while others are counted, never in a file.
_SETTINGS = (
    "SET preserve_insertion_order = false; SET enable_progress_bar = false; "
    "SET temp_directory = ''; "
)

_STREAM_BUFFER = 64 * 2**20

# Memory of one thread of the parser.
_THREAD_BYTES = 2**27

# What spreadsheets and databases write for a missing number.
MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}


STATES_LENGTHS = True
"""Whether this source passes the length of its files after decompression to the check of copies."""

USES: tuple[str, ...] = ()
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(data: Any) -> bool:
    """Whether the input is a path, and not that of a file of another known format."""
    return _paths.file_kind(data) == "csv"


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
        Not used; files of CSV state no CRS.
    copies : CopyCheck, optional
        Receives each file and its length, which is known after one scan of the file.

    Raises
    ------
    InputDataError
        If a file is malformed, lacks a column or changes while it is read.
    """
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(_as_file(path)) for path in items]
        headers = [read_header(path) for path in paths]
        for path, header in zip(paths, headers, strict=True):
            check_columns(path, header, columns)
        for item, path, header in zip(items, paths, headers, strict=True):
            with _paths.refuse_changes([path]):
                content = _scan(path)
                if copies is not None and content.has_rows:
                    copies.add(path, content.length, _display_name(item))
                yield from _stream(path, header, columns, content)


def _display_name(item: Path) -> str:
    """What an input is called in messages."""
    return "standard input" if str(item) == _paths.STDIN else str(item)


def _scan(path: Path) -> CsvContent:
    """Read a file once before it is parsed; refuse a quote that is not closed."""
    content = scan_content(path, find_compression(path))
    if content.quotes % 2:
        raise InputDataError(f"{path} is malformed: {_WELL_FORMED}")
    return content


def _as_file(path: Path) -> contextlib.AbstractContextManager[Path]:
    """Return a file unchanged, and standard input as a file."""
    return _standard_input() if str(path) == _paths.STDIN else contextlib.nullcontext(path)


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Copy standard input to an unnamed file and yield its path."""
    with tempfile.TemporaryFile() as spool:
        try:
            shutil.copyfileobj(sys.stdin.buffer, spool, BUFFER)
            spool.flush()
        except OSError as error:
            with contextlib.suppress(OSError):  # the rest of the buffer has no room either
                spool.close()
            raise ResourceError(
                f"standard input cannot be stored in {tempfile.gettempdir()}: {error.strerror}; "
                "free some space, or name another folder by TMPDIR"
            ) from None
        path = f"/dev/fd/{spool.fileno()}"
        try:
            yield Path(path)
        except InputDataError as error:
            message = str(error).replace(path, "standard input")
            raise type(error)(message) from None


def _stream(
    path: Path, header: list[str], columns: Columns, content: CsvContent
) -> Iterator[Batch]:
    """Read one file."""
    import duckdb
    import pyarrow as pa

    compression = find_compression(path)
    query = _query(header, columns, compression=compression, content=content)
    fault, kind = None, InputDataError
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(_SETTINGS + _memory_settings(columns.memory))
            relation = connection.sql(query, params=[glob.escape(str(path))])
            for batch in relation.to_arrow_reader(_ROWS):
                yield _batch(path, batch, columns)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        fault = _explain_fault(str(error).replace(str(path), "").lower())
        kind = fault_class(error)
    if fault:  # raised here, so that no context carries the message
        raise kind(f"{path} {fault}: {_WELL_FORMED}")


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


def _explain_fault(message: str) -> str:
    """Explain a message of DuckDB, which quotes the row and is not passed on."""
    if "unicode" in message or "utf-8" in message:
        return "is not in UTF-8"
    if "maximum line size" in message:
        return "has a row of more than 2 MB"
    return "is malformed"


def _query(header: list[str], columns: Columns, *, compression: str, content: CsvContent) -> str:
    """SQL that reads numbers strictly, and the text of fields that are not numbers.

    A file with quotes is parsed by one thread. Several threads would have to guess whether their
    start positions are inside quotes, and whether a guess fails would depend on other records.
    Without quotes there is nothing to guess.
    """
    schema = ", ".join(f"{_quoted(f'c{index}')}: 'VARCHAR'" for index in range(len(header)))
    x, y = (f"c{header.index(name)}" for name in (columns.x, columns.y))
    quotes = "quote = '', escape = ''"
    if content.quotes:
        quotes = """quote = '"', escape = '"', parallel = false"""
    odd = ", ".join(_odd(axis, has_underscore=content.has_underscore) for axis in ("x", "y"))
    others = "".join(
        f", c{header.index(name)} AS {kind}"
        for kind, name in (("user", columns.user), ("time", columns.time))
        if name
    )
    return f"""
        SELECT * EXCLUDE (text_x, text_y), {odd}
        FROM (
            SELECT {x} AS text_x, {y} AS text_y,
                {_number(x)} AS x, {_number(y)} AS y {others}
            FROM read_csv($1, columns = {{{schema}}}, auto_detect = false, header = true,
                compression = '{compression}', delim = ',', {quotes}, strict_mode = true)
        )
    """


def _quoted(text: str) -> str:
    """Quote a text literal for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _number(column: str) -> str:
    """SQL of the number in a text, NaN if it is not a number."""
    return f"coalesce(TRY_CAST({column} AS DOUBLE), 'nan'::DOUBLE)"


def _odd(axis: str, *, has_underscore: bool) -> str:
    """SQL of the text of a field unless it is a plain decimal number.

    A text that DuckDB parses as a finite number is a plain decimal number, unless it has
    underscores between digits. DuckDB sorts NaN above infinity.
    """
    is_plain = f"{axis} < 'infinity'::DOUBLE"
    is_plain += f" AND NOT contains(text_{axis}, '_')" * has_underscore
    return f"CASE WHEN {is_plain} THEN NULL ELSE text_{axis} END AS odd_{axis}"


def _batch(path: Path, batch: Any, columns: Columns) -> Batch:
    """Convert an Arrow record batch; text in place of a number stops the build."""
    numbers = [from_arrow(batch.column(axis)) for axis in ("x", "y")]
    for values, axis, name in zip(numbers, ("odd_x", "odd_y"), columns, strict=False):
        if np.isinf(values).any() or not _all_missing(batch.column(axis)):
            raise InputDataError(
                f"column {name!r} of {path} must hold plain decimal numbers such as 127.01, "
                "without decimal comma, degrees and minutes, or thousands separator"
            )
    user = batch.column("user") if columns.user else None
    if user is not None and _has_nul(user):
        raise InputDataError(
            f"column {columns.user!r} of {path} must not hold NUL bytes; repair the file"
        )
    time = None
    if columns.time is not None:
        time = wall_clock(batch.column("time"), columns.time_zone, column=columns.time)
    return Batch(x=numbers[0], y=numbers[1], user=user, time=time)


def _all_missing(texts: Any) -> bool:
    """Whether all texts are usual marks of a missing number."""
    if texts.null_count == len(texts):
        return True
    return {text.strip(" \t").lower() for text in texts.drop_null().unique().to_pylist()} <= MISSING


def _has_nul(ids: Any) -> bool:
    """Whether an id holds a NUL byte, which ends texts in other programs."""
    data = ids.buffers()[-1]
    return data is not None and b"\0" in memoryview(data).tobytes()
