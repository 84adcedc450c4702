"""Append rows to a Parquet file: the pages that it has are copied and not decoded."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["append_table"]

_MAGIC = b"PAR1"


def append_table(
    content: bytes,
    metadata: pq.FileMetaData,
    table: pa.Table,
    footer: Mapping[bytes, bytes],
    layout: Mapping[str, Any],
) -> bytes:
    """Return the bytes of a file with further rows, in row groups of their own.

    They are those that one writer would have written, given one table after another. `content` was
    written with the same schema and layout, and is trusted. `footer` takes the place of the keys
    that its footer has.
    """
    earlier = memoryview(content)[len(_MAGIC) : _footer_start(content)]
    added = _written(table, earlier, layout)
    merged = pq.read_metadata(pa.BufferReader(_empty(table.schema, footer, layout)))
    for part in (metadata, pq.read_metadata(pa.BufferReader(added))):
        merged.append_row_groups(part)
    ending = io.BytesIO()
    merged.write_metadata_file(ending)
    return added[: _footer_start(added)] + ending.getvalue()[len(_MAGIC) :]


def _footer_start(content: bytes) -> int:
    """Where the footer begins: its length is in the eight bytes at the end."""
    length: int = struct.unpack("<I", content[-8:-4])[0]
    return len(content) - 8 - length


def _written(table: pa.Table, earlier: memoryview, layout: Mapping[str, Any]) -> bytes:
    """File whose footer states the rows of a table alone, after row groups of before."""
    sink = io.BytesIO()
    target = pa.PythonFile(sink, mode="w")
    with pq.ParquetWriter(target, table.schema, **layout) as writer:
        target.write(earlier)  # so the writer states where further pages are
        writer.write_table(table)
    return sink.getvalue()


def _empty(schema: pa.Schema, footer: Mapping[bytes, bytes], layout: Mapping[str, Any]) -> bytes:
    """File without rows."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, **layout) as writer:
        if footer:
            writer.add_key_value_metadata(dict(footer))
    return sink.getvalue()
