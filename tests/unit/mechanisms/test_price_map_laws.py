"""Law of price maps: beside enumeration, and the golden numbers of two markets."""

import math

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.mechanisms.price_map_laws import map_law, map_log_probability
from psd.mechanisms.zone_layouts import (
    MAX_TABLE,
    MAX_ZONES,
    HalvingTree,
    Runs,
    check_maps,
    leaf_numbers,
    zone_layout,
)
from psd.mechanisms.zone_maps import is_map, spans_of, sums_over_maps
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


# Layouts of zones: their zones and numbers of maps, and what is refused


SMALL = [Runs(1), Runs(2), Runs(5), Runs(7), HalvingTree(1), HalvingTree(4), HalvingTree(16)]


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_all_zones_are_listed_once(layout):
    spans, numbers = [tuple(span) for span in layout.zones().tolist()], range(1, layout.bins + 1)
    used = {span for k in numbers for map_ in all_zonings(layout, k) for span in map_}
    assert len(spans) == len(set(spans)) == layout.zone_count
    assert set(spans) == used
    assert [layout.count(k) for k in (0, layout.bins + 1, layout.bins + 5)] == [0, 0, 0]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_leaves_are_halves_of_x_then_of_y(depth):
    side = 2**depth
    columns, rows = (a.ravel() for a in np.meshgrid(np.arange(side), np.arange(side)))
    leaves = leaf_numbers(columns, rows, depth)
    assert sorted(leaves) == list(range(side * side))

    def check(cells, first, size, axis):
        assert set(leaves[cells]) == set(range(first, first + size))
        if size > 1:
            key = (columns, rows)[axis]
            middle = (key[cells].min() + key[cells].max() + 1) / 2
            check(cells & (key < middle), first, size // 2, 1 - axis)
            check(cells & (key >= middle), first + size // 2, size // 2, 1 - axis)

    check(np.ones(len(leaves), bool), 0, side * side, 0)


def test_cells_and_layouts_that_do_not_exist_are_refused(subtests):
    for x, y in ((-1, 0), (0, -1), (4, 0), (0, 4)):
        with pytest.raises(ParameterError, match="4 x 4"):
            leaf_numbers(np.array([x]), np.array([y]), 2)
    for name, bins, match in (
        ("rings", 4, "layout must be one of runs, halving-tree, got 'rings'"),
        ("runs", 0, "bins must be at least 1"),
        ("halving-tree", 6, "power of two"),
        ("halving-tree", 0, "bins must be at least 1"),
    ):
        with subtests.test(name, bins=bins), pytest.raises(ParameterError, match=match):
            zone_layout(name, bins)
    for zones in ((), (0,), (-1, 2), (6,), (2, 1), (1, 1), (1, 6)):
        with pytest.raises(ParameterError, match="zones must be ascending numbers from 1 to 5"):
            check_maps(Runs(5), zones, 10)


def test_sizes_up_to_the_limit_are_taken():
    check_maps(Runs(5), (1, 5), MAX_TABLE // 15)
    with pytest.raises(ParameterError, match=r"prices must be at most 71,582,788 for 5 cells"):
        check_maps(Runs(5), (1, 5), MAX_TABLE // 15 + 1)
    check_maps(HalvingTree(2**12), range(1, 101), 2**17)
    with pytest.raises(ParameterError, match="to 100, the number"):
        check_maps(HalvingTree(2**12), range(1, 102), 10)
    # The table of docs/measured: numbers of maps of 8 x 8 cells and of a line of 12.
    assert [HalvingTree(64).count(k) for k in (1, 2, 3, 4, 6, 8)] == [1, 1, 2, 5, 42, 365]
    assert [Runs(12).count(k) for k in (1, 2, 3, 4, 6)] == [1, 11, 55, 165, 462]
    # A map has as many zones as Python recurses.
    runs = sums_over_maps(Runs(120), lambda span: 1, lambda a, b: a * b, sum)
    assert runs((MAX_ZONES, 0, 120)) == math.comb(119, MAX_ZONES - 1)


# Sums over all maps of a layout, each map once, beside enumeration.


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_the_recursion_gives_each_map_once(layout):
    for zones in range(1, layout.bins + 1):
        maps = sums_over_maps(
            layout,
            lambda span: [(span,)],
            lambda first, second: [a + b for a in first for b in second],
            lambda lists: [each for some in lists for each in some],
        )((zones, 0, layout.bins))
        expected = all_zonings(layout, zones)
        assert sorted(maps) == sorted(expected)
        assert layout.count(zones) == len(expected)


def test_maps_are_told_from_what_is_none():
    for layout, maps, others in (
        (Runs(4), ["0011", "0123"], ["1122", "0022", "0101", "001"]),
        (HalvingTree(4), ["0011", "0122"], ["0112", "0111"]),
    ):
        found = [zones for zones in maps + others if is_map(layout, np.array([*map(int, zones)]))]
        assert found == maps
    assert list(spans_of(np.array([0, 1, 1, 1, 2]))) == [(0, 1), (1, 4), (4, 5)]
