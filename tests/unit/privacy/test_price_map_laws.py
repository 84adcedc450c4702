"""Law of price maps: beside enumeration, and the golden numbers of two markets."""

import math

import numpy as np
import pytest

from psd.privacy.price_map_laws import map_law, map_log_probability
from psd.privacy.zone_layouts import HalvingTree, Runs
from support.privacy.price_markets import (
    all_maps,
    all_zonings,
    area_market,
    enumerated_law,
    line_market,
    score_of,
)

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


@pytest.mark.parametrize(
    ("table", "layout", "rows"),
    [(line_market(), Runs(12), LINE), (area_market(), HalvingTree(64), AREA)],
    ids=["line", "area"],
)
def test_golden_numbers(table, layout, rows):
    for zones, maps, *goldens in rows:
        assert layout.count(zones) == maps
        for epsilon, (revenue, log_sum) in zip((1, 0.1), goldens, strict=True):
            law = map_law(table, layout, zones, epsilon / 100)
            assert law.expected_score / 100 == pytest.approx(revenue, abs=5.1e-7)
            assert law.log_sum == pytest.approx(log_sum, abs=5.1e-7)


def by_zonings(table, layout, zones, rate):
    """ln Z and mean, zoning by zoning: prices of zones are independent within one."""
    logs, means = [], []
    for spans in all_zonings(layout, zones):
        log, mean = 0.0, 0.0
        for first, stop in spans:
            scores = [int(s) for s in table[first:stop].sum(axis=0)]
            best = max(scores)
            weights = [math.exp(rate * (s - best)) for s in scores]
            log += rate * best + math.log(math.fsum(weights))
            mean += math.fsum(w * s for w, s in zip(weights, scores, strict=True)) / math.fsum(
                weights
            )
        logs.append(log)
        means.append(mean)
    top = max(logs)
    shares = [math.exp(log - top) for log in logs]
    total = math.fsum(shares)
    mean = math.fsum(s * m for s, m in zip(shares, means, strict=True)) / total
    return top + math.log(total), mean


@pytest.mark.parametrize("epsilon", [1, 0.1])
@pytest.mark.parametrize(
    ("table", "layout", "numbers"),
    [
        (line_market(), Runs(12), (1, 2, 3, 4, 6)),
        (area_market(), HalvingTree(64), (1, 2, 3, 4, 6, 8)),
    ],
    ids=["line", "area"],
)
def test_the_goldens_follow_zoning_by_zoning(table, layout, numbers, epsilon):
    """The same numbers to 1e-9, by enumeration of all zonings."""
    for zones in numbers:
        law = map_law(table, layout, zones, epsilon / 100)
        log_sum, mean = by_zonings(table, layout, zones, epsilon / 100)
        assert law.log_sum == pytest.approx(log_sum, rel=0, abs=1e-9)
        assert law.expected_score / 100 == pytest.approx(mean / 100, rel=0, abs=1e-9)


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


@pytest.mark.parametrize(
    "answer",
    [
        [[0, 0], [0, 1], [1, 0], [1, 0]],  # two prices in a zone
        [[0, 0], [0, 0], [0, 0], [0, 0]],  # a number of zones that is not allowed
        [[0, 0], [0, 0], [1, 3], [1, 3]],  # a price beyond the list
        [[0, 0], [0, 0], [1, -1], [1, -1]],
        [[0, 0], [1, 0], [1, 0], [1, 0]],  # a zone that is no node
    ],
)
def test_what_is_no_map_is_impossible(answer):
    table = np.ones((4, 3), np.int64)
    log = map_log_probability(table, HalvingTree(4), (2, 3), 0.3, np.array(answer))
    assert log == -math.inf
