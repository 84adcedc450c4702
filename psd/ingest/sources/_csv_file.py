"""The text of CSV files: header, compression, quotes. Private side. No message quotes a field."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from psd.errors import InputDataError
from psd.ingest.sources._faults import fault_class

if TYPE_CHECKING:
    from psd.ingest.sources import Columns

__all__ = [
    "BUFFER",
    "DECIMAL",
    "CsvContent",
    "HeaderError",
    "check_columns",
    "find_compression",
    "open_content",
    "read_header",
    "scan_content",
]

BUFFER = 2**20
"""Bytes that are read at once; they fit into the cache of a processor."""

DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Pattern of a plain decimal number."""

_MAX_HEADER = 2**20

_LINE_END = re.compile(rb"[\r\n]")

# Bytes that no text has, whatever its encoding; UTF-16 also has zeros.
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# First bytes of other formats that reach this source, and advice for each.
_OTHER_FORMATS = {
    b"\xfd7zXZ\0": "a compressed file; decompress it first",
    b"BZh91AY&SY": "a compressed file; decompress it first",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "a workbook; save it as CSV in UTF-8",
    b"PAR1": "a Parquet file; save it as CSV in UTF-8",
    b"SQLite format 3\0": "a GeoPackage or a database; save it as CSV in UTF-8",
    b"\x89PNG": "a picture; name a file of points",
    b"\xff\xd8\xff": "a picture; name a file of points",
    b"GIF8": "a picture; name a file of points",
    b"II*\0": "a picture or a raster; name a file of points",
    b"MM\0*": "a picture or a raster; name a file of points",
    b"%PDF": "a document; name a file of points",
    b"\xff\xfe": "UTF-16; save it as CSV in UTF-8",
    b"\xfe\xff": "UTF-16; save it as CSV in UTF-8",
}

# First bytes of the compressions that are read.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

# Compression shrinks tables of coordinates to a third or a tenth of their size.
_MAX_EXPANSION = 200


class HeaderError(InputDataError):
    """The first line of a file names no columns, or other ones: it may be no table of points."""


def read_header(path: Path) -> list[str]:
    """Read the column names in the first line.

    Raises
    ------
    HeaderError
        If the file is not CSV in UTF-8, or its first line cannot be parsed.
    """
    with open_content(path, find_compression(path)) as file:
        start = _first_line(file)
    for signature, description in _OTHER_FORMATS.items():
        if start.startswith(signature):
            raise HeaderError(f"{path} must be UTF-8 text, got {description}")
    line = re.split(rb"[\r\n]", start.removeprefix(_BYTE_ORDER_MARK), maxsplit=1)[0]
    if not line.strip():
        raise HeaderError(f"the first line of {path} must name the columns, but is empty")
    if _is_binary(line):
        raise HeaderError(f"{path} is not text; name a table of points, such as CSV in UTF-8")
    if b"\0" in line:
        raise HeaderError(f"{path} must be UTF-8 text; save it as CSV in UTF-8")
    try:
        # An open quote would continue in the next line, and then in the rows.
        names, *after = csv.reader([line.decode() + "\n", "next"])
    except UnicodeDecodeError:
        raise HeaderError(f"{path} is not in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error:
        raise HeaderError(f"the first line of {path} has a name that is too long") from None
    if not after:
        raise HeaderError(f"the first line of {path} has a quote that is not closed")
    return [name.strip() for name in names]


def _is_binary(line: bytes) -> bool:
    """Whether the first line is not text in any encoding."""
    if _CONTROLS.search(line) is not None:
        return True
    try:
        line.replace(b"\0", b"").decode()
    except UnicodeDecodeError:
        return b"\0" in line
    return False


def _first_line(file: IO[bytes]) -> bytes:
    """Read the first line of a stream, up to a limit."""
    start = b""
    while b"\n" not in start and len(start) < _MAX_HEADER:
        more = file.read(2**16)
        if not more:
            break
        start += more
    return start.partition(b"\n")[0]


def check_columns(path: Path, header: list[str], columns: Columns) -> None:
    """Refuse missing and repeated columns, with the likely cause.

    Names that differ only in the case of letters are refused whether or not they are read: a
    ledger registers the spelling of the header, and programs disagree on which of the two names is
    meant.

    Raises
    ------
    HeaderError
        With the first column that is missing.
    InputDataError
        With the first column that is repeated.
    """
    spellings = {name.casefold(): name for name in header}
    for name in header:
        if spellings[name.casefold()] != name:
            raise InputDataError(
                f"{path} has columns {name!r} and {spellings[name.casefold()]!r}, which differ "
                "only in the case of letters; rename one of them"
            )
    for name in columns:
        if header.count(name) > 1:
            raise InputDataError(f"{path} has {header.count(name)} columns named {name!r}")
        if name not in header:
            raise HeaderError(
                f"{path} has no column {name!r} in its first line; "
                f"{_likely_cause(header, _role(columns, name))}"
            )


def _role(columns: Columns, name: str) -> str:
    """Argument that names a column."""
    roles = ("x", "y", "user", "time")
    return next(role for role in roles if getattr(columns, role) == name)


def _likely_cause(header: list[str], role: str) -> str:
    """Explain why a column is missing; the first line may be a record and is not shown."""
    for separator in ";\t|":
        if separator in header[0]:
            return f"is it separated by {separator!r}?"
    if sum(re.fullmatch(DECIMAL, name) is not None for name in header) > 1:
        return "is that line data, without a line of column names above it?"
    return f"name it by {role}=NAME"


def find_compression(path: Path) -> str:
    """Find the compression of a file by its first bytes; ``"none"`` if it is not compressed."""
    with path.open("rb") as file:
        start = file.read(4)
    kinds = (kind for signature, kind in _COMPRESSIONS.items() if start.startswith(signature))
    return next(kinds, "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvContent:
    """Length of a file, and characters below its first line that decide how it is parsed.

    Parameters
    ----------
    quotes : int
        Number of quotes.
    has_underscore : bool
        Whether there is an underscore.
    length : int
        Bytes of the file after decompression.
    has_rows : bool
        Whether there is anything below the first line.
    """

    quotes: int
    has_underscore: bool
    length: int
    has_rows: bool


def scan_content(path: Path, compression: str) -> CsvContent:
    """Read a file once; a parser may not notice that a file ends inside quotes.

    Raises
    ------
    InputDataError
        If the file expands to more than a table of coordinates would, or is damaged.
    """
    quotes = size = 0
    has_underscore, is_below, has_rows = False, False, False
    limit = _MAX_EXPANSION * path.stat().st_size
    with open_content(path, compression) as file:
        for part in iter(lambda: file.read(BUFFER), b""):
            size += len(part)
            if size > limit:
                raise InputDataError(
                    f"{path} expands to more than {_MAX_EXPANSION} times its size, which no table "
                    "of coordinates does; is it damaged, or made to fill the disk?"
                )
            if not is_below:
                end = _LINE_END.search(part)
                part = part[end.end() if end else len(part) :]
                is_below = end is not None
            has_rows = has_rows or bool(part.strip(b"\r\n"))
            # Testing for a quote is much faster than counting quotes.
            quotes += part.count(b'"') if b'"' in part else 0
            has_underscore = has_underscore or b"_" in part
    return CsvContent(quotes=quotes, has_underscore=has_underscore, length=size, has_rows=has_rows)


@contextmanager
def open_content(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file as bytes of CSV; refuse one whose compressed data is cut off."""
    import pyarrow as pa

    fault: type[InputDataError] | None = None
    with path.open("rb") as raw:
        try:
            yield raw if compression == "none" else pa.CompressedInputStream(raw, compression)
        except OSError as error:
            fault = fault_class(error)
    if fault is not None:
        raise fault(f"{path} is damaged or incomplete {compression} data; copy it again") from None
