"""Certified thresholds against 200 decimal digits."""

from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

from psd.mechanisms import certified_thresholds
from psd.mechanisms.certified_thresholds import Survival, exp_enclosure, thresholds

SCALES = [
    (1, 10),
    (1, 3),
    (1, 1),
    (3, 7),
    (10, 1),
    (10**9, 10**8 + 7),
    (100, 1),
    (2**62 - 1, 2**61),
]
LAWS = [Survival(*scale, two_sided) for scale in SCALES for two_sided in (False, True)]


def exact(law, k):
    """P(X >= k) to 200 digits."""
    with localcontext(prec=200):
        q = (Decimal(-law.denominator) / law.numerator).exp()
        return 2 * q**k / (1 + q) if law.two_sided else q**k


def exact_floor(law, k, bits):
    with localcontext(prec=200):
        return int(exact(law, k) * 2**bits)


def test_exp_and_probabilities_lie_in_their_enclosures(subtests):
    exponents = [(1, 1), (1, 2), (1, 10**18), (7, 3), (39, 1), (100, 1), (10**15, 1)]
    exponents.append((10**18 + 1, 10**17))
    for (numerator, denominator), bits in product(exponents, (8, 63, 128, 400)):
        low, high = exp_enclosure(numerator, denominator, bits)
        with localcontext(prec=200):
            truth = (Decimal(-numerator) / denominator).exp() * 2**bits
        assert low <= truth <= high
        assert high - low < 2**12
    for law in LAWS:
        with subtests.test(str(law)):
            for k in (1, 3):
                probability = exact(law, k)
                # Few bits make wide enclosures, where a wrong direction shows.
                for bits in range(4, 90):
                    low, high = law.enclosure(k, bits)
                    assert low <= probability * 2**bits <= high


def test_each_end_of_an_enclosure_takes_the_end_of_q_that_widens_it(monkeypatch):
    ends = {1: (64, 128), 2: (40, 40)}  # of 256: q from 1/4 to 1/2, and q**2 as if known
    monkeypatch.setattr(
        "psd.mechanisms.certified_thresholds.exp_enclosure", lambda n, d, bits: ends[n]
    )
    low, high = Survival(1, 1, two_sided=True).enclosure(2, 8)
    assert (low, high) == (80 * 256 // (256 + 128), 80 * 256 // (256 + 64))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_entry_is_the_floor(law):
    """Those of longer expansions are so too, and few guard bits leave one undecided, not wrong."""
    table = thresholds(law).tolist()[::-1]
    assert table == [exact_floor(law, k, 63) for k in range(1, len(table) + 1)]
    for k, bits in product((1, 2, 17), (63, 127, 191, 255)):
        assert law.floor(k, bits) == exact_floor(law, k, bits)
    answers = [law.entries(guard) for guard in range(1, 40)]
    assert all(answer is None or answer == table for answer in answers)
    assert answers[-1] == table


def test_an_undecided_table_is_computed_with_more_bits(monkeypatch):
    law = Survival(1013, 97, two_sided=True)  # asked for nowhere else, so that it is not kept
    truth = law.entries(64)
    monkeypatch.setattr("psd.mechanisms.certified_thresholds._GUARD_BITS", 1)
    assert law.entries(1) is law.entries(2) is None
    assert thresholds(law)[::-1].tolist() == truth
    assert thresholds(law).dtype == np.uint64
    assert law.floor(5, 63) == truth[4]


def test_tables_are_distinct_ascending_short_and_read_only():
    scales = [(1, 10**12), (1, 50), (1, 1), (50, 1), (certified_thresholds.MAX_TABLE_SCALE, 1)]
    for scale, two_sided in product(scales, (False, True)):
        table = thresholds(Survival(*scale, two_sided))
        assert (np.diff(table.astype(np.int64)) > 0).all()
        assert table.size <= 9 * scale[0] / scale[1] + 2
        assert table[0] < 2**51 <= (table[1] if table.size > 1 else 2**63)
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1
    assert thresholds(Survival(1, 10**12, two_sided=True)).tolist() == [0]
