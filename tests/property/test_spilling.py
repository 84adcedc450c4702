"""Rows of users that wait in files are the rows that waited in memory."""

import os
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.ingest.quadrant_codes import cell_counter
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(16, 16))
KEY = b"sixteen bytes ok"
UNITS = [
    PrivacyUnit(kind="user", max_contributions=2),
    PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"),
    PrivacyUnit(kind="user", weight=720_720),
]


def batches(size, number):
    random = np.random.default_rng(size)
    for _ in range(number):
        x, y = random.uniform(0, 8, (2, size)).round(1)
        users = pa.array(random.integers(0, 40, size)).cast(pa.string())
        time = random.integers(0, 3, size).astype("datetime64[D]").astype("datetime64[us]")
        yield Batch(x=x, y=y, user=users, time=time)


def counted(unit, memory, size=200, number=12):
    builder = TallyBuilder(DOMAIN, unit=unit, memory=memory)
    for batch in batches(size, number):
        builder.add_batch(batch)
    found = builder.build(KEY)
    return found.columns, found.rows, found.counts, found.report


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_files_change_nothing(unit, monkeypatch):
    in_memory, opened, real = counted(unit, None), [], tempfile.TemporaryFile

    def spy():
        """A temporary file, noted, which must have no name."""
        opened.append(real())
        state = os.fstat(opened[-1].fileno())
        assert state.st_nlink == 0
        assert state.st_mode & 0o077 == 0
        return opened[-1]

    monkeypatch.setattr("psd.ingest.user_partitions.tempfile.TemporaryFile", spy)
    in_files = counted(unit, 60_000)
    assert len(opened) == 64
    for found, expected in zip(in_files, in_memory, strict=True):
        np.testing.assert_equal(found, expected)
    assert all(file.closed for file in opened)


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=40), max_size=8),
    st.booleans(),
)
def test_quadrant_codes_and_a_dense_array_count_alike(parts, weighted):
    dense, sparse = cell_counter(31), cell_counter(2**40, 10**6)
    sparse._limit = 5
    for part in parts:
        codes = np.array([code for code, _ in part], np.int64)
        weights = np.array([weight for _, weight in part], np.int64) if weighted else None
        dense.add(codes, weights)
        sparse.add(codes.copy(), weights)
    for found, expected in zip(sparse.counts(), dense.counts(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_cells_that_do_not_fit_are_refused():
    counter = cell_counter(2**40, 10**6)
    with pytest.raises(psd.errors.ResourceError, match="raise memory="):
        counter.add(np.arange(10**5))
