"""Laws of choices: of a list beside its definition, of maps beside enumeration and two markets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from psd.mechanisms.choice_laws import (
    HalvingTree,
    Runs,
    map_law,
    map_log_probability,
    permute_and_flip_log_probability,
    permute_and_flip_probabilities,
)
from support.privacy.price_markets import (
    all_maps,
    area_market,
    enumerated_law,
    line_market,
    score_of,
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


# Price maps

# Zones, maps, and for epsilon 1 and 0.1: expected revenue over the highest price, and ln Z.
LINE = [
    (1, 1, (156.624687, 157.670409), (150.035057, 18.394035)),
    (2, 11, (167.066484, 170.965568), (149.546743, 24.919392)),
    (3, 55, (167.444956, 176.357032), (146.162439, 30.614280)),
    (4, 165, (167.731460, 180.958152), (142.241748, 35.849699)),
    (6, 462, (167.919856, 188.798400), (134.302414, 45.314916)),
]
AREA = [
    (1, 1, (168.380403, 170.220546), (163.154269, 19.419214)),
    (2, 1, (175.613690, 179.957249), (165.497617, 23.455261)),
    (3, 2, (177.325616, 185.055113), (160.457530, 28.004086)),
    (4, 5, (178.386601, 189.945397), (155.380330, 33.065404)),
    (6, 42, (178.695967, 199.120547), (150.091784, 43.983856)),
    (8, 365, (178.011142, 208.632491), (146.998380, 55.081463)),
]


MARKETS = {"line": (line_market(), Runs(12), LINE), "area": (area_market(), HalvingTree(64), AREA)}


@pytest.mark.parametrize(("table", "layout", "rows"), MARKETS.values(), ids=MARKETS)
def test_golden_numbers(table, layout, rows):
    for zones, maps, *goldens in rows:
        assert layout.count(zones) == maps
        for epsilon, (revenue, log_sum) in zip((1, 0.1), goldens, strict=True):
            law = map_law(table, layout, zones, epsilon / 100)
            assert law.expected_score / 100 == pytest.approx(revenue, abs=5.1e-7)
            assert law.log_sum == pytest.approx(log_sum, abs=5.1e-7)


@pytest.mark.parametrize("rate", [0.01, 0.4, 3.0])
@pytest.mark.parametrize(
    ("layout", "prices", "numbers"),
    [(Runs(5), 12, (1, 2, 3)), (Runs(4), 3, (1, 2, 3, 4)), (HalvingTree(8), 2, (2, 3, 5))],
    ids=str,
)
def test_laws_are_those_of_all_maps(layout, prices, numbers, rate):
    table = np.random.default_rng(5).integers(-9, 10, (layout.bins, prices))
    for zones in numbers:
        scores = np.array([score_of(table, a) for a in all_maps(layout, zones, prices)])
        weights = np.exp(rate * (scores - scores.max()))
        law = map_law(table, layout, zones, rate)
        log_sum = rate * scores.max() + math.log(weights.sum())
        assert law.log_sum == pytest.approx(log_sum, rel=0, abs=1e-9)
        mean = weights @ scores / weights.sum()
        assert law.expected_score == pytest.approx(mean, rel=0, abs=1e-9)


@pytest.mark.parametrize("layout", [Runs(4), HalvingTree(4)], ids=str)
def test_probabilities_of_all_maps(layout):
    table = np.random.default_rng(6).integers(0, 10, (4, 3))
    answers, law = enumerated_law(table, layout, (1, 2, 4), 0.3)
    logs = [map_log_probability(table, layout, (1, 2, 4), 0.3, a) for a in answers]
    assert np.exp(logs) == pytest.approx(law, rel=1e-11)


def test_what_is_no_map_is_impossible():
    table = np.ones((4, 3), np.int64)
    for answer in (
        [[0, 0], [0, 1], [1, 0], [1, 0]],  # two prices in a zone
        [[0, 0], [0, 0], [0, 0], [0, 0]],  # a number of zones that is not allowed
        [[0, 0], [0, 0], [1, 3], [1, 3]],  # a price beyond the list
        [[0, 0], [0, 0], [1, -1], [1, -1]],
        [[0, 0], [1, 0], [1, 0], [1, 0]],  # a zone that is no node
    ):
        log = map_log_probability(table, HalvingTree(4), (2, 3), 0.3, np.array(answer))
        assert log == -math.inf
