"""A release of more nodes than the caller allows is refused before anything is decoded."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.ledger.receipts import is_sound
from psd.release.file import NODES, SCHEMA, decode_release, encode_release, read_release
from psd.release.node_reader import MAX_NODES, check_node_count
from psd.release.series_file import read_series
from psd.signing import new_key, sign, verify
from psd.testing import release_from_counts
from support.forged_releases import file_of
from support.tables import refused

MADE = release_from_counts([[5, 1], [0, 2]])
MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-03")


@pytest.fixture(params=["release", "series"])
def path(request, tmp_path):
    made = MADE if request.param == "release" else psd.Release.from_slices(MONTHS, [MADE] * 3)
    made.save(tmp_path / "r")
    return tmp_path / "r"


def loaders(path):
    return psd.load, psd.Release.load, lambda path, **limit: verify(path, **limit)


def test_the_limit_is_of_all_nodes_together_and_may_be_set(path, subtests):
    nodes = pq.read_metadata(path).num_rows
    for load in loaders(path):
        load(path)
        load(path, max_nodes=nodes)
        with pytest.raises(ReleaseFormatError, match=rf"at most {nodes - 1:,} nodes .* {nodes:,};"):
            load(path, max_nodes=nodes - 1)
    table = [("max_nodes must be an integer of at least 1", 0, -1, True, 2.0, "many", None)]
    for load in loaders(path):
        use = partial(load, path)
        refused(subtests, ParameterError, table, lambda limit, use=use: use(max_nodes=limit))


def test_more_nodes_are_refused_before_anything_is_decoded(path, monkeypatch):
    for name in ("read", "iter_batches", "read_row_group"):
        monkeypatch.setattr(pq.ParquetFile, name, None)
    monkeypatch.setattr("psd.release.file.check_size", None)
    monkeypatch.setattr("psd.release.series_file.check_size", None)
    with pytest.raises(ReleaseFormatError, match="at most 1 nodes"):
        psd.load(path, max_nodes=1)


def test_four_million_nodes_are_read_by_default_and_no_more():
    check_node_count(MAX_NODES, MAX_NODES)
    rows = MAX_NODES + 1
    assert rows == 2**22 + 1 < NODES["floor"] + NODES["each"] * 2**20
    columns = [pa.array(np.zeros(rows, field.type.to_pandas_dtype())) for field in SCHEMA]
    footer = pq.read_metadata(pa.BufferReader(encode_release(MADE.record))).metadata
    made = pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata({b"psd": footer[b"psd"]}))
    with pytest.raises(ReleaseFormatError, match=r"at most 4,194,304 nodes .* got 4,194,305"):
        decode_release(file_of(made, compression="zstd"))


def test_a_file_has_no_more_bytes_than_its_nodes_take(path):
    with path.open("r+b") as file:
        file.truncate(2**26 + 64 * 50 + 1)
    for load in (psd.Release.load, psd.Release.load):
        with pytest.raises(ReleaseFormatError, match=r"at most 67,112,064 bytes .* 67,112,065;"):
            load(path, max_nodes=50)
        with pytest.raises(ReleaseFormatError, match="cannot be read as a release"):
            load(path, max_nodes=51)


def test_a_release_is_signed_within_the_limit(tmp_path):
    MADE.save(tmp_path / "r")
    public = new_key(tmp_path / "k.pem")
    with pytest.raises(ReleaseFormatError, match="at most 2 nodes"):
        sign(tmp_path / "r", tmp_path / "k.pem", max_nodes=2)
    sign(tmp_path / "r", tmp_path / "k.pem")
    assert verify(tmp_path / "r", public) == MADE.digest


def test_a_ledger_counts_its_own_releases_whatever_their_size(path, monkeypatch):
    for read in (read_release, read_series):
        monkeypatch.setitem(read.__kwdefaults__, "max_nodes", 1)
        with pytest.raises(ReleaseFormatError):
            read(path)
    assert is_sound(path)
