"""The tree that holds the partitions of a campaign."""

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.local.partitions import box_of, grid_cells, grow_tree
from psd.space.box_tree import Tree, check_tree

COARSE = ("0", "1", "2", "3")
MIXED = ("0", "1", *(f"2{d}" for d in "0123"), *(f"3{a}{b}" for a in "0123" for b in "0123"))


@pytest.mark.parametrize(
    "partitions",
    [
        [grid_cells(0)],
        [grid_cells(2), grid_cells(3), grid_cells(4)],
        [COARSE, MIXED],
        [MIXED],
        [COARSE, COARSE, MIXED, MIXED],
    ],
    ids=range(5),
)
def test_each_partition_is_a_level_of_a_tree(partitions):
    grown = grow_tree(partitions)
    nothing = np.zeros(len(grown.keys), np.int64)
    tree = Tree(
        boxes=grown.boxes, parent=grown.parent, level=grown.level, count=nothing, epsilon=nothing
    )
    check_tree(tree, (2**20, 2**20))
    assert len(grown.at) == len(partitions)
    for level, cells in zip(grown.at, partitions, strict=True):
        nodes = np.flatnonzero(grown.level == level)
        assert [grown.keys[node] for node in nodes] == list(cells)
        assert tree.boxes[nodes].tolist() == [list(box_of(cell)) for cell in cells]
    assert grown.at[-1] == grown.level[-1]


def test_a_cell_that_is_not_cut_stands_below_itself():
    grown = grow_tree([COARSE, MIXED])
    assert grown.at == (1, 3)
    nodes = [i for i, key in enumerate(grown.keys) if key == "0"]
    assert grown.level[nodes].tolist() == [1, 2, 3]


def test_a_coarser_partition_is_refused():
    with pytest.raises(ParameterError, match="at least as fine"):
        grow_tree([MIXED, COARSE])
