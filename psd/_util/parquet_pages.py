"""Headers of Parquet pages [1]_, in Thrift's compact protocol [2]_, as the footer is.

The bytes are untrusted: only requested fields are kept, and each byte is read once.

References
----------
.. [1] Apache Parquet, ``parquet.thrift``, structure ``PageHeader``.
.. [2] Apache Thrift, "Thrift compact protocol".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from psd.errors import ReleaseFormatError

__all__ = ["Lists", "Page", "page_headers", "read_struct"]

Lists = Mapping[int, "Lists"]
"""Fields whose lists are read, and likewise for the structures in these lists."""

_MAX_DEPTH = 8
_NO_LISTS: Lists = {}

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
    """Read the page headers of a column in a row group."""
    while start < end:
        try:
            fields, start = read_struct(content, start)
            unpacked, packed = fields[_UNPACKED], fields[_PACKED]
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

    Lists are skipped but for the fields of `lists`, since a footer may hold millions of values.
    `depth` is the number of structures and lists around it. IndexError says that the bytes are not
    such a structure, or that a field is there twice.
    """
    fields: dict[int, Any] = {}
    number = 0
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
