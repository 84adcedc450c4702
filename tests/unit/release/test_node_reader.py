"""Nodes are read part by part: what breaks a rule is refused before the next part is decoded."""

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
import psd.release.node_reader as module
from psd.errors import ReleaseFormatError
from psd.release.file import SCHEMA
from support.forged_releases import file_of, table_of, with_value
from support.releases import decode, decode_series, encode
from support.tables import refused
from support.trees import random_tree, release_of

MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-03")


def made(kind):
    release = release_of(random_tree(np.random.default_rng(3)))
    return release if kind == "release" else psd.Release.from_slices(MONTHS, [release] * 3)


READ = {"release": decode, "series": decode_series}


@pytest.fixture
def parts(monkeypatch):
    """Number of parts that were decoded."""
    counted, original = [], pq.ParquetFile.iter_batches

    def iter_batches(file, *arguments):
        for batch in original(file, *arguments):
            counted.append(len(batch))
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    return counted


@pytest.mark.parametrize("kind", READ)
def test_parts_change_nothing(kind, monkeypatch, subtests):
    release = made(kind)
    table = table_of(encode(release))
    for size, group in product([1, 3, 7, 2**16], [2, 5, 10**6]):
        monkeypatch.setattr(module, "_ROWS_PER_BATCH", size)
        with subtests.test(size=size, group=group):
            assert READ[kind](file_of(table, row_group_size=group)).digest == release.digest


@pytest.mark.parametrize("kind", READ)
def test_the_part_that_breaks_a_rule_is_the_last_that_is_decoded(
    kind, parts, monkeypatch, subtests
):
    monkeypatch.setattr(module, "_ROWS_PER_BATCH", 4)
    table = table_of(encode(made(kind)))
    for name, row, value, says in (
        ("parent", 0, 0, "not the root"),
        ("level", 0, 1, "not the root"),
        ("parent", 10, -1, "parent is missing"),
        ("parent", 10, 0, "parent is missing"),  # of an earlier family
        ("parent", 10, 10, "parent is missing"),
        ("parent", 10, 2**31 - 1, "parent is missing"),
        ("level", 10, 9, "level is not"),
        ("level", 10, -(2**15), "level is not"),
        ("loss", 10, -1, "epsilon is negative"),
        ("loss", 10, 10**12 + 1, "epsilon is negative"),
        ("x1", 10, -5, "box is empty"),
        ("y0", 10, -5, "do not tile"),
        ("count", 10, None, "same nodes"),
    ):
        parts.clear()
        forged = file_of(with_value(table, name, row, value))
        with subtests.test(name, row=row, value=value):
            with pytest.raises(ReleaseFormatError, match=says):
                READ[kind](forged)
            assert parts == [4] * (row // 4 + 1)


def test_slices_stand_together_and_in_order(monkeypatch, subtests):
    table = table_of(encode(made("series")))
    forged = [
        with_value(table, "slice", row, value)
        for row, value in ((0, 1), (5, 2), (5, -1), (-1, 3), (-1, 1), (0, -1), (3, 2**31 - 1))
    ]
    forged.append(table.take(np.flatnonzero(table["slice"].to_numpy() < 2)))
    told = [("not sorted by slice, or a slice has none", *map(file_of, forged))]
    for size in (4, 2**16):
        monkeypatch.setattr(module, "_ROWS_PER_BATCH", size)
        refused(subtests, ReleaseFormatError, told, decode_series)


def states(content, rows, claimed):
    """The file with another number of rows in its footer, in the bytes that the number had."""
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    own, other = varint(2 * rows), varint(2 * claimed)
    padded = bytes([*(b | 128 for b in other), *[128] * (len(own) - len(other) - 1), 0])
    padded = other if len(own) == len(other) else padded
    forged = footer.replace(b"\x16" + own, b"\x16" + padded, 1)
    assert pq.read_metadata(pa.BufferReader(content)).num_rows == rows
    return content[: -8 - length] + forged + content[-8:]


def varint(number):
    parts = [number >> 7 * i & 127 for i in range(10) if number >> 7 * i]
    return bytes([*(part | 128 for part in parts[:-1]), parts[-1]])


@pytest.mark.deep
def test_rows_that_the_footer_does_not_state_are_not_decoded(parts):
    rows = 2**22
    columns = [pa.array(np.zeros(rows, field.type.to_pandas_dtype())) for field in SCHEMA]
    own = pq.read_metadata(pa.BufferReader(encode(made("release")))).metadata
    table = pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata({b"psd": own[b"psd"]}))
    forged = states(file_of(table, compression="zstd"), rows, 9)
    assert len(forged) < 2**17
    assert pq.read_metadata(pa.BufferReader(forged)).num_rows == 9
    assert len(pq.read_table(pa.BufferReader(forged))) == rows
    with pytest.raises(ReleaseFormatError, match="not as many as its footer says"):
        decode(forged)
    assert parts == [2**16]


def test_rows_that_are_not_there_are_refused_and_trees_share_the_memory_that_was_read():
    content = encode(made("release"))
    rows = pq.read_metadata(pa.BufferReader(content)).num_rows
    with pytest.raises(ReleaseFormatError, match="not as many as its footer says"):
        decode(states(content, rows, rows + 1))
    series = decode_series(encode(made("series")))
    bases = {id(release.tree.parent.base) for release in series._releases}
    assert len(bases) == 1
    for release in series._releases:
        with pytest.raises(ValueError, match="read-only"):
            release.tree.parent[0] = 3
        with pytest.raises(ValueError, match="WRITEABLE"):
            release.tree.parent.flags.writeable = True
