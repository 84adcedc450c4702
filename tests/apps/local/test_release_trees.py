"""Trees of local releases: counts stand on the levels of their groups."""

import numpy as np

from psd.apps.local.aggregation import grid_tree, region_tree
from psd.apps.local.campaign_design import regions_of_campaign
from support.local import GRID, campaign
from support.local_regions import region_campaign


def test_counts_stand_on_the_levels_of_their_groups():
    tree, at = grid_tree(campaign(), [list("0123"), GRID], [np.arange(4), np.arange(16) + 10])
    assert list(at) == [1, 2]
    assert tree.count.tolist() == [0, *range(4), *range(10, 26)]
    one = region_campaign()
    size = regions_of_campaign(one).size
    cells = [group.partition.cells for group in one.groups]
    tree, at = region_tree(one, cells, [np.array([7, 8]), np.arange(size)])
    assert tree.count[tree.named(0)].tolist() == [7, 8]
    assert tree.count[tree.named(1)].tolist() == list(range(size))
    named = np.concatenate([tree.named(0), tree.named(1)])
    assert set(np.flatnonzero(tree.loss)) == set(named.tolist())
    assert [int(tree.level[tree.named(tier)[0]]) for tier in (0, 1)] == at
