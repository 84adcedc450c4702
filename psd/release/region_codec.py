"""Write a hierarchy of regions to the footer of a release file, and read it back strictly.

The value is text, as Parquet requires: base64 of zlib of the table of the hierarchy. Its bytes are
the names and types of the columns as JSON, then each column: integers little-endian, or texts and
bytes after their lengths. The header states the parameters of the hierarchy, and the number of
bytes of the table and their SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import from_arrow
from psd._util.strict_json import strict_json
from psd.errors import ReleaseFormatError
from psd.regions.hierarchy import RegionHierarchy
from psd.release.footer_value import FooterValue, digest_of, is_digest, pack
from psd.release.record import ReleaseRecord
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.domain import Domain

__all__ = [
    "REGIONS_KEY",
    "is_regions",
    "pack_regions",
    "regions_header",
    "regions_of",
    "unpack_regions",
]

REGIONS_KEY = b"psd-regions"

_FIELDS = {"parameters", "bytes", "sha256"}
_LENGTH = 8

# Limit of a table, and of what a byte of the footer may unpack to.
_MAX_BYTES = 2**29
_BYTES_PER_BYTE, _ANY_BYTES = 256, 2**20

_INTEGERS = {"int16": "<i2", "int32": "<i4", "int64": "<i8"}
_TEXTS = ("string", "binary")

_VALUE = FooterValue(exists="there are regions", subject="its regions", plural=True)
_DAMAGED = _VALUE.damaged


def regions_of(record: ReleaseRecord) -> RegionHierarchy | None:
    """Hierarchy of a record; None without regions."""
    tree = record.tree
    regions = tree.regions if isinstance(tree, RegionTree) else None
    assert regions is None or isinstance(regions, RegionHierarchy)  # by psd.release.allow_list
    return regions


def regions_header(record: ReleaseRecord) -> dict[str, Any] | None:
    """Entry of the regions in the header: parameters, and size and digest of their table."""
    regions = regions_of(record)
    if regions is None:
        return None
    content = _content(regions)
    digest = digest_of(content)
    return {"parameters": regions.parameters(), "bytes": len(content), "sha256": digest}


def pack_regions(regions: RegionHierarchy) -> bytes:
    """Value of the footer key; the same hierarchy gives the same bytes."""
    return pack(_content(regions))


def is_regions(value: object) -> bool:
    """Whether a JSON value is the entry of regions, or null."""
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return False
    size, digest = value["bytes"], value["sha256"]
    return (
        isinstance(value["parameters"], dict)
        and type(size) is int
        and 0 <= size <= _MAX_BYTES
        and is_digest(digest)
    )


def unpack_regions(
    described: dict[str, Any] | None, value: bytes | None, domain: Domain
) -> RegionHierarchy | None:
    """Hierarchy of a release file.

    Parameters
    ----------
    described : dict or None
        Entry that `is_regions` accepted.
    value : bytes or None
        Value of the footer key.
    domain : Domain
        Of the release.

    Raises
    ------
    ReleaseFormatError
        If only one of the two exists, they do not match, or they are not those of a hierarchy. At
        most the stated size is unpacked.
    """
    pair = _VALUE.pair(described, value)
    if pair is None:
        return None
    described, value = pair
    size = described["bytes"]
    if size > _ANY_BYTES + _BYTES_PER_BYTE * len(value):
        raise ReleaseFormatError("its regions unpack to more than their bytes can hold")
    content = _VALUE.unpack(value, size, described["sha256"])
    table = _table(content) if content else None
    return RegionHierarchy.from_table(domain, described["parameters"], table)


def _content(regions: RegionHierarchy) -> bytes:
    """Bytes of the table of a hierarchy; none if it has no table."""
    table = regions.to_table()
    if table is None:
        return b""
    columns = [[field.name, str(field.type)] for field in table.schema]
    head = json.dumps({"rows": table.num_rows, "columns": columns}, sort_keys=True).encode()
    parts = [head]
    for (_, kind), column in zip(columns, table.columns, strict=True):
        if kind in _INTEGERS:
            parts.append(from_arrow(column.combine_chunks()).astype(_INTEGERS[kind]).tobytes())
        else:
            parts += _text_parts(column.to_pylist())
    return b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)


def _text_parts(values: list[Any]) -> list[bytes]:
    """Lengths of texts or bytes, -1 for a missing one, and all of them."""
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    lengths = np.array([-1 if value is None else len(value) for value in raw], "<i4")
    return [lengths.tobytes(), b"".join(value for value in raw if value is not None)]


def _table(content: bytes) -> pa.Table:
    """Table of the bytes that `_content` writes, which are untrusted."""
    import pyarrow as pa

    parts = _parts(content)
    head = strict_json(next(parts, b""))
    if not (isinstance(head, dict) and head.keys() == {"rows", "columns"}):
        raise ReleaseFormatError(_DAMAGED)
    rows, columns = head["rows"], head["columns"]
    if not (type(rows) is int and 0 <= rows <= _MAX_BYTES and _are_columns(columns)):
        raise ReleaseFormatError(_DAMAGED)
    arrays = [
        _integers(next(parts, b""), kind, rows)
        if kind in _INTEGERS
        else _texts(next(parts, b""), next(parts, b""), kind, rows)
        for _, kind in columns
    ]
    if next(parts, None) is not None:
        raise ReleaseFormatError(_DAMAGED)
    return pa.table(arrays, names=[name for name, _ in columns])


def _are_columns(value: object) -> bool:
    """Whether a JSON value is a list of different names with types of columns."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= 100
        and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
        and all(isinstance(name, str) for name, _ in value)
        and all(kind in (*_INTEGERS, *_TEXTS) for _, kind in value)
        and len({name for name, _ in value}) == len(value)
    )


def _parts(content: bytes) -> Iterator[bytes]:
    """Parts of the bytes, each after its length."""
    start = 0
    while start < len(content):
        first = start + _LENGTH
        start = first + int.from_bytes(content[start:first], "little")
        if start > len(content):
            raise ReleaseFormatError(_DAMAGED)
        yield content[first:start]


def _integers(part: bytes, kind: str, rows: int) -> pa.Array:
    """Column of integers."""
    import pyarrow as pa

    dtype = np.dtype(_INTEGERS[kind])
    if len(part) != rows * dtype.itemsize:
        raise ReleaseFormatError(_DAMAGED)
    return pa.array(np.frombuffer(part, dtype).astype(kind))


def _texts(lengths: bytes, part: bytes, kind: str, rows: int) -> pa.Array:
    """Column of texts or bytes."""
    import pyarrow as pa

    if len(lengths) != 4 * rows:
        raise ReleaseFormatError(_DAMAGED)
    sizes = np.frombuffer(lengths, "<i4").astype(np.int64)
    if (sizes < -1).any() or np.maximum(sizes, 0).sum() != len(part):
        raise ReleaseFormatError(_DAMAGED)
    ends = np.cumsum(np.maximum(sizes, 0)).tolist()
    starts = [0, *ends][: len(ends)]
    values: list[Any] = [
        None if size < 0 else part[a:b]
        for a, b, size in zip(starts, ends, sizes.tolist(), strict=True)
    ]
    try:
        if kind == "string":
            values = [None if value is None else value.decode() for value in values]
    except UnicodeDecodeError:
        raise ReleaseFormatError(_DAMAGED) from None
    return pa.array(values, pa.string() if kind == "string" else pa.binary())
