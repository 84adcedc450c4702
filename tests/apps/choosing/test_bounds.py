"""Bounds from public numbers, beside the laws of a thousand random markets."""

import math

import numpy as np
import pytest

from psd.apps.choosing.choice import LIKELY, base_weight, liar_gain, map_shortfall, shortfall
from psd.errors import ParameterError
from psd.mechanisms.choice_laws import HalvingTree, Runs, map_law, permute_and_flip_probabilities
from support.privacy.price_markets import (
    all_zonings,
    area_market,
    enumerated_law,
    line_market,
    score_of,
)


def markets(number):
    """Revenue of each price, in units of the highest price, and epsilon, of random markets."""
    random = np.random.default_rng(24)
    for _ in range(number):
        bidders, prices = (int(10 ** random.uniform(*e)) for e in ((0.7, 3.3), (1, 3)))
        epsilon = float(10 ** random.uniform(math.log10(0.05), math.log10(2)))
        shape = random.choice(3)
        bids = (
            random.random(bidders),
            random.random(bidders) ** 6,
            np.minimum(1, 1 / prices / random.random(bidders)),
        )[shape]
        steps = np.arange(1, prices + 1)
        counts = (np.ceil(bids * prices)[:, None] >= steps).sum(axis=0)
        yield steps * counts / prices, bidders, epsilon


@pytest.mark.deep
def test_a_thousand_markets_keep_the_bounds():
    """Expected revenue at or above OPT - (P / E) ln m, and above the bound of the source."""
    shares, spoke = [], 0
    for revenue, bidders, epsilon in markets(1_000):
        best = revenue.max()
        gaps = best - revenue
        exponential = np.exp(-epsilon * gaps)
        bound = best - shortfall(1 / epsilon, math.log(len(revenue)))
        source = best - 3 * math.log(math.e + epsilon**2 * best * bidders) / epsilon
        for law in (
            exponential / exponential.sum(),
            permute_and_flip_probabilities(epsilon * gaps),
        ):
            mean = law @ revenue
            assert mean >= bound - 1e-9
            assert mean >= source - 1e-9
            far = gaps > shortfall(1 / epsilon, math.log(len(revenue)), LIKELY)
            assert law[far].sum() < 0.05
            shares.append((best - mean) / (best - bound))
        spoke += source > 0
    assert max(shares) <= 1
    assert 0.05 < np.mean(shares) < 0.3
    assert spoke > 50


def best_map(table, layout, zones):
    """Best score of a map of a number of zones."""
    return max(
        sum(int(table[first:stop].sum(axis=0).max()) for first, stop in spans)
        for spans in all_zonings(layout, zones)
    )


ONES = {1: 152.71, 2: 157.94, 3: 154.12, 4: 150.10, 6: 142.32}
MARKETS = {
    "line": (line_market(), Runs(12), ONES),
    "area": (area_market(), HalvingTree(64), dict.fromkeys((1, 2, 3, 4, 6, 8))),
}


@pytest.mark.parametrize(("table", "layout", "rows"), MARKETS.values(), ids=MARKETS)
@pytest.mark.parametrize("epsilon", [1, 0.1])
def test_maps_of_one_number_of_zones_keep_the_bound(table, layout, rows, epsilon):
    for zones, golden in rows.items():
        best = best_map(table, layout, zones) / 100
        bound = best - map_shortfall(1 / epsilon, layout, zones, 1, 100)
        mean = map_law(table, layout, zones, epsilon / 100).expected_score / 100
        assert mean >= bound
        if golden and epsilon == 1:
            assert bound == pytest.approx(golden, abs=0.0051)


@pytest.mark.parametrize("rate", [0.05, 0.5, 5.0])
def test_mixed_maps_keep_the_bound_of_each_number(rate):
    table = np.random.default_rng(7).integers(0, 9, (4, 3))
    answers, law = enumerated_law(table, Runs(4), (1, 2, 3), rate)
    scores = np.array([score_of(table, a) for a in answers])
    for zones in (1, 2, 3):
        best = best_map(table, Runs(4), zones)
        assert law @ scores >= best - map_shortfall(1 / rate, Runs(4), zones, 3, 3)
        far = scores <= best - map_shortfall(1 / rate, Runs(4), zones, 3, 3, LIKELY)
        assert law[far].sum() <= math.exp(-LIKELY)


def test_the_base_weight_is_that_of_the_law():
    """Where all maps are alike, their probabilities are the base measure."""
    answers, law = enumerated_law(np.zeros((4, 2), int), Runs(4), (1, 2, 3), 1.0)
    for zones in (1, 2, 3):
        of_number = [p for a, p in zip(answers, law, strict=True) if a[-1, 0] + 1 == zones]
        assert -np.log(of_number) == pytest.approx(base_weight(Runs(4), zones, 3, 2))


def test_liars():
    assert liar_gain(0.5) == pytest.approx(math.exp(0.5) - 1)
    assert liar_gain(0.5, liars=3, rounds=2) == pytest.approx(math.exp(3) - 1)
    assert liar_gain(1_000) == math.inf
    for wrong in ({"liars": 0}, {"rounds": 0}):
        with pytest.raises(ParameterError, match="liars and rounds must be at least 1"):
            liar_gain(1, **wrong)
