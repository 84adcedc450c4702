"""The tree that holds the partitions of a campaign."""

import numpy as np
import pytest

from psd.apps.local.campaign_design import box_of, grid_cells, grow_tree
from psd.errors import ParameterError
from psd.space.box_tree import Tree, check_tree

COARSE = ("0", "1", "2", "3")
MIXED = ("0", "1", *(f"2{d}" for d in "0123"), *(f"3{a}{b}" for a in "0123" for b in "0123"))
PARTITIONS = [
    [grid_cells(0)],
    [grid_cells(2), grid_cells(3), grid_cells(4)],
    [COARSE, MIXED],
    [MIXED],
    [COARSE, COARSE, MIXED, MIXED],
]


def test_each_partition_is_a_level_of_a_tree():
    for partitions in PARTITIONS:
        grown = grow_tree(partitions)
        none = np.zeros(len(grown.keys), np.int64)
        shape = {"boxes": grown.boxes, "parent": grown.parent, "level": grown.level}
        tree = Tree(**shape, count=none, loss=none)
        check_tree(tree, (2**20, 2**20))
        assert len(grown.at) == len(partitions)
        for level, cells in zip(grown.at, partitions, strict=True):
            nodes = np.flatnonzero(grown.level == level)
            assert [grown.keys[node] for node in nodes] == list(cells)
            assert tree.boxes[nodes].tolist() == [list(box_of(cell)) for cell in cells]
        assert grown.at[-1] == grown.level[-1]
    grown = grow_tree([COARSE, MIXED])
    assert grown.at == (1, 3)
    nodes = [i for i, key in enumerate(grown.keys) if key == "0"]
    assert grown.level[nodes].tolist() == [1, 2, 3]
    with pytest.raises(ParameterError, match="at least as fine"):
        grow_tree([MIXED, COARSE])
