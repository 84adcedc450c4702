"""Weights of gaps: enclosed, at 60 bits of words and at any other precision."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from psd.mechanisms.exponential_tables import FAST_BITS, ExponentialTable, exponential_table

RATES = [(1, 10_000), (7, 3), (10**6, 1), (1, 2 * 10**9 * 2**32), (999, 1_000)]


def gaps():
    random = np.random.default_rng(4)
    edges = [0, 1, 2, 1023, 1024, 1025, 2**20 - 1, 2**20, 2**20 + 1, 2**62, 2**63 - 1]
    return np.array([*edges, *random.integers(0, 3_000, 200), *random.integers(0, 2**45, 50)])


@pytest.mark.parametrize("bits", [8, FAST_BITS, 61, 200])
def test_weights_enclose(bits, subtests):
    for rate in RATES:
        with subtests.test(rate=rate), localcontext(prec=120):
            table = ExponentialTable(*rate, bits)
            weights = table.weights(gaps()).tolist()
            assert [table.weight(gap) for gap in gaps().tolist()] == weights
            for gap, weight in zip(gaps().tolist(), weights, strict=True):
                exact = 2**bits * (Decimal(-rate[0] * gap) / Decimal(rate[1])).exp()
                assert weight <= exact < weight + table.error
            assert table.weight(0) == 2**bits
            assert table.weight(2**200) == 0 < table.error < 40


@pytest.mark.parametrize("bits", [20, FAST_BITS, 120])
def test_sums_are_those_of_weights(bits):
    table = ExponentialTable(3, 1_000, bits)
    rows = gaps()[:256].reshape(8, 32)
    rows[0] = 0  # 32 * 2**60 is beyond a word
    expected = [sum(int(w) for w in row) for row in table.weights(rows)]
    assert table.sums(rows) == expected
    assert expected[0] == 32 << bits


def test_products_of_words_are_floors_and_a_table_is_made_once():
    table = ExponentialTable(1, 1, FAST_BITS)
    random = np.random.default_rng(8)
    a, b = random.integers(0, 2**60, (2, 2_000), dtype=np.uint64)
    a[:3], b[:3] = [2**60, 2**60, 2**60 - 1], [2**60, 1, 2**60 - 1]
    exact = [int(x) * int(y) >> 60 for x, y in zip(a, b, strict=True)]
    assert table._product(a, b).tolist() == exact
    assert exponential_table(1, 7, 60) is exponential_table(1, 7, 60)
