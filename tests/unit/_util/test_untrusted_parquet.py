"""Small files that would fill memory: what is refused before a page is unpacked."""

import errno
import io
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd._util import parquet_bytes
from psd._util.parquet_bytes import check_size, footer_keys, open_parquet, page_headers, read_struct
from psd.errors import InputDataError, ReleaseFormatError
from psd.ingest.tally_file import read_tally
from psd.release.file import NODES, SCHEMA
from support.forged_releases import stamped, with_key_twice
from support.releases import decode, decode_series, encode
from support.trees import random_tree, release_of

LIMITS = {"floor": 100, "each": 2}


def table(rows, columns=1):
    return pa.table({f"c{i}": np.zeros(rows, np.int64) for i in range(columns)})


def file_of(made, **options):
    sink = io.BytesIO()
    pq.write_table(made, sink, **options)
    return sink.getvalue()


def checked(content, **limits):
    check_size(open_parquet(content), content, **{**LIMITS, **limits})


def refused(content, words="unpacks to more", **limits):
    with pytest.raises(ReleaseFormatError, match=words):
        checked(content, **limits)


def test_what_is_no_file_has_no_footer_and_is_not_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "file").write_bytes(file_of(table(3).replace_schema_metadata({"a": "b"})))
    (tmp_path / "text").write_text("lon,lat\n")
    assert footer_keys(tmp_path / "file")[b"a"] == b"b"
    assert footer_keys(tmp_path / "text") == footer_keys(tmp_path / "absent") == {}
    monkeypatch.setattr(pq, "ParquetFile", lambda *_, **__: pytest.fail("it is opened"))
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/zero", "no\0name"):
        assert footer_keys(path) == {}


def test_a_release_that_the_system_does_not_read(tmp_path, monkeypatch):
    path = tmp_path / "r.psd.parquet"
    path.write_bytes(b"PAR1")

    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(type(path), "open", fails)
    with pytest.raises(ReleaseFormatError, match=r"r.psd.parquet cannot be read: Input/output err"):
        psd.load(path)


def test_rows_are_bounded_by_the_bytes_of_the_file():
    content = file_of(table(5000))
    checked(content, floor=5000, each=0)
    checked(content, floor=0, each=-(-5000 // len(content)))
    refused(content, "more than 4,999 rows", floor=4999, each=0)
    assert parquet_bytes.max_rows(2**40, floor=1, each=8) == parquet_bytes.MAX_ROWS


def bomb(schema, rows=2**21):
    """Zeros: a few bytes for any number of rows."""
    columns = [pa.array(np.zeros(rows, field.type.to_pandas_dtype())) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def packed(made, group=2**22):
    return file_of(made, compression="zstd", row_group_size=group)


def rng():
    return np.random.default_rng(3)


def test_a_release_of_a_few_bytes_and_many_rows_is_refused_before_it_is_read(monkeypatch):
    made = bomb(SCHEMA)
    footer = pq.read_schema(pa.BufferReader(encode(release_of(random_tree(rng()))))).metadata
    named = stamped(made.slice(0, 9), {b"psd": footer[b"psd"]})
    content = packed(made.replace_schema_metadata(named))
    assert len(content) < 2**17
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    with pytest.raises(ReleaseFormatError, match="which a file of its size cannot hold"):
        decode(content)


def empty(columns, rows):
    """A release without noise or points, whose cells are all equal: nothing shrinks further."""
    domain = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857", lattice=(columns, rows))
    tree = psd.decompositions.grid_tree(domain, (columns, rows))
    return psd.Release.from_counts(tree, np.zeros(len(tree), int), 1.0, domain=domain)


@pytest.mark.deep
def test_releases_of_this_library_are_within_the_limit_or_do_not_shrink_too_far(monkeypatch):
    made = empty(512, 512)
    assert NODES["each"] / 2 < len(made.tree) / len(encode(made)) < NODES["each"]
    monkeypatch.setitem(NODES, "floor", 2**10)
    made = empty(2**17, 1)
    content = encode(made)
    assert len(content) > 40 * len(made.tree)
    assert np.array_equal(decode(content).tree.boxes, made.tree.boxes)


def test_a_series_is_bounded_likewise():
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    made = psd.Release.from_slices(months, (release_of(random_tree(rng())),) * 2)
    content = packed(bomb(pq.read_schema(pa.BufferReader(encode(made)))))
    with pytest.raises(ReleaseFormatError, match="made to fill memory"):
        decode_series(content)


@pytest.mark.deep
def test_a_tally_of_a_few_bytes_and_many_cells_is_refused(tmp_path):
    schema = pa.schema({name: pa.int64() for name in ("slice", "column", "row", "count")})
    cells = bomb(schema.with_metadata({b"PRIVATE psd tally": b"{}"}), 2**24 + 2**22)
    (tmp_path / "t").write_bytes(packed(cells, 2**25))
    assert (tmp_path / "t").stat().st_size < 2**19
    with pytest.raises(InputDataError, match="rows, which a file of its size cannot hold"):
        read_tally(tmp_path / "t")


def zeros_in_pages(rows):
    options = {"use_dictionary": False, "compression": "zstd", "data_page_size": 2**30}
    return file_of(table(rows), **options, write_batch_size=rows, max_rows_per_page=rows)


def test_what_a_page_unpacks_to_is_refused_whatever_the_footer_says():
    content = zeros_in_pages(10**5)
    column = open_parquet(content).metadata.row_group(0).column(0)
    start = column.data_page_offset
    pages = list(page_headers(content, start, start + column.total_compressed_size))
    assert 0 <= sum(page.unpacked for page in pages) - 8 * 10**5 < 100
    content = zeros_in_pages(9_000_000)  # 72 MB out of some kilobytes
    assert len(content) < 2**15
    refused(content, floor=10**8)
    names = pa.table({"c": ["a" * i for i in range(300)]})  # strings that grow with every row
    options = {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}}
    refused(file_of(names, **options), floor=1000)


def varint(number):
    number, out = number << 1, b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def test_pages_unpack_to_no_more_than_the_rows_take_and_have_a_number(monkeypatch):
    numbers = rng().integers(0, 2**62, 9_000_000)  # 72 MB that do not shrink
    content = file_of(pa.table({"c": numbers}), use_dictionary=False, compression="none")
    checked(content, floor=10**8)
    checked(content, floor=10**8, row=1)
    refused(content, floor=10**8, row=0)
    options = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 1}
    content = file_of(table(100), **options)
    monkeypatch.setattr(parquet_bytes, "_MAX_PAGES", 100)
    checked(content)
    monkeypatch.setattr(parquet_bytes, "_MAX_PAGES", 99)
    refused(content)


def test_a_page_that_claims_gigabytes_is_refused_before_they_are_asked_for():
    content = file_of(table(2048), use_dictionary=False, compression="none")
    column = open_parquet(content).metadata.row_group(0).column(0)
    end = column.data_page_offset + column.total_compressed_size
    size = varint(2048 * 8 + 7)  # in three bytes; two more, and two bytes less in the page
    header = b"\x15" + size + b"\x15" + size
    claim = b"\x15" + varint(2**31 - 1) + b"\x15" + varint(2048 * 8 + 5)
    assert content.count(header) == 1
    forged = content[: end - 2].replace(header, claim) + content[end:]
    assert len(forged) == len(content)
    refused(forged, floor=10**6)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_pages_of_every_kind_are_followed_to_their_end(compression, subtests):
    numbers = rng().integers(0, 1000, 50_000)
    made = pa.table({"a": numbers, "b": pa.array(numbers, mask=numbers > 500)})
    for version, dictionary in product(("1.0", "2.0"), (False, True)):
        with subtests.test(version, dictionary=dictionary):
            options = {"data_page_version": version, "compression": compression}
            content = file_of(made, use_dictionary=dictionary, data_page_size=4096, **options)
            metadata = open_parquet(content).metadata
            for column in map(metadata.row_group(0).column, range(2)):
                start = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)))
                pages = list(page_headers(content, start, start + column.total_compressed_size))
                assert len(pages) > 3
                assert sum(page.unpacked for page in pages) <= column.total_uncompressed_size
            checked(content, floor=10**5)


HEADERS = {
    "nothing": b"",
    "no fields": b"\x00",
    "cut short": b"\x15\x00\x15",
    "a number without end": b"\x15" + b"\xff" * 20,
    "a page beyond its place": b"\x15\x00\x15\x02\x15\xfe\xff\x7f\x00",
    "unpacks to less than nothing": b"\x15\x00\x15\x01\x15\x02\x00",
    "a structure as size": b"\x15\x00\x1c\x00\x15\x02\x00",
    "true as size": b"\x15\x00\x11\x11\x00",
    "a number as kind of page": b"\x15\x00\x15\x02\x15\x02\x25\x02\x00",
    "structures without end": b"\x1c" * 30,
    "a list without end": b"\x19\xfc" + b"\xff" * 8 + b"\x7f",
    "lists of lists": b"\x19\x19" * 30,
    "unknown type": b"\x1d\x00",
}


def test_headers_that_are_none_are_refused(subtests):
    for name, header in HEADERS.items():
        words = pytest.raises(ReleaseFormatError, match="incomplete pages")
        with subtests.test(name), words:
            list(page_headers(b"PAR1" + header, 4, 5 + len(header)))
    random = rng()
    for _ in range(500):
        content = random.bytes(60)
        try:
            pages = list(page_headers(content, 0, 60))
        except ReleaseFormatError:
            continue
        assert all(page.unpacked >= 0 for page in pages)


@pytest.mark.deep
def test_lists_in_the_footer_have_a_length():
    wide = pa.table({f"c{i}": [0] for i in range(2**15 + 1)})
    with pytest.raises(OSError, match="limit"):
        open_parquet(file_of(wide))


def test_a_footer_that_is_larger_than_any_is_not_read(tmp_path):
    content = b"PAR1" + (parquet_bytes.MAX_FOOTER + 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ReleaseFormatError, match="cannot be read as a release"):
        decode(content)
    with (tmp_path / "points.csv").open("wb") as file:
        file.truncate(2**32)
    assert len(parquet_bytes.read_bytes(tmp_path / "points.csv")) < 10
    with (tmp_path / "r").open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(ReleaseFormatError, match="at most 8,589,934,592 bytes"):
        parquet_bytes.read_bytes(tmp_path / "r")


@pytest.mark.parametrize("key", [b"psd", b"psd-series", b"psd-digest"])
def test_a_key_that_is_there_twice_is_refused_whichever_value_is_read(key):
    made, read = release_of(random_tree(rng())), decode
    if key == b"psd-series":
        months = psd.TimeSlices.parse("month", "2024-01..2024-01")
        made, read = psd.Release.from_slices(months, (made,)), decode_series
    content = encode(made)
    own = pq.read_metadata(pa.BufferReader(content)).metadata[key]
    values = (own, own.replace(b'"epsilon": "1"', b'"epsilon": "9"'), b"")
    for value, first in product(values, (True, False)):
        forged = with_key_twice(content, key, value, first=first)
        assert dict(pq.read_metadata(pa.BufferReader(forged)).metadata)[key] in (own, value)
        with pytest.raises(ReleaseFormatError, match="a key twice"):
            read(forged)


@pytest.mark.parametrize("first", [True, False])
def test_a_release_that_says_it_is_a_series_as_well_is_refused(tmp_path, first):
    content = encode(release_of(random_tree(rng())))
    table = pq.read_table(pa.BufferReader(content))
    series, own = {b"psd-series": b"{}"}, dict(table.schema.metadata)
    both = table.replace_schema_metadata({**series, **own} if first else {**own, **series})
    pq.write_table(both, tmp_path / "r")
    for load in (psd.load, psd.Release.load, psd.Release.load):
        with pytest.raises(ReleaseFormatError, match="keys that a release does not have"):
            load(tmp_path / "r")


def test_a_key_of_a_tally_that_is_there_twice_is_refused(tmp_path):
    made = pa.table({"c": [1]}).replace_schema_metadata({b"PRIVATE psd tally": b"{}"})
    content = with_key_twice(file_of(made), b"PRIVATE psd tally", b"{}", first=True)
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputDataError, match="a key twice"):
        read_tally(tmp_path / "t")
    content = file_of(table(900, 50), row_group_size=9)
    assert open_parquet(content).num_row_groups == 100


FOOTERS = {
    "no keys": "00",
    "keys that a release does not have": "59 1c 18 01 61 00 00",
    "a pair without a key": "59 1c 00 00",
    "a number for the keys": "55 02 00",
    "a list without end": "59 fc ff ff ff ff 7f",
    "a field twice": "15 02 05 02 02 00",
}


@pytest.mark.parametrize("name", FOOTERS)
def test_a_footer_that_two_readers_read_differently_is_refused(name, monkeypatch):
    content = file_of(table(3).replace_schema_metadata({"a": "b"}))
    forged = bytes.fromhex(FOOTERS[name])
    monkeypatch.setattr(
        parquet_bytes, "read_struct", lambda _, at, **how: read_struct(forged, at, **how)
    )
    with pytest.raises((ReleaseFormatError, pa.ArrowException)):
        open_parquet(content)


FORGED_KIND = """
import io, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from psd._util.parquet_bytes import check_size, open_parquet
sink = io.BytesIO()
pq.write_table(pa.table({"c0": np.arange(9)}), sink)
before, name = sink.getvalue(), b"\\x18\\x02c0"
content = before.replace(b"\\x25\\x02" + name, b"\\x25\\x00" + name)
assert content != before
file = open_parquet(content)
check_size(file, content, floor=100, each=2)
try:
    file.read()
except (pa.ArrowException, OSError):
    print("refused")
"""


@pytest.mark.deep
def test_statistics_that_contradict_their_column_do_not_end_the_process():
    """Reading the metadata of such a column by pyarrow calls std::terminate."""
    done = subprocess.run([sys.executable, "-c", FORGED_KIND], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused\n")


def test_a_footer_without_the_metadata_of_a_column_is_refused(monkeypatch):
    content = file_of(table(10))
    file = open_parquet(content)
    for groups in ({}, {4: None}, {4: [{}]}, {4: [{1: [{}]}]}, {4: [{1: [{3: None}]}]}):
        monkeypatch.setattr(parquet_bytes, "read_struct", lambda *_, g=groups, **__: (g, 0))
        with pytest.raises(ReleaseFormatError, match="footer cannot be read"):
            check_size(file, content, **LIMITS)
