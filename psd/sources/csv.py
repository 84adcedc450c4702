"""CSV files, read as a stream by DuckDB. Private side.

Fields are parsed by an explicit schema, never by guessing: coordinates are plain ASCII decimal
numbers, ids are text (007 is not 7). A row without a coordinate is left out and counted for the
private report; text that is no number stops the build, since it says that the column is not
what was thought. No message quotes a field.
"""

from __future__ import annotations

import csv
import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError, ParameterError
from psd.sources import _paths
from psd.tally import Batch

if TYPE_CHECKING:
    from psd.domain import Domain
    from psd.sources import Columns

__all__ = ["accepts", "batches"]

_ROWS = 1_000_000
_LONGEST_HEADER = 2**20
_PART = 2**24

_WELL_FORMED = (
    "each row needs as many comma-separated fields as the first line, closed quotes, line ends of "
    "one kind, and UTF-8 text"
)
_MARK = b"\xef\xbb\xbf"

# First bytes of files that are taken for CSV, and what to do about them.
_OTHER_FORMATS = {
    b"\x1f\x8b": "a compressed file; decompress it first",
    b"\xfd7zXZ\0": "a compressed file; decompress it first",
    b"\x28\xb5\x2f\xfd": "a compressed file; decompress it first",
    b"BZh91AY&SY": "a compressed file; decompress it first",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "a workbook; save it as CSV in UTF-8",
    b"PAR1": "a Parquet file; save it as CSV in UTF-8",
    b"SQLite format 3\0": "a GeoPackage or a database; save it as CSV in UTF-8",
    b"\xff\xfe": "UTF-16; save it as CSV in UTF-8",
    b"\xfe\xff": "UTF-16; save it as CSV in UTF-8",
}

_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

# What spreadsheets and databases write where a number is missing.
_MISSING = ("", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n")


def accepts(data: Any) -> bool:
    """Whether the input is a path, and that of no file of another known format."""
    return _paths.kind(data) == "csv"


def batches(data: Any, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of one or several CSV files with the same columns.

    Raises
    ------
    InputDataError
        If a file is missing, given twice, malformed, or changes while it is read.
    ParameterError
        If one column is named for two things.
    """
    if len(set(columns)) < len(list(columns)):
        raise ParameterError(f"{', '.join(columns)}: x, y and user have to be different columns")
    paths = [Path(item) for item in (data if isinstance(data, list | tuple) else [data])]
    _check_files(paths)
    headers = [_header(path) for path in paths]
    for path, header in zip(paths, headers, strict=True):
        _check_columns(path, header, columns)
    for path, header in zip(paths, headers, strict=True):
        before = _state(path)
        yield from _stream(path, header, columns)
        if _state(path) != before:
            raise InputDataError(f"{path} changed while it was read; nothing was published")


def _check_files(paths: list[Path]) -> None:
    """Refuse what is no regular file, and a file that is given twice under any name."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        try:
            state = path.stat()
        except (OSError, ValueError):
            raise InputDataError(f"input {path} does not exist or cannot be reached") from None
        if not stat.S_ISREG(state.st_mode):
            raise InputDataError(f"input {path} is no regular file; give a CSV file")
        if not os.access(path, os.R_OK):
            raise InputDataError(f"input {path} may not be read; check its permissions")
        if (state.st_dev, state.st_ino) in seen:
            raise InputDataError(f"input {path} is given twice; its rows would count double")
        seen.add((state.st_dev, state.st_ino))


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a file is replaced or grows."""
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def _header(path: Path) -> list[str]:
    """Column names in the first line."""
    with path.open("rb") as file:
        start = file.readline(_LONGEST_HEADER)
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
    if sum(re.fullmatch(_DECIMAL, name) is not None for name in header) > 1:
        return "is that line data, without a line of column names above it?"
    return "see --x, --y, --user"


def _stream(path: Path, header: list[str], columns: Columns) -> Iterator[Batch]:
    """Batches of one file."""
    import duckdb
    import pandas  # noqa: F401  # Arrow would import it, and lose an interrupt in between
    import pyarrow as pa

    if _quotes(path) % 2:
        raise InputDataError(f"{path} is malformed: {_WELL_FORMED}")
    fault = None
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute("SET enable_progress_bar = false")
            relation = connection.sql(_query(header, columns), params=[glob.escape(str(path))])
            for batch in relation.to_arrow_reader(_ROWS):
                yield _batch(path, batch, columns)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        fault = _fault(str(error).replace(str(path), "").lower())
    if fault:  # raised here, where no context carries the message
        raise InputDataError(f"{path} {fault}: {_WELL_FORMED}")


def _quotes(path: Path) -> int:
    """Number of quotes in a file; a parser that meets its end inside one may say nothing."""
    with path.open("rb") as file:
        return sum(part.count(b'"') for part in iter(lambda: file.read(_PART), b""))


def _fault(message: str) -> str:
    """Kind of fault in a message of DuckDB, which quotes the row and is not passed on."""
    if "unicode" in message or "utf-8" in message:
        return "is not in UTF-8"
    if "maximum line size" in message:
        return "has a row of more than 2 MB"
    return "is malformed"


def _query(header: list[str], columns: Columns) -> str:
    """Strict numbers, and a flag for text that is none.

    One thread parses: several would have to guess whether the place where each begins lies
    inside quotes, and whether a guess fails depends on where the rows of others stand.
    """
    schema = ", ".join(f"{_quoted(f'c{place}')}: 'VARCHAR'" for place in range(len(header)))
    x, y = (f"trim(c{header.index(name)}, E' \\t')" for name in (columns.x, columns.y))
    user = f"c{header.index(columns.user)}" if columns.user else "NULL"
    return f"""
        SELECT {_number("x")} AS x, {_number("y")} AS y, user,
            ({_is_bad("x")}) AS bad_x, ({_is_bad("y")}) AS bad_y,
            contains(user, chr(0)) AS bad_user
        FROM (
            SELECT {x} AS x, {y} AS y,
                CASE WHEN trim({user}) = '' THEN NULL ELSE {user} END AS user
            FROM read_csv($1, columns = {{{schema}}}, auto_detect = false, header = true,
                compression = 'none', delim = ',', quote = '"', escape = '"', strict_mode = true,
                parallel = false)
        )
    """


def _quoted(text: str) -> str:
    """SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def _number(name: str) -> str:
    """Plain ASCII decimal number; DuckDB alone would also take 1_000 and odd spaces."""
    return f"CASE WHEN regexp_full_match({name}, '{_DECIMAL}') THEN TRY_CAST({name} AS DOUBLE) END"


def _is_bad(name: str) -> str:
    """Whether a field is neither a finite number nor a usual mark for a missing one."""
    missing = ", ".join(_quoted(mark) for mark in _MISSING)
    number = _number(name)
    return (
        f"{name} IS NOT NULL AND (({number}) IS NULL OR isinf({number})) "
        f"AND lower({name}) NOT IN ({missing})"
    )


def _batch(path: Path, batch: Any, columns: Columns) -> Batch:
    """Arrow record batch as arrays; text where a number belongs stops the build."""
    for axis, name in (("bad_x", columns.x), ("bad_y", columns.y)):
        if batch.column(axis).to_numpy(zero_copy_only=False).any():
            raise InputDataError(
                f"column {name!r} of {path} holds text that is no plain decimal number; numbers "
                "look like 127.01: no decimal comma, degrees and minutes, or thousands separator"
            )
    if batch.column("bad_user").true_count:
        raise InputDataError(f"column {columns.user!r} of {path} holds NUL bytes; repair the file")
    x, y = (
        batch.column(axis).to_numpy(zero_copy_only=False).astype(np.float64) for axis in ("x", "y")
    )
    return Batch(x=x, y=y, user=batch.column("user") if columns.user else None)
