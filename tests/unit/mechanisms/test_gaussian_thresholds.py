"""Certified thresholds of discrete Gaussian noise: golden numbers, and 200 decimal digits."""

from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate, product

import numpy as np
import pytest

from psd.mechanisms import certified_thresholds
from psd.mechanisms.bernoulli import invert
from psd.mechanisms.certified_thresholds import GaussianSurvival, thresholds
from support.noise_paths import Tape

PARAMETERS = [(1, 3), (1, 1), (10, 1), (100, 1), (1, 10**6), (24_355_970_359, 3 * 10**9),
              (10**30 + 1, 10**28 + 7)]  # fmt: skip
LAWS = [GaussianSurvival(*parameter) for parameter in PARAMETERS]
LAW = GaussianSurvival(10, 1)
DIGIT = 2**64


@cache
def exact_survivals(law):
    """P(|X| >= k), k from 1, with 400 digits."""
    with localcontext(prec=400):
        decay = (-Decimal(law.denominator) / (2 * law.numerator)).exp()
        weights, weight, step = [], decay, decay**3  # exp(-k**2 / 2 sigma**2)
        while not weights or weights[-1] > Decimal(10) ** -300:
            weights.append(weight)
            weight, step = weight * step, step * decay**2
        tails = list(accumulate(reversed(weights)))[::-1]
        return [2 * tail / (1 + 2 * tails[0]) for tail in tails]


def exact_floors(law, bits, number):
    """Floors of 2**bits P(|X| >= k), k from 1."""
    with localcontext(prec=400):
        floors = [int(survival * 2**bits) for survival in exact_survivals(law)[:number]]
        return floors + [0] * (number - len(floors))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_entry_is_the_floor(law):
    """Those of other expansions are so too, and few guard bits leave one undecided, not wrong."""
    table = thresholds(law)
    assert table[0] == 0
    assert table.size == 1 or table[1] > 0
    assert (np.diff(table.astype(np.int64)) >= 0).all()
    truth = table.tolist()[::-1]
    assert truth == exact_floors(law, 63, len(truth))
    for bits in (8, 63, 127, 255):
        assert [law.floor(k, bits) for k in range(1, 6)] == exact_floors(law, bits, 5)
    answers = [law.entries(guard) for guard in range(-31, 40)]
    assert all(answer is None or answer == truth for answer in answers)
    assert answers[0] is None or len(truth) == 1
    assert answers[-1] == truth


def test_enclosures_hold_the_probability(subtests):
    """Few bits make wide enclosures, where a wrong direction shows."""
    for law in LAWS:
        with subtests.test(str(law)):
            for bits in range(24, 80, 3):
                low, high = law._enclosures(bits)
                truth = exact_floors(law, bits, len(low))
                assert all(a <= b <= c for a, b, c in zip(low, truth, high, strict=True))
    for bits in (40, 63, 159):
        weights = list(GaussianSurvival(100, 1)._weights(bits))
        with localcontext(prec=100):
            later = [(-(Decimal(j) ** 2) / 200).exp() for j in range(len(weights), 300)]
        assert weights[-1][0] == 0
        end = (sum(later) + 2 * later[0]) * 2**bits + 2
        assert sum(later) * 2**bits <= weights[-1][1] < end


def test_values_far_beyond_the_table_and_more_guard_bits(monkeypatch):
    assert LAW.floor(10**6, 63) == 0
    assert LAW.floor(60, 400) == exact_floors(LAW, 400, 60)[59] > 0
    table = thresholds(GaussianSurvival(2**24, 1))
    assert table.size == pytest.approx(9.08 * 2**12, rel=0.01)
    monkeypatch.setattr(certified_thresholds, "_GAUSSIAN_GUARD_BITS", 1)
    assert [LAW.floor(k, 63) for k in range(1, 20)] == exact_floors(LAW, 63, 19)


def words(*values):
    return np.array(values, dtype=np.uint64)


def test_a_tie_is_decided_by_the_next_word(monkeypatch):
    for k, more in product((1, 2, 20), (-1, 1)):
        tape = Tape(monkeypatch, LAW.floor(k, 127) % DIGIT + more)
        assert invert(words(LAW.floor(k, 63)), LAW).tolist() == [k if more < 0 else k - 1]
        assert not tape.left
    # A word of 0 ties at the end of the table; more bits say how far beyond it is.
    end = thresholds(LAW).size
    for bits, k in ((127, end + 3), (127, end + 10)):
        below = LAW.floor(k, bits)
        tape = Tape(monkeypatch, below - 1)
        assert invert(words(0), LAW).tolist() == [k]
        assert not tape.left


@pytest.mark.deep
def test_equal_entries_are_told_apart(monkeypatch):
    """Entries of a wide table are equal near its end: more bits find the one that is meant."""
    law = GaussianSurvival(300**2, 1)
    table = thresholds(law)[::-1].tolist()
    first = table.index(1)
    assert table.count(1) > 5
    for k in (first + 1, first + 4, first + table.count(1)):
        tape = Tape(monkeypatch, law.floor(k, 127) % DIGIT - 1)
        assert invert(words(1), law).tolist() == [k]
        assert not tape.left
    tape = Tape(monkeypatch, law.floor(first + 1, 127) % DIGIT + 1)
    assert invert(words(1), law).tolist() == [first]
    assert not tape.left
