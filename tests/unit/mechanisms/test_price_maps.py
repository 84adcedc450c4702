"""Price maps as a value: answers that are maps, their law, refinement, extreme scores."""

import math
from itertools import product

import numpy as np
import pytest

from psd.mechanisms import enclosed_branches
from psd.mechanisms.map_weights import MapWeights
from psd.mechanisms.price_maps import PriceMaps
from psd.mechanisms.zone_layouts import zone_layout
from psd.mechanisms.zone_maps import is_map
from psd.privacy.epsilon import NANO
from support.privacy.price_markets import area_market, enumerated_law, line_market


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
    monkeypatch.setattr(enclosed_branches, "random_words", None)
    assert maps([[5]], (1,), "halving-tree").sample().tolist() == [[[0, 0]]]
    assert maps([[5], [7]], (2,), "runs").sample().tolist() == [[[0, 0], [1, 0]]]


def test_a_far_map_is_drawn_when_its_turn_comes(monkeypatch):
    """A uniform number that starts with 1,920 zero bits falls to the first, far price."""
    drawn = []

    def word(size):
        drawn.append(size)
        return np.zeros(size, np.uint64)

    monkeypatch.setattr(enclosed_branches, "random_words", word)
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
