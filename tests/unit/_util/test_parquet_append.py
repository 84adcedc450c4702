"""Rows that are appended to a file: the bytes of one writer, and pages at their places."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.parquet_bytes import append_table

LAYOUT = {"compression": "zstd", "write_page_checksum": True, "store_schema": False}
FOOTER = {b"name": b"value", b"another": b"text"}
PARTS = [
    pa.table({"n": list(range(size)), "text": [f"{n % 3}" for n in range(size)]})
    for size in (1, 70, 3_000)
]


def appended(content, table, footer, layout):
    metadata = pq.read_metadata(pa.BufferReader(content))
    return append_table(content, metadata, table, footer, layout)


def written(tables, footer=FOOTER, **layout):
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, tables[0].schema, **LAYOUT, **layout) as writer:
        for table in tables:
            writer.write_table(table)
        writer.add_key_value_metadata(footer)
    return sink.getvalue()


def test_bytes_are_those_of_one_writer():
    for layout in ({}, {"use_dictionary": False}):
        content = written(PARTS[:1], {b"other": b"key"}, **layout)
        for number in (2, 3):
            content = appended(content, PARTS[number - 1], FOOTER, {**LAYOUT, **layout})
            assert content == written(PARTS[:number], **layout)
    content = written(PARTS[:1])
    for _ in range(5):
        content = appended(content, PARTS[2], FOOTER, LAYOUT)
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    assert file.num_row_groups == 6
    assert file.read().equals(pa.concat_tables([PARTS[0], *[PARTS[2]] * 5]))
    assert file.metadata.metadata == FOOTER
    empty = PARTS[0].slice(0, 0)
    content = appended(written([empty]), PARTS[1], FOOTER, LAYOUT)
    assert pq.read_table(pa.BufferReader(content)).equals(PARTS[1])
