"""Release files of somebody who knows the format: edited, and with the digest of what they hold."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd.release.file import content_digest, series_digest, slice_digest


def table_of(content):
    """Table of the bytes of a file."""
    return pq.read_table(pa.BufferReader(content))


def file_of(table, footer=None, **options):
    """Bytes of the file of a table, with a footer in place of its own."""
    sink = pa.BufferOutputStream()
    table = table if footer is None else table.replace_schema_metadata(footer)
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def with_value(table, name, row, value):
    """The table with another value in one place."""
    values, place = table[name].to_pylist(), table.schema.get_field_index(name)
    values[row] = value
    field = table.schema.field(name)
    return table.set_column(place, field, pa.array(values, field.type))


def stamped(table, footer):
    """Footer of a table, with its digest; with some other one where it can have none."""
    footer = {as_bytes(key): as_bytes(value) for key, value in footer.items()}
    [key] = {b"psd", b"psd-series", b"psd-cube"} & footer.keys() or {None}
    try:
        header, trees = json.loads(footer[key]), [*trees_of(table)]
        if key == b"psd":
            found = content_digest(key, header, *trees)
        elif key == b"psd-cube":
            found = series_digest(key, header, (content_digest(b"psd-layer", {}, t) for t in trees))
        else:
            slices = zip(map(str, header["slices"]), trees, strict=False)
            found = series_digest(key, header, (slice_digest(*each) for each in slices))
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        found = "0" * 64
    return footer | {b"psd-digest": found.encode()}


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text


def trees_of(table):
    """Nodes as a digest takes them, of each slice or layer where there are any."""
    columns = {name: np.array(table[name].fill_null(0).to_numpy()) for name in table.column_names}
    slices = columns.get("slice", columns.get("layer", np.zeros(len(table), int)))
    for number in np.unique(slices):
        own = {name: values[slices == number] for name, values in columns.items()}
        boxes = np.stack([own[name] for name in ("x0", "y0", "x1", "y1")], axis=1)
        parts = {name: own[name] for name in ("parent", "level", "count")}
        if "layer" in own and number > 0:  # the plane has no spans of its own
            edges = [own[name] for name in ("t0", "t1", "c0", "c1") if name in own]
            parts["spans"] = np.stack(edges, axis=1)
        yield SimpleNamespace(boxes=boxes, loss=own["loss"], **parts)


def with_key_twice(content, key, value, *, first):
    """The file with another value for a key of its footer, before or after the one it has."""
    table = pq.read_table(pa.BufferReader(content))
    other = bytes([key[0] ^ 32]) + key[1:]
    old, new = dict(table.schema.metadata), {other: value}
    footer = {**new, **old} if first else {**old, **new}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(footer)
    written = sink.getvalue().to_pybytes()
    head = b"\x18" + bytes([len(key)])  # of a text, as Thrift writes it
    assert written.count(head + other) == 1
    return written.replace(head + other, head + key)
