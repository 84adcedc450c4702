"""CSV files, read as a stream by DuckDB. Private side.

Fields are parsed by an explicit schema, never by guessing: coordinates are plain ASCII decimal
numbers, ids are text (007 is not 7). A row without a coordinate is left out and counted for the
private report; text that is no number stops the build, since it says that the column is not
what was thought. No message quotes a field.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import from_arrow
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError
from psd.ingest.sources import _paths
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain

__all__ = ["DECIMAL", "MISSING", "accepts", "batches"]

# Small enough for the cache of a processor.
_ROWS = 2**17
_LONGEST_HEADER = 2**20
# Stays in the cache of a processor while it is looked through.
_PART = 2**20

_LINE_END = re.compile(rb"[\r\n]")

_WELL_FORMED = (
    "each row needs as many comma-separated fields as the first line, closed quotes, line ends of "
    "one kind, and UTF-8 text"
)
_MARK = b"\xef\xbb\xbf"

# First bytes of files that are taken for CSV, and what to do about them.
_OTHER_FORMATS = {
    b"\xfd7zXZ\0": "a compressed file; decompress it first",
    b"BZh91AY&SY": "a compressed file; decompress it first",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "a workbook; save it as CSV in UTF-8",
    b"PAR1": "a Parquet file; save it as CSV in UTF-8",
    b"SQLite format 3\0": "a GeoPackage or a database; save it as CSV in UTF-8",
    b"\xff\xfe": "UTF-16; save it as CSV in UTF-8",
    b"\xfe\xff": "UTF-16; save it as CSV in UTF-8",
}

# First bytes of files whose content is read through.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

# Tables of coordinates shrink to a third or a tenth.
_MOST_EXPANDED = 200

# Rows come in any order; more of them wait while others are counted, and none in a file.
_SETTINGS = (
    "SET preserve_insertion_order = false; SET enable_progress_bar = false; "
    "SET temp_directory = ''; "
)

_WAITING = 64 * 2**20

# What one thread of the parser works in.
_THREAD = 2**27

DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

# What spreadsheets and databases write where a number is missing.
MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}


USES: tuple[str, ...] = ()
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(data: Any) -> bool:
    """Whether the input is a path, and that of no file of another known format."""
    return _paths.kind(data) == "csv"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of one or several CSV files with the same columns.

    Raises
    ------
    InputDataError
        If a file is malformed, lacks a column or changes while it is read.
    """
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(_readable(path)) for path in items]
        headers = [_header(path) for path in paths]
        for path, header in zip(paths, headers, strict=True):
            _check_columns(path, header, columns)
        for path, header in zip(paths, headers, strict=True):
            with _paths.unchanged([path]):
                yield from _stream(path, header, columns)


def _readable(path: Path) -> contextlib.AbstractContextManager[Path]:
    """A file as it is; standard input by a path that it can be read at."""
    return _standard_input() if str(path) == _paths.STDIN else contextlib.nullcontext(path)


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Standard input, read to its end into a file without a name, which is read as any other."""
    with tempfile.TemporaryFile() as spool:
        try:
            shutil.copyfileobj(sys.stdin.buffer, spool, _PART)
            spool.flush()
        except OSError as error:
            with contextlib.suppress(OSError):  # what is left in the buffer has no room either
                spool.close()
            raise InputDataError(
                f"standard input cannot be kept in {tempfile.gettempdir()}: {error.strerror}; "
                "make room, or name another folder by TMPDIR"
            ) from None
        path = f"/dev/fd/{spool.fileno()}"
        try:
            yield Path(path)
        except InputDataError as error:
            message = str(error).replace(path, "standard input")
            raise InputDataError(message) from None


def _header(path: Path) -> list[str]:
    """Column names in the first line."""
    with _opened(path, _compression(path)) as file:
        start = _first_line(file)
    for mark, kind in _OTHER_FORMATS.items():
        if start.startswith(mark):
            raise InputDataError(f"{path} is no UTF-8 text but {kind}")
    line = re.split(rb"[\r\n]", start.removeprefix(_MARK), maxsplit=1)[0]
    if not line.strip():
        raise InputDataError(f"the first line of {path} is empty; it has to name the columns")
    if b"\0" in line:
        raise InputDataError(f"{path} is no UTF-8 text; save it as CSV in UTF-8")
    try:
        # A quote that is not closed would swallow the next line too, and then the rows.
        names, *after = csv.reader([line.decode() + "\n", "next"])
    except UnicodeDecodeError:
        raise InputDataError(f"{path} is not in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error:
        raise InputDataError(f"the first line of {path} has a name that is too long") from None
    if not after:
        raise InputDataError(f"the first line of {path} has a quote that is not closed")
    return [name.strip() for name in names]


def _first_line(file: IO[bytes]) -> bytes:
    """First line of a stream, or as much of it as a header may have."""
    start = b""
    while b"\n" not in start and len(start) < _LONGEST_HEADER:
        more = file.read(2**16)
        if not more:
            break
        start += more
    return start.partition(b"\n")[0]


def _check_columns(path: Path, header: list[str], columns: Columns) -> None:
    """Refuse missing and doubled columns, with the likely cause."""
    for name in columns:
        if header.count(name) > 1:
            raise InputDataError(f"{path} has {header.count(name)} columns named {name!r}")
        if name not in header:
            raise InputDataError(
                f"{path} has no column {name!r} in its first line; {_likely_cause(header)}"
            )


def _likely_cause(header: list[str]) -> str:
    """Why a column is not found."""
    for mark in ";\t|":
        if mark in header[0]:
            return f"is it separated by {mark!r}?"
    if sum(re.fullmatch(DECIMAL, name) is not None for name in header) > 1:
        return "is that line data, without a line of column names above it?"
    return "see --x, --y, --user, --time"


def _stream(path: Path, header: list[str], columns: Columns) -> Iterator[Batch]:
    """Batches of one file."""
    import duckdb
    import pyarrow as pa

    compression = _compression(path)
    signs = _signs(path, compression)
    if signs.quotes % 2:
        raise InputDataError(f"{path} is malformed: {_WELL_FORMED}")
    query = _query(header, columns, compression=compression, signs=signs)
    fault = None
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(_SETTINGS + _limits(columns.memory))
            relation = connection.sql(query, params=[glob.escape(str(path))])
            for batch in relation.to_arrow_reader(_ROWS):
                yield _batch(path, batch, columns)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        fault = _fault(str(error).replace(str(path), "").lower())
    if fault:  # raised here, where no context carries the message
        raise InputDataError(f"{path} {fault}: {_WELL_FORMED}")


def _limits(memory: int | None) -> str:
    """Settings that keep the parser within its memory."""
    threads = os.cpu_count() or 1
    if memory is None:
        memory = 2 * threads * _THREAD
    threads = max(1, min(threads, memory // _THREAD))
    return (
        f"SET threads = {threads}; SET memory_limit = '{memory}B'; "
        f"SET streaming_buffer_size = '{min(_WAITING, memory // 8)}B'"
    )


def _compression(path: Path) -> str:
    """How a file is compressed, by its first bytes; ``"none"`` where it is not."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((kind for mark, kind in _COMPRESSED.items() if start.startswith(mark)), "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """What stands anywhere below the first line, and decides how the file is parsed."""

    quotes: int
    has_underscore: bool


def _signs(path: Path, compression: str) -> _Signs:
    """Look a file through once; a parser that meets its end inside quotes may say nothing."""
    quotes = size = 0
    has_underscore, is_below = False, False
    most = _MOST_EXPANDED * path.stat().st_size
    with _opened(path, compression) as file:
        for part in iter(lambda: file.read(_PART), b""):
            size += len(part)
            if size > most:
                raise InputDataError(
                    f"{path} expands to more than {_MOST_EXPANDED} times its size, which no table "
                    "of places does; is it damaged, or made to fill the disk?"
                )
            if not is_below:
                end = _LINE_END.search(part)
                part = part[end.end() if end else len(part) :]
                is_below = end is not None
            # To find none is much faster than to count them.
            quotes += part.count(b'"') if b'"' in part else 0
            has_underscore = has_underscore or b"_" in part
    return _Signs(quotes=quotes, has_underscore=has_underscore)


@contextmanager
def _opened(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """A file as bytes of CSV; one whose compressed data breaks off is refused."""
    import pyarrow as pa

    broken = False
    with path.open("rb") as raw:
        try:
            yield raw if compression == "none" else pa.CompressedInputStream(raw, compression)
        except OSError:
            broken = True
    if broken:
        raise InputDataError(
            f"{path} is damaged or incomplete {compression} data; copy it anew"
        ) from None


def _fault(message: str) -> str:
    """Kind of fault in a message of DuckDB, which quotes the row and is not passed on."""
    if "unicode" in message or "utf-8" in message:
        return "is not in UTF-8"
    if "maximum line size" in message:
        return "has a row of more than 2 MB"
    return "is malformed"


def _query(header: list[str], columns: Columns, *, compression: str, signs: _Signs) -> str:
    """Strict numbers, and the text of what is none.

    A file with quotes is parsed by one thread: several would have to guess whether the place
    where each begins lies inside quotes, and whether a guess fails depends on where the rows of
    others stand. Without quotes there is nothing to guess.
    """
    schema = ", ".join(f"{_quoted(f'c{place}')}: 'VARCHAR'" for place in range(len(header)))
    x, y = (f"c{header.index(name)}" for name in (columns.x, columns.y))
    quotes = "quote = '', escape = ''"
    if signs.quotes:
        quotes = """quote = '"', escape = '"', parallel = false"""
    odd = ", ".join(_odd(axis, has_underscore=signs.has_underscore) for axis in ("x", "y"))
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
    """SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def _number(column: str) -> str:
    """Number that a text stands for, NaN where it is none."""
    return f"coalesce(TRY_CAST({column} AS DOUBLE), 'nan'::DOUBLE)"


def _odd(axis: str, *, has_underscore: bool) -> str:
    """Text of a field that may be no plain decimal number.

    What DuckDB takes for a finite number is one, but for underscores between digits. NaN is
    above infinity to DuckDB.
    """
    is_plain = f"{axis} < 'infinity'::DOUBLE"
    is_plain += f" AND NOT contains(text_{axis}, '_')" * has_underscore
    return f"CASE WHEN {is_plain} THEN NULL ELSE text_{axis} END AS odd_{axis}"


def _batch(path: Path, batch: Any, columns: Columns) -> Batch:
    """Arrow record batch as arrays; text where a number belongs stops the build."""
    numbers = [from_arrow(batch.column(axis)) for axis in ("x", "y")]
    for values, axis, name in zip(numbers, ("odd_x", "odd_y"), columns, strict=False):
        if np.isinf(values).any() or not _all_missing(batch.column(axis)):
            raise InputDataError(
                f"column {name!r} of {path} holds text that is no plain decimal number; numbers "
                "look like 127.01: no decimal comma, degrees and minutes, or thousands separator"
            )
    user = batch.column("user") if columns.user else None
    if user is not None and _has_nul(user):
        raise InputDataError(f"column {columns.user!r} of {path} holds NUL bytes; repair the file")
    time = None
    if columns.time is not None:
        time = wall_clock(batch.column("time"), columns.time_zone, column=columns.time)
    return Batch(x=numbers[0], y=numbers[1], user=user, time=time)


def _all_missing(texts: Any) -> bool:
    """Whether texts that are no numbers are usual marks for a missing one."""
    if texts.null_count == len(texts):
        return True
    return {text.strip(" \t").lower() for text in texts.drop_null().unique().to_pylist()} <= MISSING


def _has_nul(ids: Any) -> bool:
    """Whether the text of any id holds a byte that ends it in other programs."""
    data = ids.buffers()[-1]
    return data is not None and b"\0" in memoryview(data).tobytes()
