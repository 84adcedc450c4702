"""Sums of weights over maps: enclosed between integers, to the stated precision."""

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

from psd.mechanisms.map_weights import MapWeights
from psd.mechanisms.zone_layouts import HalvingTree, Runs
from support.privacy.price_markets import all_maps, score_of

RATE = (1, 3)
PRECISIONS = (8, 60, 120)
CASES = [
    (Runs(5), (1, 2, 4), 3, 20),
    (Runs(3), (3,), 2, 10**6),  # gaps far beyond any float
    (HalvingTree(8), (1, 3, 4), 2, 9),
    (HalvingTree(4), (2, 4), 3, 0),  # all maps alike
]


def exact_sums(table, layout, zones, spread):
    """Sums over the maps of each number of zones, relative to the best map of that number."""
    for k in zones:
        scores = [score_of(table, answer) for answer in all_maps(layout, k, table.shape[1])]
        best = max(scores)
        yield best, sum((Decimal(RATE[0] * (s - best)) / RATE[1]).exp() for s in scores)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("layout", "zones", "prices", "spread"), CASES)
def test_sums_are_enclosed_and_shares_of_numbers_have_one_base_measure(
    layout, zones, prices, spread, precision
):
    table = np.random.default_rng(9).integers(0, spread + 1, (layout.bins, prices))
    weights = MapWeights(table, layout, zones, RATE, precision)
    with localcontext(prec=150):
        sums = list(exact_sums(table, layout, zones, spread))
        top, shares = max(best for best, _ in sums), []
        for k, (best, exact) in zip(zones, sums, strict=True):
            total = weights._totals((k, 0, layout.bins))
            assert total.best == best
            assert total.low <= exact * 2**weights._bits <= total.high
            assert total.high - total.low <= total.low * 1_000 >> precision or precision == 8
            relative = exact * (Decimal(RATE[0] * (best - top)) / RATE[1]).exp()
            shares.append(relative / (layout.count(k) * prices**k))
        numbers = list(zip(weights.numbers(), shares, strict=True))
        for ((low, high), share), ((other_low, other_high), other) in product(numbers, repeat=2):
            assert low * other <= share * other_high
            assert other_low * share <= other * high


def test_prices_and_pairs_have_the_weights_of_their_maps():
    table = np.array([[3, 0, 10**6], [1, 9, 2], [4, 4, 4]])
    for precision in PRECISIONS:
        weights = MapWeights(table, Runs(3), (1,), RATE, precision).prices((1, 3))
        with localcontext(prec=80):
            for (low, high), score in zip(weights, [5, 13, 6], strict=True):
                exact = 2**precision * (Decimal(RATE[0] * (score - 13)) / RATE[1]).exp()
                assert low <= exact <= high
    table = np.random.default_rng(11).integers(0, 30, (6, 4))
    weights = MapWeights(table, Runs(6), (3,), RATE, 60)
    low, high = np.array(weights.pairs((3, 0, 6)), object).T
    exact = [0.0] * 4
    for answer in all_maps(Runs(6), 3, 4):
        last = int(np.argmax(answer[:, 0] == 2))
        exact[last - 2] += math.exp(score_of(table, answer) * RATE[0] / RATE[1])
    shares = np.array([float(v / low.sum()) for v in low])
    assert shares == pytest.approx(np.array(exact) / sum(exact), rel=1e-9)
    assert all(b > a for a, b in zip(low, high, strict=True))
