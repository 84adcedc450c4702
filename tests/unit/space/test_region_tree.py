"""Frames and trees of regions, against a walk over the families by hand."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from psd.errors import ParameterError, ReleaseFormatError
from psd.space.growing_tree import GrowingTree
from psd.space.region_tree import check_cells, region_frame
from psd.testing.data import LatticeRegions
from support.small_regions import SHAPES, drawn
from support.tables import refused

LATTICE = (4, 4)

EACH = pytest.mark.parametrize("regions", SHAPES.values(), ids=SHAPES)


def grown(regions):
    """A tree whose regions are quartered, those at even numbers twice."""
    growing = GrowingTree(regions.area.shape[:0:-1])
    frame = region_frame(regions, regions.area.shape[:0:-1])
    growing.cut_regions(regions, frame)
    cells = growing.cells(frame.lowest[::-1])
    cells = growing.cut(cells, x=cells.middle(0), y=cells.middle(1)).cells
    cells = cells[growing.spans[cells.nodes, 0] % 2 == 0]
    growing.cut(cells, x=cells.middle(0), y=cells.middle(1))
    return growing.tree()


def strips(counts, columns=1):
    """Regions of one lattice column each, in two levels with these numbers of parts."""
    number = sum(counts)
    area = np.zeros((number, columns, number))
    area[np.arange(number), :, np.arange(number)] = 1
    parents = ((0,) * len(counts), np.repeat(np.arange(len(counts)), counts))
    return LatticeRegions(area=area, parents=parents)


@EACH
def test_every_region_has_a_node_around_its_parts(regions):
    frame = region_frame(regions, LATTICE)
    for tier, level in enumerate(regions.levels):
        nodes = frame.named(tier)
        assert len(nodes) == len(level.ids)
        assert len(np.unique(frame.level[nodes])) == 1
    for node in range(len(frame)):
        parts = regions.boxes[frame.first[node] : frame.stop[node]]
        around = [*parts[:, :2].min(axis=0), *parts[:, 2:].max(axis=0)]
        assert frame.boxes[node].tolist() == (around if node else [0, 0, *LATTICE])
    np.testing.assert_array_equal(frame.lowest, frame.named(len(regions.levels) - 1))
    assert (frame.lowest == np.arange(len(frame) - regions.size, len(frame))).all()
    tree = grown(regions)
    check_cells(tree, LATTICE)
    assert tree.children.max() <= 4
    for node in range(len(tree)):
        if tree.region[node] >= 0:
            x0, y0, x1, y1 = tree.boxes[node]
            part = regions.area[tree.region[node], y0:y1, x0:x1]
            assert tree.clipped_area[node] == pytest.approx(part.sum())
            outside = tree.is_leaf[node] and part.sum() == 0
            assert tree.outside[node] == outside
        else:
            below = np.flatnonzero(tree.parent == node)
            assert tree.clipped_area[node] == pytest.approx(tree.clipped_area[below].sum())
    assert tree.clipped_area[0] == pytest.approx(regions.area.sum())


@pytest.mark.parametrize("counts", [(1,), (4,), (5,), (1, 17, 3), (16, 4), (64,), (65, 2)])
def test_families_have_at_most_four_children_and_even_parts(counts):
    regions = strips(counts)
    frame = region_frame(regions, (sum(counts), 1))
    assert np.bincount(frame.parent[1:]).max() <= 4
    upper, lower = frame.named(0), frame.named(1)
    owner = lower
    while (frame.level[owner] > frame.level[upper[0]]).any():
        owner = frame.parent[owner]
    np.testing.assert_array_equal(np.searchsorted(upper, owner), regions.levels[1].parent)
    sizes = frame.stop - frame.first
    for parent in range(len(frame)):
        parts = sizes[1:][frame.parent[1:] == parent]
        assert len(parts) == 0 or parent not in lower
        if len(parts) and frame.level[parent] >= frame.level[upper[0]]:
            assert parts.max() - parts.min() <= 1


def test_other_trees_and_hierarchies_are_refused(subtests):
    tree = grown(SHAPES["flat"])
    last = len(tree) - 1
    table = [
        ("upper nodes", {"boxes": moved(tree, 1)}, {"regions": SHAPES["deep"]}),
        ("tile", {"boxes": moved(tree, last)}),
        ("whole lattice", {"boxes": moved(tree, 0)}),
        ("no node", {"regions": strips((40,), 4)}),
        ("epsilon", {"loss": np.full(last + 1, -1)}),
    ]
    made = partial(replace, tree)
    refused(subtests, ReleaseFormatError, table, lambda own: check_cells(made(**own), LATTICE))
    tree = grown(SHAPES["deep"])
    parent = tree.parent.copy()
    first = len(tree.frame)
    parent[first:] = np.sort(np.r_[len(tree.frame) - 6, parent[first + 1 :]])
    with pytest.raises(ReleaseFormatError):
        check_cells(replace(tree, parent=parent), LATTICE)
    table = [
        ("never decrease", ((0, 0, 1, 1),), ((0, 0), (1, 0, 0, 1))),
        ("have a part", ((0, 0), (0, 0, 0, 0))),
        ("as many", ((0, 0, 0),)),
    ]
    made = partial(drawn, ("a b", "c d"))
    refused(subtests, ParameterError, table, lambda own: region_frame(made(own), (2, 2)))


def moved(tree, node):
    """Boxes of a tree, the one of a node narrower by a line."""
    boxes = tree.boxes.copy()
    boxes[node, 0] += 1
    boxes[node, 2] = max(boxes[node, 2], boxes[node, 0] + 1)
    return boxes


@pytest.mark.parametrize("line", [[2], None], ids=["two parts", "one part"])
def test_a_tree_is_cut_into_regions_before_anything_else(line):
    regions, growing = SHAPES["flat"], GrowingTree(LATTICE)
    growing.cut(growing.root(), x=line)
    with pytest.raises(ParameterError, match="only the root"):
        growing.cut_regions(regions, region_frame(regions, LATTICE))
