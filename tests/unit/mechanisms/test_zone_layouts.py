"""Layouts of zones: their zones and numbers of maps, sums over all maps, and what is refused."""

import math

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.mechanisms.choice_laws import (
    MAX_TABLE,
    MAX_ZONES,
    HalvingTree,
    Runs,
    check_maps,
    is_map,
    leaf_numbers,
    spans_of,
    sums_over_maps,
    zone_layout,
)
from support.privacy.price_markets import all_zonings

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
