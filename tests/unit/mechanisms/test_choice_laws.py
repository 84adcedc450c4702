"""Law of permute-and-flip, beside its definition over all orders."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from psd.mechanisms.choice_laws import (
    permute_and_flip_log_probability,
    permute_and_flip_probabilities,
)


def by_definition(coins):
    """Go through the candidates in each order, and take the first whose coin is true."""
    probabilities = [Fraction(0)] * len(coins)
    orders = list(itertools.permutations(range(len(coins))))
    for order in orders:
        reached = Fraction(1, len(orders))
        for candidate in order:
            probabilities[candidate] += reached * coins[candidate]
            reached *= 1 - coins[candidate]
    return probabilities


def test_probabilities_are_those_of_the_definition(subtests):
    for coins in (
        [Fraction(1)],
        [Fraction(1), Fraction(1)],
        [Fraction(1), Fraction(1, 3)],
        [Fraction(1), Fraction(1), Fraction(9, 10), Fraction(1, 100)],
        [Fraction(1, 2), Fraction(1, 7), Fraction(1), Fraction(1, 2), Fraction(3, 4)],
        [Fraction(1), *[Fraction(n, 7) for n in range(1, 6)]],
    ):
        with subtests.test(coins=coins):
            expected = [float(p) for p in by_definition(coins)]
            exponents = np.array([-math.log(p) for p in coins])
            assert permute_and_flip_probabilities(exponents) == pytest.approx(expected, rel=1e-12)
            logs = [permute_and_flip_log_probability(exponents, i) for i in range(len(coins))]
            assert np.exp(logs) == pytest.approx(expected, rel=1e-12)


def add_up(sizes):
    for size, scale in itertools.product(sizes, (0.0, 0.01, 1.0, 30.0)):
        exponents = scale * -np.log1p(-np.arange(size) / size)
        assert permute_and_flip_probabilities(exponents).sum() == pytest.approx(1, abs=1e-12)


def test_probabilities_add_up_to_1():
    add_up((1, 2, 17, 200))


@pytest.mark.deep
def test_probabilities_of_many_candidates_add_up_to_1():
    add_up((20_000, 100_000))


def test_totals_just_above_a_power_of_two_need_no_narrow_panel(subtests):
    rests = (2**-52, 2**-50, 1e-9, 0.01, 0.3, 1 / 3, 0.34)
    for equal, rest in itertools.product((1, 2, 3, 4, 8), rests):
        exponents = np.append(np.zeros(equal), -math.log(rest))
        with subtests.test(equal=equal, rest=rest):
            probabilities = permute_and_flip_probabilities(exponents)
            log = permute_and_flip_log_probability(exponents, 0)
            assert probabilities.sum() == pytest.approx(1, abs=1e-12)
            assert math.exp(log) == pytest.approx(probabilities[0], rel=1e-12)
    far = math.log(1 / 3) - 1e6  # the integral of (1 - t)^2
    log = permute_and_flip_log_probability(np.array([0.0, 0.0, 1e6]), 2)
    assert log == pytest.approx(far, rel=1e-14)


def test_prices_of_a_hundred_bids():
    """Bids and prices 1 to 100: the expected revenue, in units of the highest price."""
    prices = np.arange(1, 101)
    scores = prices * (101 - prices)
    for epsilon, revenue in ((1, 25.012505), (0.1, 21.277491)):
        exponents = epsilon / 100 * (scores.max() - scores)
        mean = permute_and_flip_probabilities(exponents) @ scores / 100
        assert mean == pytest.approx(revenue, abs=5e-7)
