"""Read untrusted Parquet: check declared sizes before decoding.

A few bytes can encode any number of rows with equal values, and zeros compress a thousandfold, so a
small file may fill memory. The footer may state anything, so the headers of all pages are read
before any page is unpacked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.parquet_pages import Lists, page_headers, read_struct
from psd.errors import ReleaseFormatError

__all__ = [
    "ARROW_KEY",
    "MAX_ROWS",
    "check_size",
    "footer_keys",
    "max_rows",
    "open_parquet",
    "read_bytes",
]

MAX_ROWS = 2**27
"""Most rows of any file."""

ARROW_KEY = b"ARROW:schema"
"""A copy of the schema that Arrow may leave in a footer."""

MAX_FILE = 2**33
MAX_FOOTER = 2**25

# Entries of a list in the footer: columns, and row groups, one for each slice and million rows.
_MAX_LIST = 2**15

# Limit of what the pages unpack to: a fixed size, and a multiple of the bytes of the file. All
# columns of a release together shrink to about half, the best of them to a fifteenth.
_UNPACKED = 2**26
_UNPACKED_PER_BYTE = 64

# Pages whose headers are read, one by one; each takes some microseconds.
_MAX_PAGES = 2**20

# Strings that are coded by what they share with the one before may grow with every row.
_DELTA_BYTE_ARRAY = 7

# Fields of the footer: keys and values, and the key of each; row groups, their columns, the
# metadata of a column, and in it the length and the two possible beginnings of the pages.
_KEY_VALUES, _KEY = 5, 1
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 7, 9, 11

_MAGIC = b"PAR1"
_DATABASE = b"SQLi"  # of SQLite
_LIMITS = {
    "thrift_string_size_limit": MAX_FOOTER,
    "thrift_container_size_limit": _MAX_LIST,
}


def read_bytes(path: str | os.PathLike[str], limit: int = MAX_FILE) -> bytes:
    """Read a file that begins as Parquet does, and has at most `limit` bytes."""
    path = Path(path)
    if not os.path.isfile(path):
        raise ReleaseFormatError(f"release {path} does not exist or is not a file", path=path)
    try:
        with path.open("rb") as file:
            size, max_bytes = os.fstat(file.fileno()).st_size, min(limit, MAX_FILE)
            if size > max_bytes:
                raise ReleaseFormatError(
                    f"release {path} must have at most {max_bytes:,} bytes for the nodes that are "
                    f"allowed, got {size:,}; allow more with max_nodes= if its sender is "
                    "trusted",
                    path=path,
                )
            start = file.read(len(_MAGIC))
            if start != _MAGIC:
                return start
            file.seek(0)
            return file.read(max_bytes)
    except OSError as error:
        raise ReleaseFormatError(
            f"release {path} cannot be read: {error.strerror}", path=path
        ) from None


def open_parquet(content: bytes, **options: object) -> pq.ParquetFile:
    """Open a file and read its footer alone; one larger than any release needs is refused."""
    if content.startswith(_DATABASE):
        raise ReleaseFormatError(
            "it is a database, such as the PRIVATE state of a stream, a ledger or a GeoPackage, "
            "and not a release; psd stream status names the file of the series of a stream"
        )
    footer = _footer(content)
    source = pa.BufferReader(content)
    file = pq.ParquetFile(source, page_checksum_verification=True, **_LIMITS, **options)
    _check_keys(footer, file.metadata.metadata or {})
    return file


def _footer(content: bytes) -> bytes:
    """Bytes of the footer of a file."""
    ending = content[-8:]
    size = struct.unpack("<I", ending[:4])[0] if len(ending) == 8 else 0
    if size > MAX_FOOTER:
        raise pa.ArrowInvalid("footer")
    return content[-8 - size : -8]


def _check_keys(footer: bytes, keys: dict[bytes, bytes]) -> None:
    """Refuse a footer with a key twice: of two values, one reader takes this and one that."""
    try:
        pairs = read_struct(footer, 0, lists={_KEY_VALUES: {}})[0].get(_KEY_VALUES) or []
        names = [pair[_KEY] for pair in pairs]
    except (IndexError, KeyError, TypeError):
        raise pa.ArrowInvalid("footer") from None
    if sorted(names) != sorted(keys):
        raise ReleaseFormatError("its footer has a key twice; it was forged, or is damaged")


def footer_keys(path: str | os.PathLike[str]) -> dict[bytes, bytes]:
    """Keys of the footer of a file; empty if it is not a readable Parquet file."""
    if not os.path.isfile(path):
        return {}  # opening a pipe would wait for its writer
    try:
        with pq.ParquetFile(os.fspath(path), **_LIMITS) as file:
            return dict(file.metadata.metadata or {})
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        return {}


def max_rows(size: int, floor: int, each: int) -> int:
    """Limit of the rows of a file of ``size`` bytes: ``floor`` plus ``each`` per byte."""
    return min(MAX_ROWS, floor + each * size)


def check_size(
    file: pq.ParquetFile, content: bytes, *, floor: int, each: int, row: int | None = None
) -> None:
    """Refuse a file that unpacks to more than its bytes can hold.

    Only its footer was read. Any file may have `floor` rows, and `each` more per byte; a row has at
    most `row` bytes in all columns, where columns have a width. A file with more pages than any
    needs is refused too, and one whose pages are elsewhere than the footer says.
    """
    limit = max_rows(len(content), floor, each)
    if not 0 <= file.metadata.num_rows <= limit:
        raise ReleaseFormatError(
            f"it has more than {limit:,} rows, which a file of its size cannot hold; it was made "
            "to fill memory, or is damaged"
        )
    left = _UNPACKED_PER_BYTE * len(content)
    left = _UNPACKED + (left if row is None else min(left, row * file.metadata.num_rows))
    pages = 0
    for start, end in _chunks(content):
        for page in page_headers(content, start, end):
            left -= page.unpacked
            pages += 1
            if left < 0 or pages > _MAX_PAGES or page.encoding == _DELTA_BYTE_ARRAY:
                raise ReleaseFormatError(
                    "it unpacks to more than a file of its size can hold; it was made to fill "
                    "memory, or is damaged"
                )


def _chunks(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the pages of each column in each row group.

    The footer is read here, because pyarrow ends the process where it cannot decode what a forged
    footer states of a column.
    """
    lists: Lists = {_ROW_GROUPS: {_COLUMNS: {}}}
    try:
        groups = read_struct(_footer(content), 0, lists=lists)[0][_ROW_GROUPS]
        columns = [column[_METADATA] for group in groups for column in group[_COLUMNS]]
        states = [
            (column[_COMPRESSED], column[_DATA_PAGE], column.get(_DICTIONARY_PAGE, 0))
            for column in columns
        ]
        for length, *offsets in states:
            if length == 0:
                continue
            start = min((offset for offset in offsets if offset), default=0)
            if not len(_MAGIC) <= start <= start + length <= len(content):
                raise ReleaseFormatError("its pages are not where its footer says; it is damaged")
            yield start, start + length
    except (IndexError, KeyError, TypeError, AttributeError):
        raise ReleaseFormatError("its footer cannot be read; it is damaged") from None
