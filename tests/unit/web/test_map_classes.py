"""Classes of a map page: those of other maps, the same for all slices."""

import numpy as np

from psd.export._styles import class_breaks
from psd.testing.releases import release_from_counts
from psd.web.map_classes import cell_classes, region_classes, shown_nodes
from psd.web.map_regions import RegionGroup

FIRST = release_from_counts(np.arange(64).reshape(8, 8))
SECOND = release_from_counts(np.arange(64).reshape(8, 8) * 100)


def test_nodes_of_a_level_tile_the_area():
    for level in range(int(FIRST.tree.level.max()) + 1):
        assert FIRST.tree.area[shown_nodes(FIRST.tree, level)].sum() == 64


def test_breaks_are_those_of_other_maps_and_slices_share_them():
    deepest = int(FIRST.tree.level.max())
    table = FIRST.to_geopandas()
    expected = class_breaks(table["density"].to_numpy(), np.full(len(table), 1e-6))
    assert cell_classes([FIRST], deepest)[-1]["density"] == expected
    both, one = cell_classes([FIRST, SECOND], deepest), cell_classes([SECOND], deepest)
    assert both == cell_classes([SECOND, FIRST], deepest) != one


def test_regions_have_breaks_of_their_own_areas():
    group = RegionGroup(
        name="g", ids=["a", "b", "c"], names=["a", "b", "c"], shapes=np.array([None] * 3),
        areas=np.array([1.0, 2.0, 4.0]), nodes=[1, 2, 3], overlaps=[],
    )  # fmt: skip
    breaks = region_classes(group, [np.array([10.0, 200.0, 4000.0])])
    assert breaks["count"] == class_breaks(np.array([10.0, 200.0, 4000.0]), group.areas)
    assert breaks["density"] == class_breaks(np.array([10.0, 100.0, 1000.0]), group.areas)
