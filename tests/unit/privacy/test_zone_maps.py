"""Sums over all maps of a layout, each map once, beside enumeration."""

import math

import numpy as np
import pytest

from psd.privacy.zone_layouts import (
    MAX_ZONES,
    HalvingTree,
    Runs,
)
from psd.privacy.zone_maps import is_map, spans_of, sums_over_maps
from support.privacy.price_markets import all_zonings

SMALL = [Runs(1), Runs(2), Runs(5), Runs(7), HalvingTree(1), HalvingTree(4), HalvingTree(16)]
CASES = [(layout, zones) for layout in SMALL for zones in range(1, layout.bins + 1)]


@pytest.mark.parametrize(("layout", "zones"), CASES, ids=str)
def test_the_recursion_gives_each_map_once(layout, zones):
    maps = sums_over_maps(
        layout,
        lambda span: [(span,)],
        lambda first, second: [a + b for a in first for b in second],
        lambda lists: [each for some in lists for each in some],
    )((zones, 0, layout.bins))
    expected = all_zonings(layout, zones)
    assert sorted(maps) == sorted(expected)
    assert layout.count(zones) == len(expected)


def test_a_map_has_as_many_zones_as_python_recurses():
    runs = sums_over_maps(Runs(120), lambda span: 1, lambda a, b: a * b, sum)
    assert runs((MAX_ZONES, 0, 120)) == math.comb(119, MAX_ZONES - 1)


@pytest.mark.parametrize(
    ("layout", "zones", "is_one"),
    [
        (Runs(4), [0, 0, 1, 1], True),
        (Runs(4), [0, 1, 2, 3], True),
        (Runs(4), [1, 1, 2, 2], False),
        (Runs(4), [0, 0, 2, 2], False),
        (Runs(4), [0, 1, 0, 1], False),
        (Runs(4), [0, 0, 1], False),
        (HalvingTree(4), [0, 0, 1, 1], True),
        (HalvingTree(4), [0, 1, 2, 2], True),
        (HalvingTree(4), [0, 1, 1, 2], False),
        (HalvingTree(4), [0, 1, 1, 1], False),
    ],
)
def test_maps_are_told_from_what_is_none(layout, zones, is_one):
    assert is_map(layout, np.array(zones)) == is_one


def test_spans_of_zones():
    assert list(spans_of(np.array([0, 1, 1, 1, 2]))) == [(0, 1), (1, 4), (4, 5)]
