"""Coins of probability exp(-x), by enumeration of their paths."""

import math

import numpy as np
import pytest

from psd.mechanisms import bernoulli
from psd.mechanisms.bernoulli import bernoulli_exp, bernoulli_exp_of_parts, checked_pair
from support.noise_paths import enumerate_paths


@pytest.fixture
def probability(monkeypatch):
    """P(true), and the probability of the paths followed."""

    def compute(numerator, denominator):
        def run(script):
            monkeypatch.setattr(bernoulli, "uniform_below", script.uniform_below)
            monkeypatch.setattr(bernoulli, "unit_geometric", script.unit_geometric)
            return bool(bernoulli_exp(np.array([numerator]), np.array([denominator]))[0])

        paths = list(enumerate_paths(run, smallest=1e-10))
        return sum(w for true, w in paths if true), sum(w for _, w in paths)

    return compute


FRACTIONS = [
    *((0, 1), (0, 5)),  # certain
    *((1, 2), (1, 3), (1, 7)),
    (2, 4),  # not in lowest terms
    *((1, 1), (3, 1)),  # whole numbers: no rest
    (5, 2),  # whole and rest
]


@pytest.mark.parametrize(
    "fractions",
    [FRACTIONS, pytest.param([(2, 3), (11, 3), (60, 1)], marks=pytest.mark.deep)],
    ids=["short", "long"],
)
def test_probability_is_exact(probability, fractions):
    """Not one of 60 is seen in a lifetime."""
    for numerator, denominator in fractions:
        true, followed = probability(numerator, denominator)
        assert followed == pytest.approx(1, abs=1e-6)
        near = pytest.approx(math.exp(-numerator / denominator), abs=2 * (1 - followed) + 1e-12)
        assert true == near


def test_the_largest_fractions_do_not_wrap_and_have_their_parts(monkeypatch):
    top = 2**63 - 1
    numerators = np.array([0, top, top, 1, top - 1]).repeat(50)
    denominators = np.array([top, 1, 2, top, top]).repeat(50)
    coins = bernoulli_exp(numerators, denominators).reshape(5, 50)
    assert coins.all(axis=1).tolist() == [True, False, False, True, False]
    assert coins.any(axis=1).tolist() == [True, False, False, True, True]  # exp(-1): 50 tries
    assert bernoulli_exp(np.array([], dtype=int), np.array([], dtype=int)).shape == (0,)
    one = np.array([1])
    for numerators, denominators in [(-one, one), (one, 0 * one), ([1, 2], one), ([[1]], [[1]])]:
        with pytest.raises(ValueError, match="numerators"):
            bernoulli_exp(np.array(numerators), np.array(denominators))
    integers = np.array([2**70])  # of Python
    for pair in ((one / 2, one), (one, one.astype(np.uint64)), (integers, one)):
        with pytest.raises(TypeError, match="numerators"):
            bernoulli_exp(*pair)
    pair = checked_pair(np.array([1], np.int8), np.array([3], np.uint8), least_numerator=0)
    assert [array.dtype for array in pair] == [np.int64] * 2
    # The integer part may exceed what a numerator of 64 bits could hold.
    seen = []

    def uniform_below(bounds):
        seen.append(bounds.tolist())
        return np.array([4, 6]) if len(seen) == 1 else np.array([1])

    monkeypatch.setattr(bernoulli, "unit_geometric", lambda size: np.array([2**40, 3, 2, 0]))
    monkeypatch.setattr(bernoulli, "uniform_below", uniform_below)
    parts = np.array([2**40, 2, 3, 2**62]), np.array([5, 6, 7, 8]), np.array([9, 10, 11, 12])
    assert bernoulli_exp_of_parts(*parts).tolist() == [False, True, False, False]
    assert seen == [[9, 10], [2], []]
