"""A growing tree over the plane and further axes, and the plane refined by the cells of a cube."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import check_tree
from psd.space.cube_tree import CubeTree, SliceCap, check_cube
from psd.space.growing_tree import Cells, GrowingTree, refine_plane

LATTICE = (8, 6)


@dataclass(frozen=True)
class Steps:
    """An axis of which only the name and the size are asked."""

    name: str
    size: int


TIME, DEPTH = Steps("time", 6), Steps("depth", 3)


def grown(*axes):
    growing = GrowingTree(LATTICE, 3, axes=axes)
    return growing, growing.root()


def test_children_of_a_cut_in_space_and_time_are_halves_of_both():
    growing, root = grown(TIME, DEPTH)
    assert root.spans.tolist() == [[0, 6, 0, 3]]
    assert growing.spans.dtype == np.int32
    cut = growing.cut(root, {"time": [2]}, x=[3])
    assert cut.lines.tolist() == [[3, 6, 2, 3]]
    # Bit 0 of the number of a part is its half of x, bit 2 that of time.
    child = np.full(16, -1)
    child[[0, 1, 4, 5]] = 1, 2, 3, 4
    assert cut.child.tolist() == [child.tolist()]
    cells = cut.cells
    west, east = [0, 0, 3, 6], [3, 0, 8, 6]
    assert cells.boxes.tolist() == [west, east, west, east]
    spans = [[0, 2, 0, 3]] * 2 + [[2, 6, 0, 3]] * 2
    assert cells.spans.tolist() == spans
    assert (cells.nodes.tolist(), cells.layer, cut.layer) == ([1, 2, 3, 4], 3, 3)
    assert growing.spans.tolist() == [[0, 6, 0, 3], *spans]
    types = growing.spans.dtype, root.spans.dtype, cells.spans.dtype, cells.boxes.dtype
    assert types == (np.int32, np.int64, np.int64, np.int64)
    # Two axes beside the plane, of some of the cells; a line on an edge divides nothing.
    cut = growing.cut(cells[1:], {"depth": [1, 2, 0], "time": [1, 2, 6]})
    assert cut.lines.tolist() == [[8, 6, 1, 1], [3, 6, 6, 2], [8, 6, 6, 3]]
    assert cut.children == 4 + 2 + 1
    quarters = [[0, 1, 0, 1], [1, 2, 0, 1], [0, 1, 1, 3], [1, 2, 1, 3]]
    halves = [[2, 6, 0, 2], [2, 6, 2, 3]]
    assert cut.cells.spans.tolist() == [*quarters, *halves, [2, 6, 0, 3]]
    assert cut.cells.boxes.tolist() == [east] * 4 + [west] * 2 + [east]
    check_cube(growing.tree(), LATTICE)
    some = cut[1:]
    assert some.cells.spans.tolist() == cut.cells.spans[4:].tolist()
    assert some.cells.nodes.tolist() == cut.cells.nodes[4:].tolist()
    assert (some.nodes.tolist(), some.layer) == (cells.nodes[2:].tolist(), 3)


def test_some_cells_of_a_cube_keep_their_spans():
    growing, root = grown(TIME)
    cells = growing.cut(root, {"time": [2]}, y=[5]).cells
    for which in (np.array([2, 0]), np.array([True, False, False, True]), slice(1, 3)):
        some = cells[which]
        assert some.nodes.tolist() == cells.nodes[which].tolist()
        assert some.boxes.tolist() == cells.boxes[which].tolist()
        assert some.spans.tolist() == cells.spans[which].tolist()
        assert some.layer == 3
    both = Cells.join([cells[2:], cells[:1]])
    assert both.nodes.tolist() == [3, 4, 1]
    assert both.spans.tolist() == [[2, 6], [2, 6], [0, 2]]
    assert both.layer == 3
    again = growing.cells(both.nodes)
    plane = GrowingTree(LATTICE, 3)
    cut = plane.cut(plane.root(), x=[2])
    assert (cut.layer, cut.cells.layer, cut[:1].layer, cut.cells.spans) == (3, 3, 3, None)
    assert (again.spans.tolist(), again.boxes.tolist()) == (
        both.spans.tolist(),
        both.boxes.tolist(),
    )


def test_cuts_that_no_cube_can_have_are_refused():
    growing, root = grown(TIME, DEPTH)
    for when in (-1, 7):
        with pytest.raises(ParameterError, match="outside its cell"):
            growing.cut(root, {"time": [when]})
    text = "a cut must divide at most two axes of a cell"
    with pytest.raises(ParameterError, match=f"^{text}$"):
        growing.cut(root, {"time": [1], "depth": [1]}, x=[1])
    for tree, name in ((growing, "months"), (GrowingTree(LATTICE), "time")):
        text = f"lines must be those of an axis of the layer, got {name}"
        with pytest.raises(ParameterError, match=f"^{re.escape(text)}$"):
            tree.cut(tree.root(), {name: [1]})
        assert len(tree.parent) == 1
    cells = growing.cut(root, {"time": [1]}, x=[1]).cells
    # One cell in space, the other in time: no cell is divided at three axes.
    cut = growing.cut(cells[:2], {"depth": [0, 1], "time": [0, 1]}, x=[1, 2], y=[2, 6])
    assert cut.children == 2 + 4


def test_a_finished_cube_is_in_level_order_with_its_spans():
    growing, root = grown(TIME)
    cells = growing.cut(root, {"time": [2]}).cells
    growing.cut(cells[1:], {"time": [5]}, x=[4])  # nodes 3 to 6
    growing.cut(cells[:1], y=[1])  # nodes 7 and 8
    nodes = np.arange(1, 9)
    sums = np.stack([[nodes, 10 * nodes], [100 * nodes, 1000 * nodes]], axis=2).swapaxes(0, 1)
    sums[3, 1, 0] = 2**60 + 1  # no float
    growing.measure(nodes, 10 * nodes, nodes, sums)
    noise, cap = CountNoise.gaussian(3), SliceCap(most=3, per_slice=1)
    tree = growing.tree(noise, cap)
    assert type(tree) is CubeTree
    assert (tree.noise, tree.cap, tree.axes) == (noise, cap, (TIME,))
    order = [0, 1, 2, 7, 8, 3, 4, 5, 6]
    assert tree.spans.tolist() == growing.spans[order].tolist()
    assert tree.boxes.tolist() == growing.boxes[order].tolist()
    assert tree.sums.tolist() == np.pad(sums, ((1, 0), (0, 0), (0, 0)))[order].tolist()
    assert growing.rank[order].tolist() == list(range(9))
    check_cube(tree, LATTICE)
    growing.cut(growing.cells(np.array([8])), x=[3])  # nodes 9 and 10, not measured
    assert growing.tree().sums[[9, 10]].tolist() == [[[0, 0], [0, 0]]] * 2
    growing.measure(np.array([10]), np.array([7]), np.array([1]), sums[:1])
    found = growing.tree()
    assert found.sums[[9, 10]].tolist() == [[[0, 0], [0, 0]], sums[0].tolist()]
    assert (found.noise, found.cap) == (CountNoise(), None)


def test_sums_of_nodes_that_stand_in_order_are_as_many_as_these():
    growing, root = grown(TIME)
    growing.cut(root, {"time": [2]})
    growing.measure(np.array([0]), np.array([5]), np.array([1]), np.array([[[3, 4]]]))
    assert growing.tree().sums.tolist() == [[[3, 4]], [[0, 0]], [[0, 0]]]


def plane_with_single_children():
    """Two nodes that are the same cell as the root, halves, and one that is the same as a half."""
    growing = GrowingTree((4, 4))
    cells = growing.root()
    for _ in range(2):
        cells = growing.cut(cells).cells
    halves = growing.cut(cells, x=[2]).cells  # nodes 3 and 4
    growing.cut(halves[1:])  # node 5
    growing.measure(np.arange(6), 7 * np.arange(6) + 1, np.arange(6) + 1)
    return growing.tree(CountNoise.gaussian(5))


def cube_of(*steps):
    """A cube of the same lattice: (number of the cell among those cut last, lines)."""
    growing = GrowingTree((4, 4), axes=(TIME,))
    cells = growing.root()
    for numbers, lines in steps:
        when = {"time": lines["time"]} if "time" in lines else None
        at = {axis: line for axis, line in lines.items() if axis != "time"}
        cells = growing.cut(cells[np.array(numbers)], when, **at).cells
    return growing.tree()


def check_refined(cube, plane):
    refined, of_plane, of_cube = refine_plane(cube, plane)
    check_tree(refined, (4, 4))
    # Nodes of the plane keep what was published of them, and the others have no count.
    for name in ("boxes", "count", "loss"):
        assert np.array_equal(getattr(refined, name)[of_plane], getattr(plane, name))
    others = np.setdiff1d(np.arange(len(refined)), of_plane)
    assert not refined.count[others].any()
    assert not refined.loss[others].any()
    assert refined.noise == plane.noise
    # Of nodes that are the same cell, the first.
    boxes = refined.boxes.tolist()
    assert of_cube.tolist() == [boxes.index(box) for box in cube.boxes.tolist()]
    return len(others)


def test_a_plane_is_refined_by_the_cells_of_a_cube():
    plane = plane_with_single_children()
    check_tree(plane, (4, 4))
    by_time, by_x = ([0], {"time": [2]}), ([0, 1], {"x": [2, 2]})
    leaves = [0, 1, 2, 3], {"y": [1, 3, 1, 3]}
    assert check_refined(cube_of(([0], {"time": [3]})), plane) == 0
    assert check_refined(cube_of(by_time, by_x), plane) == 0
    # Both halves are cut, and each as both of its spans are: two nodes are added to each.
    assert check_refined(cube_of(by_time, by_x, leaves), plane) == 4
    quarters = [0, 3], {"x": [1, 3], "y": [1, 3]}
    assert check_refined(cube_of(by_time, by_x, quarters), plane) == 8
    deeper = cube_of(by_time, by_x, leaves, ([1, 2, 5, 6], {"x": [1, 3, 1, 3]}))
    assert check_refined(deeper, plane) == 8
    later = cube_of(by_time, by_x, ([0, 3], {"time": [1, 4]}), ([1, 2], {"y": [2, 2]}))
    assert check_refined(later, plane) == 4
    # A plane that was not divided takes all cuts of the cube.
    whole = GrowingTree((4, 4)).tree()
    assert check_refined(deeper, whole) == 10
    assert check_refined(cube_of(), whole) == 0


@pytest.mark.parametrize(
    "steps",
    [
        [([0], {"x": [1]})],
        [([0], {"x": [2], "y": [2]})],
        [([0], {"time": [2]}), ([0, 1], {"x": [2, 2]}), ([1, 3], {"y": [1, 2]})],
    ],
    ids=["elsewhere", "quarters for halves", "two ways"],
)
def test_a_cube_that_is_cut_elsewhere_than_its_plane_is_refused(steps):
    text = "the cells of a cube must be cut where its plane is cut"
    with pytest.raises(ParameterError, match=f"^{text}$"):
        refine_plane(cube_of(*steps), plane_with_single_children())
