"""Price maps: answers that are maps, their law, refinement, extreme scores, sums of weights."""

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

from psd.mechanisms import exponential_tables
from psd.mechanisms.choice_laws import HalvingTree, Runs, is_map, zone_layout
from psd.mechanisms.price_maps import MapWeights, PriceMaps
from psd.privacy.loss import NANO
from support.privacy.price_markets import (
    all_maps,
    area_market,
    enumerated_law,
    line_market,
    score_of,
)


def maps(scores, zones, layout, epsilon=NANO, sensitivity=1, is_monotone=True):
    law = {"epsilon": epsilon, "sensitivity": sensitivity, "is_monotone": is_monotone}
    return PriceMaps(scores=np.array(scores, np.int64), zones=zones, layout=layout, **law)


@pytest.mark.parametrize(
    ("table", "layout", "zones"),
    [(line_market(), "runs", (1, 2, 6, 12)), (area_market(), "halving-tree", (3, 8, 64))],
    ids=["line", "area"],
)
def test_answers_are_maps_of_the_layout(table, layout, zones):
    for epsilon in (1, NANO // 10, NANO, 1_000 * NANO) * 3:
        value = maps(table, zones, layout, epsilon, 100)
        answer = value.sample()
        assert answer.shape == (1, len(table), 2)
        assert answer.dtype == np.int64
        zone = answer[0, :, 0]
        assert is_map(zone_layout(layout, len(table)), zone)
        assert zone[-1] + 1 in zones
        assert np.isfinite(value.log_probability(answer)).all()


def test_the_best_map_wins_where_epsilon_is_large_and_one_needs_no_draw(monkeypatch):
    scores = [[0, 9, 1], [0, 9, 0], [8, 0, 0], [8, 0, 1]]
    for _ in range(20):
        answer = maps(scores, (1, 2), "halving-tree", 100 * NANO).sample()
        assert answer[0].tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]
    monkeypatch.setattr(exponential_tables, "random_words", None)
    assert maps([[5]], (1,), "halving-tree").sample().tolist() == [[[0, 0]]]
    assert maps([[5], [7]], (2,), "runs").sample().tolist() == [[[0, 0], [1, 0]]]


def test_a_far_map_is_drawn_when_its_turn_comes(monkeypatch):
    """A uniform number that starts with 1,920 zero bits falls to the first, far price."""
    drawn = []

    def word(size):
        drawn.append(size)
        return np.zeros(size, np.uint64)

    monkeypatch.setattr(exponential_tables, "random_words", word)
    assert maps([[0, 800]], (1,), "runs", NANO, 1).sample()[0].tolist() == [[0, 0]]
    assert len(drawn) == 30  # the least doubling of 60 bits that is above 800 / ln 2
    # Float weights underflow to 0 from about 745 units below the best.
    scores = np.array([[0, 10_000], [0, 0]])
    value = maps(scores, (1,), "runs")
    worst = np.array([[[0, 0], [0, 0]]])
    assert value.log_probability(worst) == pytest.approx([-10_000], rel=1e-12)
    weights = MapWeights(scores, zone_layout("runs", 2), (1,), (1, 1), 60)
    low, high = weights.prices((0, 2))[0]
    assert low == 0 < high  # so that no draw is decided against it


def test_log_probability_is_the_law_at_the_stated_rate():
    table = np.random.default_rng(12).integers(0, 10, (4, 2))
    for layout, (is_monotone, rate) in product(("runs", "halving-tree"), ((True, 3), (False, 6))):
        answers, law = enumerated_law(table, zone_layout(layout, 4), (1, 3), 0.5 / rate)
        value = maps(table, (1, 3), layout, NANO // 2, 3, is_monotone)
        logs = [value.log_probability(answer[None])[0] for answer in answers]
        assert np.exp(logs) == pytest.approx(law, rel=1e-10)
    value = maps([[1, 2], [3, 4]], (2,), "runs")
    assert value.log_probability(np.zeros((1, 2, 2), np.int64)).tolist() == [-math.inf]
    value = maps([[10, 20, 30], [40, 50, 60]], (1, 2), "runs", NANO, 7, False)
    assert value.public == ("price-maps", (2, 3), (1, 2), "runs", NANO, 7, False)
    assert value.cost.tolist() == [NANO]


# Sums of weights over maps: enclosed between integers, to the stated precision.

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
