"""A growing tree: cuts that tile, regions, and the order of the finished tree."""

from unittest.mock import Mock

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import Tree, check_tree
from psd.space.growing_tree import Cells, GrowingTree
from psd.space.region_tree import region_frame
from support.small_regions import SHAPES

LATTICE = (8, 6)


def whole_boxes(cells):
    return [tuple(int(side) for side in box) for box in cells.boxes]


def test_children_tile_their_parent_and_a_line_outside_its_cell_is_refused(subtests):
    both = [(0, 0, 3, 2), (3, 0, 8, 2), (0, 2, 3, 6), (3, 2, 8, 6)]
    by_x, by_y = [(0, 0, 3, 6), (3, 0, 8, 6)], [(0, 0, 8, 2), (0, 2, 8, 6)]
    for x, y, children in (
        (3, 2, both),
        (3, None, by_x),
        (None, 2, by_y),
        (0, 2, by_y),  # on the west edge
        (8, 2, by_y),
        (3, 6, by_x),  # on the north edge
        (0, 6, [(0, 0, 8, 6)]),
        (None, None, [(0, 0, 8, 6)]),
    ):
        growing = GrowingTree(LATTICE)
        given = {"x": None if x is None else [x], "y": None if y is None else [y]}
        cut = growing.cut(growing.root(), **given)
        with subtests.test(x=x, y=y):
            assert whole_boxes(cut.cells) == children
            assert (cut.child >= 0).sum() == len(children)
            assert cut.child[cut.child >= 0].tolist() == cut.cells.nodes.tolist()
            check_tree(growing.tree(), LATTICE)
    growing = GrowingTree(LATTICE)
    for x, y in ((-1, 2), (9, 2), (3, -1), (3, 7)):
        with pytest.raises(ParameterError, match="outside its cell"):
            growing.cut(growing.root(), x=[x], y=[y])
        assert len(growing.parent) == 1
    assert len(growing.cut(growing.root(), x=[3], y=[3]).cells) == 4
    growing = GrowingTree(LATTICE)
    forged = Cells(layer=0, nodes=np.array([0]), boxes=np.array([[0, 0, 100, 100]]))
    with pytest.raises(ParameterError, match="outside its cell"):
        growing.cut(forged, x=[50])
    assert whole_boxes(growing.cut(forged, x=[4]).cells) == [(0, 0, 4, 6), (4, 0, 8, 6)]


def test_a_cell_is_cut_once():
    growing = GrowingTree(LATTICE)
    children = growing.cut(growing.root(), x=[4], y=[3]).cells
    with pytest.raises(ParameterError, match="cut twice"):
        growing.cut(growing.root(), x=[2])
    with pytest.raises(ParameterError, match="cut twice"):
        growing.cut(children[np.array([0, 1, 0])], x=[2, 6, 2])
    assert len(growing.parent) == 5


def test_the_finished_tree_is_in_level_order_whatever_was_cut_first():
    growing = GrowingTree((4, 4))
    growing.cut(growing.root(), x=[2])
    growing.cut(growing.cells(np.array([2])), y=[1])  # nodes 3, 4 under the eastern half
    growing.cut(growing.cells(np.array([1])), y=[3])  # nodes 5, 6 under the western half
    counts = np.array([10, 20, 23, 24, 15, 16])
    growing.measure(np.arange(1, 7), counts, np.arange(1, 7))
    tree = growing.tree()
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert tree.count.tolist() == [0, 10, 20, 15, 16, 23, 24]
    assert tree.loss.tolist() == [0, 1, 2, 5, 6, 3, 4]
    assert tree.boxes[5].tolist() == [2, 0, 4, 1]
    check_tree(tree, (4, 4))
    growing = GrowingTree(LATTICE)
    assert type(growing.tree()) is Tree
    assert growing.tree().noise == CountNoise()
    assert growing.tree(CountNoise.gaussian(3)).noise == CountNoise.gaussian(3)


def test_families_of_many_nodes_keep_their_order():
    """Cells are cut in any order; the tree is that of a queue, which goes from level to level."""
    growing, random = GrowingTree((2**10, 2**10)), np.random.default_rng(0)
    for _ in range(100):
        node = random.choice(np.flatnonzero(~growing.is_cut(np.arange(len(growing.parent)))))
        ((west, south, east, north),) = growing.boxes_of(np.array([node]))
        growing.cut(
            growing.cells(np.array([node])), x=[(west + east) // 2], y=[(south + north) // 2]
        )
    queue = [0]
    for node in queue:
        queue += np.flatnonzero(growing.parent == node).tolist()
    assert queue != sorted(queue)
    assert growing.tree().boxes.tolist() == growing.boxes[queue].tolist()


def test_a_tree_has_arrays_that_growing_replaces_and_never_changes():
    growing = GrowingTree((4, 4))
    cells = growing.cut(growing.root(), x=[2]).cells
    tree = growing.tree()
    boxes = tree.boxes.tolist()
    for name in ("boxes", "parent", "level"):
        assert np.shares_memory(getattr(tree, name), getattr(growing, name)), name
    growing.cut(cells, y=[1, 2])
    growing.measure(np.array([1]), np.array([5]), np.array([1]))
    assert (tree.boxes.tolist(), tree.count.tolist()) == (boxes, [0, 0, 0])
    assert len(growing.tree()) == 7


def test_a_cut_says_which_lines_and_which_child_in_each_quadrant():
    tree = GrowingTree((4, 4))
    cut = tree.cut(tree.root(), x=[1])
    assert cut.lines.tolist() == [[1, 4]]
    assert cut.child.tolist() == [[1, 2, -1, -1]]
    cut = tree.cut(cut.cells, x=[1, 2], y=[2, 0])
    assert cut.lines.tolist() == [[1, 2], [2, 4]]
    assert cut.child.tolist() == [[3, -1, 4, -1], [5, 6, -1, -1]]
    # What grows stays whole numbers.
    arrays = (tree.boxes, tree.parent, tree.level, tree.count, tree.loss)
    assert [array.dtype for array in arrays] == [np.int32, np.int32, np.int16, np.int64, np.int64]
    assert {cut.boxes.dtype, cut.lines.dtype, cut.cells.boxes.dtype} == {np.dtype("int32")}
    assert tree.root().boxes.dtype == np.int64  # of which methods make products
    # Codes of a curve need more bits.
    assert GrowingTree((4**18, 1), curve=18).cut(tree.root(), x=[2]).lines.dtype == np.int64
    assert GrowingTree((4**20, 1), curve=20).boxes.tolist() == [[0, 0, 4**20, 1]]
    cut = tree.is_cut(np.arange(5))
    assert (cut.tolist(), cut.dtype) == ([True, True, True, False, False], bool)
    assert (tree.layer, tree.curve) == (0, 0)
    growing = GrowingTree((5, 3))
    cells = growing.cut(growing.root(), x=[2], y=[1]).cells
    assert cells.middle(0).tolist() == [1, 3, 1, 3]
    assert cells.middle(1).tolist() == [0, 0, 2, 2]
    both = Cells.join([cells[2:], cells[np.array([True, False, False, False])]])
    assert both.nodes.tolist() == [3, 4, 1]
    assert len(both) == 3


def in_regions(name):
    """A tree that is cut into regions, its frame, and the regions, which note all questions."""
    regions, growing = Mock(wraps=SHAPES[name]), GrowingTree((4, 4))
    frame = region_frame(SHAPES[name], (4, 4))
    growing.cut_regions(regions, frame)
    return growing, frame, regions


def boxes_asked(question):
    """Boxes of all questions of one kind, in order."""
    return [box for call in question.call_args_list for box in call.args[1].tolist()]


def test_the_share_inside_is_the_clipped_area_by_that_of_the_box():
    growing, frame, _ = in_regions("flat")
    assert growing.share_inside(frame.lowest).tolist() == [3.5 / 4, 3.5 / 6, 3.5 / 4, 4.5 / 6]
    # A node of two regions has none.
    growing, frame, _ = in_regions("deep")
    node = frame.named(1)[:1]
    assert frame.stop[node] - frame.first[node] == 2
    with pytest.raises(ParameterError, match="must be lowest regions, or cells in them"):
        growing.share_inside(node)
    growing, frame, _ = in_regions("deep")
    upper = len(frame) - 5
    assert growing.is_cut(np.arange(len(frame))).tolist() == [True] * upper + [False] * 5
    with pytest.raises(ParameterError, match="cut twice"):
        growing.cut(growing.cells(frame.named(1)[:1]))


def test_parts_of_a_cell_inside_its_region_are_inside_without_a_question():
    growing, frame, regions = in_regions("flat")
    quarters = growing.cut(growing.cells(frame.lowest[3:]), x=[2], y=[3]).cells
    assert growing.share_inside(quarters.nodes).tolist() == [0, 1, 0.5, 1]
    halves = growing.cut(quarters[np.array([1, 3])], x=[3, 3]).cells
    assert growing.share_inside(halves.nodes).tolist() == [1, 1, 1, 1]
    assert boxes_asked(regions.clipped_area) == quarters.boxes.tolist()
    # Regions are asked only about cells without an area inside.
    nodes = np.r_[0, quarters.nodes]
    assert growing.may_have_records(nodes).tolist() == [True, False, True, True, True]
    assert boxes_asked(regions.meets) == [[1, 2, 2, 3]]
