"""CSV files: compression, quotes, size, header. Private side. No message quotes a field.

Only the delimiter is found, in the header line; `Columns` states all else. What is not plain CSV in
UTF-8 is copied as that to an unnamed file, which no other process can open.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from psd._util.column_kinds import (
    AUTOMATIC,
    DELIMITERS,
    OpenQuoteError,
    is_separator_line,
    match_name,
    split_names,
)
from psd.errors import InputDataError, ResourceError
from psd.ingest.columns import (
    Columns,
    check_roles,
    closest_text,
    may_be_values,
    refuse_two_pairs,
    resolve_columns,
)
from psd.ingest.input_paths import refuse_changes
from psd.ingest.points import DECIMAL
from psd.ingest.sources._arrow import fault_class

BUFFER = 2**20
"""Bytes that are read at once; they fit into the cache of a processor."""

_LINE_END = re.compile(rb"[\r\n]")

_LINE_FEED = ord("\n")

# First bytes of the compressions that are read.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

# Compression shrinks tables of coordinates to a third or a tenth of their size.
_MAX_EXPANSION = 200


def find_compression(path: Path) -> str:
    """Find the compression of a file by its first bytes; ``"none"`` if it is not compressed."""
    with path.open("rb") as file:
        start = file.read(4)
    kinds = (kind for signature, kind in _COMPRESSIONS.items() if start.startswith(signature))
    return next(kinds, "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvContent:
    """Length of a file, and characters below its first line that decide how it is parsed."""

    quotes: int
    has_underscore: bool
    # Whether a field near the start of the file is empty. It decides which of two queries is tried
    # first, and nothing else.
    may_have_gaps: bool
    length: int  # bytes of the file after decompression
    # Line feeds, and one if there is none at the end: at least as many as there are rows, unless
    # there are ``line_ends`` of another kind.
    lines: int
    line_ends: int  # carriage returns that no line feed follows
    has_rows: bool  # whether there is anything below the first line


def scan_content(path: Path, compression: str, delimiter: str = ",") -> CsvContent:
    """Scan a file, since a parser may miss an open quote; refuse it if damaged or too large."""
    quotes = size = lines = line_ends = 0
    has_underscore, is_below, has_rows, may_have_gaps = False, False, False, False
    last = b"\n"
    # An empty field.
    gap = re.compile(rb"%(d)b[%(d)b\r\n]|\n%(d)b" % {b"d": re.escape(delimiter.encode())})
    packed = path.stat().st_size
    with open_content(path, compression) as file:
        for part in iter(lambda: file.read(BUFFER), b""):
            size += len(part)
            check_expansion(path, size, packed)
            # Several times as fast as bytes.count where many are found.
            lines += int(np.count_nonzero(np.frombuffer(part, np.uint8) == _LINE_FEED))
            if last == b"\r" or b"\r" in part:
                line_ends += part.count(b"\r") - (last + part).count(b"\r\n")
            last = part[-1:]
            if not is_below:
                end = _LINE_END.search(part)
                part = part[end.end() if end else len(part) :]
                is_below = end is not None
                may_have_gaps = gap.search(part) is not None
            has_rows = has_rows or bool(part.strip(b"\r\n"))
            # Testing for a quote is much faster than counting quotes.
            quotes += part.count(b'"') if b'"' in part else 0
            has_underscore = has_underscore or b"_" in part
    return CsvContent(
        quotes=quotes,
        has_underscore=has_underscore,
        may_have_gaps=may_have_gaps,
        length=size,
        lines=lines + (last != b"\n"),
        line_ends=line_ends,
        has_rows=has_rows,
    )


def check_expansion(path: Path, size: int, packed: int) -> None:
    """Refuse a number of bytes after decompression that no table of coordinates expands to."""
    if size > _MAX_EXPANSION * packed:
        raise InputDataError(
            f"{path} expands to more than {_MAX_EXPANSION} times its size, which no table of "
            "coordinates does; is it damaged, or made to fill the disk?"
        )


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


_MAX_HEADER = 2**20

# Bytes that no text has, whatever its encoding; UTF-16 also has zeros.
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# First bytes of other formats that reach this source, and advice for each.
_OTHER_FORMATS = {
    b"\xfd7zXZ\0": "a compressed file; decompress it first",
    b"BZh91AY&SY": "a compressed file; decompress it first",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV, name a workbook .xlsx, or save "
    "the points of KMZ as GeoPackage, such as with ogr2ogr points.gpkg FILE",
    b"\xd0\xcf\x11\xe0": "a workbook; save it as CSV or .xlsx",
    b"PAR1": "a Parquet file; name it .parquet",
    b"SQLite format 3\0": "a GeoPackage or a database; name a GeoPackage .gpkg",
    b"\x89PNG": "a picture; name a file of points",
    b"\xff\xd8\xff": "a picture; name a file of points",
    b"GIF8": "a picture; name a file of points",
    b"II*\0": "a picture or a raster; name a file of points",
    b"MM\0*": "a picture or a raster; name a file of points",
    b"%PDF": "a document; name a file of points",
}

# Elements with which files of XML begin, and advice for each. What GDAL makes of them is not read:
# it takes a latitude that is no number for 0, and leaves out points and folders without a word.
_ELEMENTS = {
    b"gpx": "GPX; save its points as GeoPackage, such as with ogr2ogr points.gpkg FILE "
    "track_points (or waypoints, or route_points)",
    b"kml": "KML; save its points as GeoPackage, such as with ogr2ogr points.gpkg FILE",
    b"TrainingCenterDatabase": "TCX; save its points as CSV, such as with gpsbabel",
    b"html": "a web page; was a download refused?",
}
_ELEMENT = re.compile(rb"<([A-Za-z][\w.-]*)")

# How other formats of text begin, and advice for each.
_GDAL_ADVICE = "save its points as GeoPackage, such as with ogr2ogr points.gpkg FILE"
_OTHER_TEXTS = {
    rb"\{|\[\{|\x1e": "JSON; name GeoJSON .geojson, and GeoJSON with a feature on each line "
    ".geojsonl, without compression",
    rb"!table\s|version\s+\d+\s+charset\s": f"a file of MapInfo; {_GDAL_ADVICE}",
    rb"0\s+section\s": f"a drawing (DXF); {_GDAL_ADVICE}",
    rb"\$g[a-z]{4},": "the sentences of a receiver (NMEA); save its points as CSV, such as with "
    "gpsbabel",
}

START = 4096
"""Bytes of a file by which other formats are told."""

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""


class HeaderError(InputDataError):
    """The first line of a file names no columns, or other ones: it may be no table of points."""


def check_signature(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes are those of another format."""
    for signature, description in _OTHER_FORMATS.items():
        if start.startswith(signature):
            raise HeaderError(f"{path} must be UTF-8 text, got {description}")


def refuse_xml(path: Path, start: bytes) -> None:
    """Refuse a file that begins as XML, whatever its name ends in, by what it is."""
    text = start.replace(b"\0", b"")  # of UTF-16
    for mark in (_BYTE_ORDER_MARK, *_WIDE_MARKS):
        text = text.removeprefix(mark)
    if text.lstrip().startswith(b"<"):
        element = _ELEMENT.search(text)
        description = _ELEMENTS.get(element[1] if element else b"", "XML")
        raise HeaderError(f"{path} must be a table of points such as CSV, got {description}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header line of a file."""

    names: list[str]
    delimiter: str  # character that separates its fields
    columns: Columns  # the columns to read, spelled as in the header


def read_header(path: Path, columns: Columns) -> Header:
    """Find the columns to read. P1. The first line and `columns` decide, no other line is read."""
    line = _header_line(path, columns.skip_rows)
    words = AUTOMATIC if columns.delimiter == "auto" else (columns.delimiter,)
    headers, fault = [], None
    for word in words:
        try:
            names = split_names(line, word)
        except (csv.Error, OpenQuoteError) as error:
            is_long = isinstance(error, csv.Error)
            what = "a name that is too long" if is_long else "a quote that is not closed"
            named = HeaderError(f"{_line_text(columns.skip_rows)} of {path} has {what}")
            fault = fault or named
            continue
        resolved = resolve_columns(columns, names)
        headers.append(Header(names=names, delimiter=DELIMITERS[word], columns=resolved))
        if set(resolved.needed) <= set(names):
            break
    fitting = [header for header in headers if set(header.columns.needed) <= set(header.names)]
    if fault is not None and not fitting:
        raise fault
    chosen = fitting[0] if fitting else max(headers, key=lambda header: len(header.names))
    _check_columns(path, chosen, columns, line)
    return chosen


def _line_text(skipped: int) -> str:
    """Which line of a file has the names."""
    return f"line {skipped + 1}" if skipped else "the first line"


def _header_line(path: Path, skipped: int) -> str:
    """Text of the line of names, which is neither empty nor binary; lines above it are left out."""
    with open_content(path, find_compression(path)) as file:
        # Read the first line of a stream, up to a limit.
        start = b""
        while b"\n" not in start and len(start) < _MAX_HEADER:
            more = file.read(2**16)
            if not more:
                break
            start += more
        start = start.partition(b"\n")[0]
    check_signature(path, start)
    if start.startswith(_WIDE_MARKS):
        raise HeaderError(
            f"{path} must be UTF-8 text, got UTF-16; leave out encoding=, which finds its mark"
        )
    line = re.split(rb"[\r\n]", start.removeprefix(_BYTE_ORDER_MARK), maxsplit=1)[0]
    if not line.strip():
        raise HeaderError(f"{_line_text(skipped)} of {path} must name the columns, but is empty")
    if is_separator_line(line.decode(errors="replace")):
        raise HeaderError(
            f"{_line_text(skipped)} of {path} names the separator for a spreadsheet program; leave "
            f"it out with skip_rows={skipped + 1}"
        )
    if _is_binary(line):
        raise HeaderError(f"{path} is not text; name a table of points, such as CSV in UTF-8")
    if b"\0" in line:
        raise HeaderError(f"{path} must be UTF-8 text; save it as CSV in UTF-8")
    try:
        return line.decode()
    except UnicodeDecodeError:
        pass
    raise HeaderError(
        f"{path} is not in UTF-8; save it as CSV in UTF-8, or state what it has, such as "
        'encoding="windows-1252"'
    )


def _is_binary(line: bytes) -> bool:
    """Whether the first line is not text in any encoding."""
    if _CONTROLS.search(line) is not None:
        return True
    try:
        line.replace(b"\0", b"").decode()
    except UnicodeDecodeError:
        return b"\0" in line
    return False


def _check_columns(path: Path, header: Header, columns: Columns, line: str) -> None:
    """Refuse missing and repeated columns, with the likely cause."""
    names = header.names
    # Read or not: a ledger has one spelling, and programs disagree on which column is meant.
    spellings = {name.casefold(): name for name in names}
    for name in names:
        if spellings[name.casefold()] != name:
            pair = f" {name!r} and {spellings[name.casefold()]!r},"
            raise InputDataError(
                f"{path} has columns{'' if may_be_values(names) else pair} which differ only in "
                "the case of letters; rename one of them"
            )
    refuse_two_pairs(str(path), header.columns, names)
    # Two spellings of one column in a filter are one column of the header.
    filtered = [(name, match_name(name, names) or name) for name in columns.filtered]
    for name, read in [*zip(columns, header.columns, strict=True), *filtered]:
        if names.count(read) > 1:
            raise InputDataError(f"{path} has {names.count(read)} columns named {read!r}")
        if read not in names:
            # The argument that names the column.
            roles = ("x", "y", "user", "time", "wkt", "bid", "category")
            named = [role for role in roles if getattr(columns, role) == name]
            role = [*named, "values" if name in columns.values else "where"][0]
            raise HeaderError(
                f"{path} has no column {name!r} in {_line_text(columns.skip_rows)}; "
                f"{_likely_cause(header, line, name, role)}"
            )
    check_roles(str(path), header.columns)


_NAMED = ("where", "values")  # arguments that name columns of any role


def _likely_cause(header: Header, line: str, name: str, role: str) -> str:
    """Explain why a column is missing; a first line that may be a record is not shown."""
    names = header.names
    counts = {word: line.count(delimiter) for word, delimiter in DELIMITERS.items()}
    word = max(counts, key=counts.__getitem__)
    if counts[word] >= len(names) and DELIMITERS[word] != header.delimiter:
        return f'is it separated by {word!r}? State delimiter="{word}"'
    if sum(re.fullmatch(DECIMAL, text) is not None for text in names) > 1:
        too_many = ", or is skip_rows= too large" if header.columns.skip_rows else ""
        return f"is that line data, without a line of column names above it{too_many}?"
    naming = f"name it by {role}=NAME" if role not in _NAMED else f"correct it in {role}="
    return naming if may_be_values(names) else f"{naming}; {closest_text(name, names)}"


_MAX_LINE = 2**20

_CODECS = {"auto": "utf-8-sig", "utf-8": "utf-8-sig", "utf-16": "utf-16", "windows-1252": "cp1252"}

_NAMES = {"utf-16": "UTF-16", "windows-1252": "Windows-1252"}


@contextmanager
def standard_input() -> Iterator[Path]:
    """Copy standard input to an unnamed file and yield its path."""
    with stored_stream("standard input", sys.stdin.buffer) as path:
        yield path


@contextmanager
def stored_stream(name: str, stream: IO[bytes]) -> Iterator[Path]:
    """Copy a stream, which messages call by a name, to an unnamed file and yield its path."""
    with _unnamed_file(name) as spool:
        with _storing(name, spool):
            shutil.copyfileobj(stream, spool, BUFFER)
        yield Path(f"/dev/fd/{spool.fileno()}")


@contextmanager
def plain_file(path: Path, columns: Columns, *, rows: bool = True) -> Iterator[Path]:
    """Yield the path of a file in UTF-8 that begins with its header; without `rows`, that alone."""
    encoding = _find_encoding(path, columns)
    if encoding in ("auto", "utf-8") and not columns.skip_rows:
        yield path
        return
    with _unnamed_file(str(path)) as spool:
        with _storing(str(path), spool):
            if rows:
                with refuse_changes([path]):
                    _copy_text(path, spool, encoding, columns.skip_rows)
            else:
                with _open_text(path, encoding, columns.skip_rows) as text:
                    spool.write(text.readline(_MAX_LINE).encode())
        yield Path(f"/dev/fd/{spool.fileno()}")


def _find_encoding(path: Path, columns: Columns) -> str:
    """Stated encoding, or UTF-16 where the file begins with its byte order mark."""
    with open_content(path, find_compression(path)) as file:
        start = file.read(START)
    check_signature(path, start)
    if not columns.skip_rows:  # a line above the header may be anything
        # Refuse a file that begins as XML, JSON or another format.
        refuse_xml(path, start)
        text = start.removeprefix(_BYTE_ORDER_MARK).lstrip()
        for begin, description in _OTHER_TEXTS.items():
            if re.match(begin, text, re.IGNORECASE):
                raise HeaderError(
                    f"{path} must be a table of points such as CSV, got {description}"
                )
    stated, is_wide = columns.encoding, start.startswith(_WIDE_MARKS)
    if stated == "utf-16" and not is_wide:
        raise HeaderError(
            f"{path} must begin with the byte order mark of UTF-16; save it as CSV in UTF-8"
        )
    if stated == "windows-1252" and (is_wide or start.startswith(b"\xef\xbb\xbf")):
        raise HeaderError(
            f"{path} begins with the byte order mark of another encoding than windows-1252; leave "
            "out encoding="
        )
    return "utf-16" if is_wide and stated == "auto" else stated


def _copy_text(path: Path, spool: IO[bytes], encoding: str, skipped: int) -> None:
    """Copy a file as UTF-8 without its first lines."""
    packed, size = path.stat().st_size, 0
    with _open_text(path, encoding, skipped) as text:
        for part in iter(lambda: text.read(BUFFER), ""):
            content = part.encode()
            size += len(content)
            check_expansion(path, size, packed)
            spool.write(content)


@contextmanager
def _open_text(path: Path, encoding: str, skipped: int) -> Iterator[io.TextIOWrapper]:
    """Open a file below its first lines; bytes that are not of its encoding stop the build."""
    try:
        with open_content(path, find_compression(path)) as file:
            text = io.TextIOWrapper(file, encoding=_CODECS[encoding], newline="")
            # Read the lines above the header; a quote in them has no meaning.
            for _ in range(skipped):
                line = text.readline(_MAX_LINE)
                if len(line) == _MAX_LINE and not line.endswith(("\r", "\n")):
                    raise HeaderError(f"{path} has a line of more than 1 MB above the header")
                if not line:
                    raise HeaderError(f"{path} must have more lines than skip_rows={skipped}")
            yield text
        return
    except UnicodeError:
        pass  # raised below, so that no context carries the message, which quotes bytes
    name = _NAMES.get(encoding, "UTF-8")
    raise InputDataError(f'{path} is not in {name}; state its own, such as encoding="windows-1252"')


@contextmanager
def _unnamed_file(name: str) -> Iterator[IO[bytes]]:
    """Unnamed file that messages call by the name of the input."""
    with tempfile.TemporaryFile() as spool:
        path = f"/dev/fd/{spool.fileno()}"
        try:
            yield spool
        except InputDataError as error:
            message = str(error).replace(path, name)
            raise type(error)(message) from None


@contextmanager
def _storing(name: str, spool: IO[bytes]) -> Iterator[None]:
    """Write an unnamed file; say where there is no room."""
    try:
        yield
        spool.flush()
    except OSError as error:
        with contextlib.suppress(OSError):  # the rest of the buffer has no room either
            spool.close()
        raise ResourceError(
            f"{name} cannot be stored in {tempfile.gettempdir()}: {error.strerror}; "
            "free some space, or name another folder by TMPDIR"
        ) from None
