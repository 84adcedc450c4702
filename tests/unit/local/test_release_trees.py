"""Trees of local releases: counts stand on the levels of their groups."""

import numpy as np

from psd.local.region_design import regions_of_campaign
from psd.local.release_trees import grid_tree, region_tree
from psd.space.region_tree import RegionTree, check_cells
from support.local import GRID, campaign
from support.local_regions import region_campaign


def test_counts_of_grids():
    one = campaign()
    coarse, fine = ["0", "1", "2", "3"], GRID
    support = [np.arange(4), np.arange(16) + 10]
    tree, at = grid_tree(one, [coarse, fine], support)
    assert list(at) == [1, 2]
    assert tree.count.tolist() == [0, *range(4), *range(10, 26)]
    assert (tree.epsilon[1:] == one.nano_epsilon).all()
    assert tree.epsilon[0] == 0


def test_counts_of_named_regions():
    one = region_campaign()
    regions = regions_of_campaign(one)
    cells = [group.partition.cells for group in one.groups]
    support = [np.array([7, 8]), np.arange(regions.size)]
    tree, at = region_tree(one, cells, support)
    assert isinstance(tree, RegionTree)
    check_cells(tree, (2**20, 2**20))
    assert tree.count[tree.named(0)].tolist() == [7, 8]
    assert tree.count[tree.named(1)].tolist() == list(range(regions.size))
    named = np.concatenate([tree.named(0), tree.named(1)])
    assert set(np.flatnonzero(tree.epsilon)) == set(named.tolist())
    assert [int(tree.level[tree.named(tier)[0]]) for tier in (0, 1)] == at
