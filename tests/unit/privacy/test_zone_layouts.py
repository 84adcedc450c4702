"""Layouts of zones: their zones and numbers of maps, and what is refused."""

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.zone_layouts import (
    MAX_TABLE,
    HalvingTree,
    Runs,
    check_maps,
    leaf_numbers,
    zone_layout,
)
from support.privacy.price_markets import all_zonings

SMALL = [Runs(1), Runs(2), Runs(5), Runs(7), HalvingTree(1), HalvingTree(4), HalvingTree(16)]


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_all_zones_are_listed_once(layout):
    spans = [tuple(span) for span in layout.zones().tolist()]
    used = {
        span for k in range(1, layout.bins + 1) for map_ in all_zonings(layout, k) for span in map_
    }
    assert len(spans) == len(set(spans)) == layout.zone_count
    assert set(spans) == used


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_no_map_has_no_zone_or_more_than_the_bins(layout):
    assert [layout.count(k) for k in (0, layout.bins + 1, layout.bins + 5)] == [0, 0, 0]


def test_numbers_of_maps_of_the_map_market():
    """The table of docs/measured: numbers of maps of 8 x 8 cells and of a line of 12."""
    assert [HalvingTree(64).count(k) for k in (1, 2, 3, 4, 6, 8)] == [1, 1, 2, 5, 42, 365]
    assert [Runs(12).count(k) for k in (1, 2, 3, 4, 6)] == [1, 11, 55, 165, 462]


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


@pytest.mark.parametrize("cell", [(-1, 0), (0, -1), (4, 0), (0, 4)])
def test_cells_beyond_the_grid_have_no_leaf(cell):
    with pytest.raises(ParameterError, match="4 x 4"):
        leaf_numbers(np.array([cell[0]]), np.array([cell[1]]), 2)


@pytest.mark.parametrize(
    ("name", "bins", "match"),
    [
        ("rings", 4, "layout must be one of runs, halving-tree, got 'rings'"),
        ("runs", 0, "bins must be at least 1"),
        ("halving-tree", 6, "power of two"),
        ("halving-tree", 0, "bins must be at least 1"),
    ],
)
def test_other_layouts_are_refused(name, bins, match):
    with pytest.raises(ParameterError, match=match):
        zone_layout(name, bins)


@pytest.mark.parametrize("zones", [(), (0,), (-1, 2), (6,), (2, 1), (1, 1), (1, 6)])
def test_numbers_of_zones_that_no_map_has_are_refused(zones):
    with pytest.raises(ParameterError, match="zones must be ascending numbers from 1 to 5"):
        check_maps(Runs(5), zones, 10)


def test_sizes_up_to_the_limit_are_taken():
    check_maps(Runs(5), (1, 5), MAX_TABLE // 15)
    with pytest.raises(ParameterError, match=r"prices must be at most 71,582,788 for 5 cells"):
        check_maps(Runs(5), (1, 5), MAX_TABLE // 15 + 1)
    check_maps(HalvingTree(2**12), range(1, 101), 2**17)
    with pytest.raises(ParameterError, match="to 100, the number"):
        check_maps(HalvingTree(2**12), range(1, 102), 10)
