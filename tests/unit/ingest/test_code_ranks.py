"""Ranks of codes, against a search among all codes in ascending order."""

from itertools import product

import numpy as np
import pytest

from psd.ingest.quadrant_codes import CodeRanks

MODULE = "psd.ingest.quadrant_codes"
LEVELS = 9


def records(kind, size=3_000):
    """Codes of records: anywhere, in a few cells, in one cell, or none."""
    random = np.random.default_rng(4)
    codes = random.integers(0, 4**LEVELS, size)
    if kind == "few cells":
        codes = random.choice([0, 5, 2**16 + 3, 4**LEVELS - 1], size)
    if kind == "a part":
        codes[size // 8 :] = 3 * 4 ** (LEVELS - 1) + codes[size // 8 :] % 64
    return codes[:0] if kind == "none" else codes


def starts(depth):
    """Codes at which some nodes of a depth begin."""
    random = np.random.default_rng(depth)
    size = 4 ** (LEVELS - depth)
    return random.permutation(np.unique(random.integers(0, 4**depth, 200))) * size


@pytest.fixture(autouse=True)
def _no_input_is_small(monkeypatch):
    monkeypatch.setattr(f"{MODULE}._FEW", 0)
    monkeypatch.setattr(f"{MODULE}._CHUNK", 700)


def test_ranks_are_those_of_a_search(subtests, monkeypatch):
    every_depth, deepest = range(LEVELS + 1), [LEVELS] * 3
    for depths, dtype, kind, share in product(
        (every_depth, every_depth[::-1], deepest),
        (np.uint32, np.int64),
        ("anywhere", "few cells", "a part", "none"),
        (1, 4, 10**9),
    ):
        monkeypatch.setattr(f"{MODULE}._LARGEST_PART", share)
        codes = records(kind).astype(dtype)
        ascending = np.sort(codes)
        ranks = CodeRanks(codes.copy(), LEVELS, is_sorted=False)
        with subtests.test(depths=depths, dtype=dtype, kind=kind, share=share):
            assert len(ranks) == len(codes)
            for depth in depths:
                found = ranks.ranks(starts(depth))
                assert found.dtype == np.int64
                np.testing.assert_array_equal(found, np.searchsorted(ascending, starts(depth)))
            np.testing.assert_array_equal(ranks.ascending(), ascending)
            found = ranks.ranks(starts(5))
            np.testing.assert_array_equal(found, np.searchsorted(ascending, starts(5)))


def test_few_codes_and_small_inputs(monkeypatch):
    codes = records("anywhere")
    ranks, ascending = CodeRanks(codes.copy(), LEVELS, is_sorted=False), np.sort(codes)
    for code in (4**LEVELS - 1, 4**LEVELS - 2, 1, 2, 0):
        assert ranks.ranks(np.array([code])).tolist() == [np.searchsorted(ascending, code)]
    for few in (3_000, 3_001):
        monkeypatch.setattr(f"{MODULE}._FEW", few)
        codes = records("anywhere")
        CodeRanks(codes, LEVELS, is_sorted=False).ranks(starts(1))
        assert (np.diff(codes) >= 0).all() == (few > 3_000)
    sizes = {0: 1, 7: 1, 31: 1, 32: 4, 127: 4, 128: 16, 10**5: 4**6}
    for size, cells in sizes.items():
        assert CodeRanks(np.zeros(size, np.int64), LEVELS, is_sorted=False)._cells == cells
        assert CodeRanks(np.zeros(size, np.int64), 1, is_sorted=False)._cells == min(cells, 4)


def test_records_of_large_cells_are_not_sorted():
    codes = records("anywhere")
    ranks = CodeRanks(codes, LEVELS, is_sorted=False)
    before = codes.copy()
    for depth in range(5):  # 4^4 cells are the most that have eight records each
        ranks.ranks(starts(depth))
    for _ in range(2):
        ranks.ranks(np.array([77, 4**7 + 5]))
    np.testing.assert_array_equal(codes, before)
    ranks.ranks(np.arange(4**LEVELS))
    np.testing.assert_array_equal(codes, np.sort(before))


def test_large_codes_are_exact():
    """Floats cannot tell them apart."""
    codes = 4**30 - np.arange(40, 0, -1)
    for is_sorted in (False, True):
        ranks = CodeRanks(codes.copy(), 30, is_sorted=is_sorted)
        np.testing.assert_array_equal(ranks.ranks(codes), np.arange(40))
    assert repr(CodeRanks(np.array([3]), 1, is_sorted=True)) == "<CodeRanks: private>"
