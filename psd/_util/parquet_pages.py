"""Headers of Parquet pages: the size of each page when it is unpacked, and its encoding.

A header is a structure in Thrift's compact protocol [1]_. Numbers are read; everything else is
skipped.

References
----------
.. [1] Apache Parquet, ``parquet.thrift``, structure ``PageHeader``; Apache Thrift, "Thrift compact
   protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from psd.errors import ReleaseFormatError

__all__ = ["Page", "page_headers"]

_MAX_DEPTH = 8

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = (
    1, 2, 3, 4, 6, 7, 8, 9, 10, 12,
)  # fmt: skip

# Fields of a page header: sizes, and the structures of each kind of page with their encoding.
_UNPACKED, _PACKED = 2, 3
_ENCODINGS = ((5, 2), (7, 2), (8, 4))


class Page(NamedTuple):
    """Unpacked size and encoding of a page, as its header states them."""

    unpacked: int
    encoding: int


def page_headers(content: bytes, start: int, end: int) -> Iterator[Page]:
    """Read the page headers of a column in a row group.

    Parameters
    ----------
    content : bytes
        All bytes of the file.
    start, end : int
        Where the pages begin and end.

    Raises
    ------
    ReleaseFormatError
        If the bytes are not such pages.
    """
    while start < end:
        try:
            fields, start = _struct(content, start, 0)
            unpacked, packed = fields[_UNPACKED], fields[_PACKED]
            fits = unpacked >= 0 <= packed <= end - start
            encodings = [fields[kind].get(name, 0) for kind, name in _ENCODINGS if kind in fields]
        except (IndexError, KeyError, TypeError, AttributeError):
            fits = False
        if not fits:
            raise ReleaseFormatError("it has incomplete pages; it is damaged")
        start += packed
        yield Page(unpacked, max(encodings, default=0))


def _struct(content: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Read a structure: its numbers and structures by field, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while kind := content[at]:
        if kind >> 4:
            number, at = number + (kind >> 4), at + 1
        else:
            number, at = _signed(content, at + 1)
        value, at = _value(content, at, kind & 15, depth + 1)
        fields[number] = value
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Read a value and where it ends; None for all but numbers and structures."""
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
        return None, at + length
    if depth > _MAX_DEPTH:
        raise IndexError
    if kind in (_LIST, _SET):
        return None, _past_list(content, at, depth)
    if kind == _STRUCT:
        return _struct(content, at, depth)
    raise IndexError


def _past_list(content: bytes, at: int, depth: int) -> int:
    """Find where a list ends."""
    length, kind = content[at] >> 4, content[at] & 15
    at += 1
    if length == 15:
        length, at = _varint(content, at)
    for _ in range(length):
        _, at = _value(content, at, _BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)
        if at > len(content):
            raise IndexError
    return at


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
