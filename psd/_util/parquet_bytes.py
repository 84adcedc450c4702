"""Parquet by its bytes: sizes checked before decoding, headers of pages, rows appended.

A small file may fill memory, and its footer may state anything: headers of all pages [1]_ are read,
in Thrift's compact protocol [2]_, before any page. Only requested fields are kept, each read once.

.. [1] Apache Parquet, ``parquet.thrift``, structure ``PageHeader``.
.. [2] Apache Thrift, "Thrift compact protocol".
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from psd.errors import ReleaseFormatError

__all__ = ["MAX_ROWS", "read_bytes"]


Lists = Mapping[int, "Lists"]
"""Fields whose lists are read, and likewise for the structures in these lists."""

_MAX_DEPTH = 8
_NO_LISTS: Lists = {}

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = (
    1, 2, 3, 4, 6, 7, 8, 9, 10, 12,
)  # fmt: skip

# Fields of a page header: sizes, and the structures of each kind of page with their encoding.
_UNPACKED_SIZE, _PACKED_SIZE = 2, 3
_ENCODINGS = ((5, 2), (7, 2), (8, 4))


class Page(NamedTuple):
    """Unpacked size and encoding of a page, as its header states them."""

    unpacked: int
    encoding: int


def page_headers(content: bytes, start: int, end: int) -> Iterator[Page]:
    """Read the page headers of a column in a row group."""
    while start < end:
        try:
            fields, start = read_struct(content, start)
            unpacked, packed = fields[_UNPACKED_SIZE], fields[_PACKED_SIZE]
            fits = unpacked >= 0 <= packed <= end - start
            encodings = [fields[kind].get(name, 0) for kind, name in _ENCODINGS if kind in fields]
        except (IndexError, KeyError, TypeError, AttributeError):
            fits = False
        if not fits:
            raise ReleaseFormatError("it has incomplete pages; it is damaged")
        start += packed
        yield Page(unpacked, max(encodings, default=0))


def read_struct(
    content: bytes, at: int, *, lists: Lists = _NO_LISTS, depth: int = 0
) -> tuple[dict[int, Any], int]:
    """Read a structure: its numbers, bytes and structures by field, and where it ends.

    Of lists, only `lists` are read: a footer may hold millions of values. IndexError: no structure.
    """
    fields: dict[int, Any] = {}
    number = 0
    # The first byte of a field: in four bits its number less that of the field before, or 0 if the
    # number itself is behind it; in the other four its type. A byte of 0 ends the structure.
    while kind := content[at]:
        if kind >> 4:
            number, at = number + (kind >> 4), at + 1
        else:
            number, at = _signed(content, at + 1)
        if number in fields:
            raise IndexError
        if kind & 15 in (_LIST, _SET):
            fields[number], at = _list(content, at, depth + 1, lists.get(number))
        else:
            fields[number], at = _value(content, at, kind & 15, depth + 1)
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Read a value and where it ends; None for all but numbers, bytes and structures."""
    if kind in (_TRUE, _FALSE):
        return None, at
    if kind == _BYTE:
        return None, at + 1
    if _I16 <= kind <= _I64:
        return _signed(content, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _varint(content, at)
        return content[at : at + length], at + length
    if depth > _MAX_DEPTH:
        raise IndexError
    if kind in (_LIST, _SET):
        return _list(content, at, depth, None)
    if kind == _STRUCT:
        return read_struct(content, at, depth=depth)
    raise IndexError


def _list(content: bytes, at: int, depth: int, lists: Lists | None) -> tuple[list[Any] | None, int]:
    """Read a list and where it ends; None where ``lists`` is None."""
    # A length of 15 stands for a longer one, which is written behind it.
    length, kind = content[at] >> 4, content[at] & 15
    at += 1
    if length == 15:
        length, at = _varint(content, at)
    kind = _BYTE if kind in (_TRUE, _FALSE) else kind
    values: list[Any] = []
    for _ in range(length):
        if lists and kind == _STRUCT:
            value, at = read_struct(content, at, lists=lists, depth=depth + 1)
        else:
            value, at = _value(content, at, kind, depth + 1)
        if at > len(content):
            raise IndexError
        if lists is not None:
            values.append(value)
    return (None if lists is None else values), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits per byte, and where it ends."""
    value = 0
    for position in range(10):
        value |= (content[at + position] & 127) << 7 * position
        if content[at + position] < 128:
            return value, at + position + 1
    raise IndexError


def _signed(content: bytes, at: int) -> tuple[int, int]:
    """Read a number whose sign is its last bit, and where it ends."""
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


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
    """Refuse a file that unpacks to more than its bytes can hold; only its footer was read."""
    # Any file may have `floor` rows, and `each` more per byte, of at most `row` bytes each. A file
    # with more pages than any needs, or elsewhere than the footer says, is refused too.
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
    """Yield begin and end of the pages of each column in each row group."""
    # The footer is read here, because pyarrow ends the process where it cannot decode a forged one.
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


def append_table(
    content: bytes,
    metadata: pq.FileMetaData,
    table: pa.Table,
    footer: Mapping[bytes, bytes],
    layout: Mapping[str, Any],
) -> bytes:
    """Return the bytes of a trusted file with further rows, and with these keys in its footer."""
    # pyarrow appends to no file. So a file is written whose row groups lie behind those of before,
    # and the footers of both are joined: offsets in them count from the begin of the file.
    # They are those that one writer would have written.
    earlier = memoryview(content)[len(_MAGIC) : _footer_start(content)]
    sink = io.BytesIO()
    target = pa.PythonFile(sink, mode="w")
    with pq.ParquetWriter(target, table.schema, **layout) as writer:
        target.write(earlier)  # so the writer states where further pages are
        writer.write_table(table)
    added = sink.getvalue()
    # A file without rows has the new keys; it gets the row groups of both.
    empty = io.BytesIO()
    with pq.ParquetWriter(empty, table.schema, **layout) as writer:
        if footer:
            writer.add_key_value_metadata(dict(footer))
    merged = pq.read_metadata(pa.BufferReader(empty.getvalue()))
    for part in (metadata, pq.read_metadata(pa.BufferReader(added))):
        merged.append_row_groups(part)
    ending = io.BytesIO()
    merged.write_metadata_file(ending)
    return added[: _footer_start(added)] + ending.getvalue()[len(_MAGIC) :]


def _footer_start(content: bytes) -> int:
    """Where the footer begins: its length is in the eight bytes at the end."""
    length: int = struct.unpack("<I", content[-8:-4])[0]
    return len(content) - 8 - length
