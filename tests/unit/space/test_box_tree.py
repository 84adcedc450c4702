"""The shape of a tree, whole or as its nodes come, and every kind of damage that is refused."""

import numpy as np
import pytest

from psd.errors import InternalError, ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import EPSILON
from psd.space.box_tree import (
    Tree,
    _rules,
    all_inside,
    any_empty,
    box_sides,
    check_next_nodes,
    check_tree,
    locate,
    quadrants,
)
from support.trees import random_tree

LATTICE = (4, 4)


def sound():
    """Root, four quarters, and the north-eastern quarter in two halves; arrays to damage."""
    quarters = [[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]]
    return {
        "boxes": np.array([[0, 0, 4, 4], *quarters, [2, 2, 3, 4], [3, 2, 4, 4]]),
        "parent": np.array([-1, 0, 0, 0, 0, 4, 4]),
        "level": np.array([0, 1, 1, 1, 1, 2, 2]),
        "count": np.array([0, 3, -1, 0, 5, 2, 2]),
        "loss": np.array([0, 1, 1, 1, 1, 1, 1]) * 10**8,
    }


def test_a_sound_tree_passes_and_knows_its_shape():
    tree = Tree(**sound())
    check_tree(tree, LATTICE)
    assert len(tree) == 7
    assert tree.children.tolist() == [4, 0, 0, 0, 2, 0, 0]
    assert tree.first_child[[0, 4]].tolist() == [1, 5]
    assert tree.is_leaf.tolist() == [False, True, True, True, False, True, True]
    assert tree.levels == (slice(0, 1), slice(1, 5), slice(5, 7))
    assert tree.area.tolist() == [16, 4, 4, 4, 4, 2, 2]
    assert tree.max_path_loss == 2 * 10**8
    tree = Tree(boxes=[[0, 0, 4, 4]], parent=[-1], level=[0], count=[3], loss=[5])
    check_tree(tree, LATTICE)
    assert tree.is_leaf.all()
    assert tree.levels == (slice(0, 1),)
    assert tree.max_path_loss == 5
    tree = Tree(**sound())
    assert list(_rules(tree, LATTICE)) == [(rule, True) for rule in RULES]
    floats = Tree(**{name: array.astype(float) for name, array in sound().items()})
    for tree in (Tree(**sound()), floats):
        arrays = [tree.boxes, tree.parent, tree.level, tree.count, tree.loss]
        kinds = ["int32", "int32", "int16", "int64", "int64"]
        assert [str(array.dtype) for array in arrays] == kinds
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    # A tree keeps no view of what it was given.
    arrays = sound() | {"count": np.array([0, 3, -1, 0, 5, 2, 2], np.int64)}
    tree = Tree(**arrays)
    arrays["count"][1] = 99
    assert tree.count[1] == 3


def test_a_tree_knows_the_noise_of_its_counts_and_its_sums_of_values():
    tree = Tree(**sound(), noise=CountNoise.gaussian(7), sums=np.ones((7, 2, 2)))
    assert (tree.sums.dtype, tree.sums.flags.writeable) == (np.int64, False)
    assert tree.noise_variance().tolist() == tree.noise.variance(tree.loss).tolist()
    rates = [tree.noise.rate(tree.loss, scale).tolist() for scale in (1, 3)]
    assert [tree.noise_rate().tolist(), tree.noise_rate(3).tolist()] == rates
    assert rates[0] != rates[1]


def set_at(name, place, value):
    """A change of one entry."""

    def change(arrays):
        arrays[name][place] = value

    return change


def emptied(arrays):
    for name in arrays:
        arrays[name] = arrays[name][:0]


def five_children(arrays):
    arrays["boxes"] = np.array([[0, 0, 5, 1], *([x, 0, x + 1, 1] for x in range(5)), [4, 0, 5, 1]])
    arrays["parent"] = np.array([-1, 0, 0, 0, 0, 0, 5])
    arrays["level"] = np.array([0] + [1] * 5 + [2])


def overlapping_with_the_right_area(arrays):
    # South-west twice, south-east never: every child lies inside, the areas sum up.
    arrays["boxes"][2] = arrays["boxes"][1]


def overlapping_far_apart_in_the_family(arrays):
    arrays["boxes"][4] = arrays["boxes"][1]
    arrays["boxes"][5:] = [[0, 0, 1, 2], [1, 0, 2, 2]]


def swapped_levels(arrays):
    for name in arrays:
        arrays[name] = arrays[name][[0, 1, 2, 3, 5, 4, 6]]


def mixed_families(arrays):
    # A child of the first quarter stands between the children of the last one.
    arrays["parent"][5:] = [4, 1]
    arrays["boxes"][5:] = [[2, 2, 4, 4], [0, 0, 2, 2]]


DAMAGE = {
    "no rows": (emptied, "no node"),
    "root too small": (set_at("boxes", (0, 2), 3), "whole lattice"),
    "root too large": (set_at("boxes", (0, 2), 5), "whole lattice"),
    "root reaches outside": (set_at("boxes", (0, 0), -1), "whole lattice"),
    "root is its own parent": (set_at("parent", 0, 0), "not the root"),
    "root on level 1": (set_at("level", 0, 1), "not the root"),
    "two roots": (set_at("parent", 1, -1), "parent is missing"),
    "parent beyond the end": (set_at("parent", 6, 7), "parent is missing"),
    "a node is its own parent": (set_at("parent", 6, 6), "after its child"),
    "cycle of two": (set_at("parent", slice(4, 6), [5, 4]), "after its child"),
    "parent below -1": (set_at("parent", 4, -2), "parent is missing"),
    "families are not together": (mixed_families, "after its child"),
    "a child before its parent": (swapped_levels, "after its child"),
    "level too small": (set_at("level", 6, 1), "level"),
    "level too large": (set_at("level", 6, 3), "level"),
    "box without width": (set_at("boxes", 5, [2, 2, 2, 4]), "empty"),
    "box turned round": (set_at("boxes", 5, [3, 2, 2, 4]), "empty"),
    "box without height": (set_at("boxes", 5, [2, 4, 3, 4]), "empty"),
    "five children": (five_children, "more than four"),
    "negative epsilon": (set_at("loss", 3, -1), "epsilon"),
    "epsilon above 1,000": (set_at("loss", 3, 10**12 + 1), "epsilon"),
    # Added to the root's epsilon it would wrap round below zero.
    "epsilon that overflows": (set_at("loss", 3, 2**63 - 1), "epsilon"),
    "a count without epsilon": (set_at("count", 0, 1), "unmeasured"),
    "children leave a gap": (set_at("boxes", 6, [3, 2, 4, 3]), "tile"),
    "children overlap": (set_at("boxes", 6, [2, 2, 4, 4]), "tile"),
    "overlap of equal area": (overlapping_with_the_right_area, "tile"),
    "first and last overlap": (overlapping_far_apart_in_the_family, "tile"),
    "child outside its parent": (set_at("boxes", 6, [3, 0, 4, 2]), "tile"),
    "child east of its parent": (set_at("boxes", 6, [4, 2, 5, 4]), "tile"),
    "child north of its parent": (set_at("boxes", 6, [3, 4, 4, 6]), "tile"),
}


def test_damage_is_refused(subtests):
    for name, (damage, rule) in DAMAGE.items():
        arrays = sound()
        damage(arrays)
        lattice = (5, 1) if damage is five_children else LATTICE
        with subtests.test(name), pytest.raises(ReleaseFormatError, match=rule):
            check_tree(Tree(**arrays), lattice)
    whole = "not a tree of cells: the root is not the whole lattice; the file is damaged or foreign"
    with pytest.raises(ReleaseFormatError, match=f"^{whole}$"):
        check_tree(Tree(**sound()), (4, 5))
    for lattice in ((4, 5), (2, 2)):
        with subtests.test(lattice=lattice), pytest.raises(ReleaseFormatError, match="whole latt"):
            check_tree(Tree(**sound()), lattice)
    check_tree(chain(256), LATTICE)
    with pytest.raises(ReleaseFormatError, match="more than 256 levels"):
        check_tree(chain(257), LATTICE)
    # An only child is its parent again.
    check_tree(chain(2), LATTICE)
    with pytest.raises(ReleaseFormatError, match="tile"):
        check_tree(chain(2, box=(0, 0, 4, 3)), LATTICE)
    number = 2**15 + 1
    assert np.arange(number).astype(np.int16)[-1] == -(2**15)
    with pytest.raises(ReleaseFormatError, match="level"):
        check_tree(chain(number), LATTICE)


def test_random_trees_are_sound_and_know_their_dearest_path():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4)
        check_tree(tree, (64, 64))
        spent = []
        for leaf in np.flatnonzero(tree.is_leaf):
            path, node = 0, leaf
            while node >= 0:
                path, node = path + int(tree.loss[node]), tree.parent[node]
            spent.append(path)
        assert tree.max_path_loss == max(spent)
        # Places are found in their leaves.
        places = rng.integers(0, 64, (500, 2)).astype(np.int32)
        boxes = tree.boxes[locate(tree, *places.T)]
        assert ((boxes[:, :2] <= places) & (places < boxes[:, 2:])).all()


RULES = [
    "there is no node",
    "the first node is not the root",
    "a parent is missing or comes after its child",
    "a level is not one below its parent's",
    "it has more than 256 levels",
    "an epsilon is negative or above 1,000",
    "an unmeasured node has a count",
    "the root is not the whole lattice",
    "a box is empty",
    "a node has more than four children",
    "the children of a node do not tile it",
]


def test_the_largest_epsilon_and_lattice_and_any_order_of_children_are_taken():
    arrays = sound()
    arrays["loss"][1] = 10**12
    for places in ([1, 2, 3], [5, 6]):
        for name in ("boxes", "count", "loss"):
            arrays[name][places] = arrays[name][places[::-1]]
    check_tree(Tree(**arrays), LATTICE)
    # The areas differ by 1 in 2^62, which no float would notice.
    side = 2**31 - 1
    whole = [[0, 0, side, side], [0, 0, side, side - 1], [0, side - 1, side, side]]
    tree = {"parent": [-1, 0, 0], "level": [0, 1, 1], "count": [0] * 3, "loss": [0] * 3}
    check_tree(Tree(boxes=whole, **tree), (side, side))
    gap = [*whole[:2], [0, side - 1, side - 1, side]]
    with pytest.raises(ReleaseFormatError, match="tile"):
        check_tree(Tree(boxes=gap, **tree), (side, side))
    assert [sides.dtype for sides in box_sides(np.array(whole, np.int32))] == [np.int64] * 2


def test_every_lattice_cell_is_found_in_its_leaf():
    tree = Tree(**sound())
    columns, rows = (place.ravel().astype(np.int32) for place in np.meshgrid(range(4), range(4)))
    found = locate(tree, columns, rows)
    assert found.dtype == np.int64
    for column, row, node in zip(columns, rows, found, strict=True):
        west, south, east, north = tree.boxes[node]
        assert tree.is_leaf[node]
        assert west <= column < east
        assert south <= row < north
    assert locate(tree, columns[:0], rows[:0]).tolist() == []
    # From a node on, which may be a leaf; the nodes that are given stay.
    start = np.array([0, 4, 4, 6])
    cell = np.array([2, 2, 3, 2], np.int32)
    assert locate(tree, cell, cell, start).tolist() == [5, 5, 6, 6]
    assert start.tolist() == [0, 4, 4, 6]
    arrays = sound()
    arrays["boxes"][6] = [3, 2, 4, 3]
    with pytest.raises(InternalError, match="no child"):
        locate(Tree(**arrays), np.array([3], np.int32), np.array([3], np.int32))


def test_boxes_are_divided_in_parts(monkeypatch):
    monkeypatch.setattr("psd.space.box_tree._AT_ONCE", 3)
    low = np.arange(20).reshape(10, 2)
    boxes, lines = np.concatenate([low, low + 9], axis=1), low + np.array([2, 5])
    parts = quadrants(boxes, lines)
    for (west, south, east, north), (x, y), found in zip(boxes, lines, parts, strict=True):
        lower = [[west, south, x, y], [x, south, east, y]]
        upper = [[west, y, x, north], [x, y, east, north]]
        assert found.tolist() == [*lower, *upper]


def chain(levels, box=(0, 0, 4, 4)):
    """A tree whose nodes have one child each."""
    boxes = np.tile([0, 0, 4, 4], (levels, 1))
    boxes[-1] = box
    none, places = np.zeros(levels), np.arange(levels)
    return Tree(boxes=boxes, parent=places - 1, level=places, count=none, loss=none)


def test_no_node_has_five_children_and_no_tree_is_deeper_than_256_levels():
    kids, chain, zeros = np.arange(5), np.arange(257), np.zeros(257, np.int64)
    strips = np.array([[0, 0, 5, 1], *([i, 0, i + 1, 1] for i in range(5))])
    wide = strips, np.array([-1, *(0 * kids)]), np.array([0, *(0 * kids + 1)]), zeros[:6]
    deep = np.tile([0, 0, 9, 9], (257, 1)), chain - 1, chain, zeros
    for parts, start, says in ((wide, 0, RULES[9]), (deep, 250, RULES[4])):
        check_next_nodes(*(values[:-1] for values in parts), 0, EPSILON)
        with pytest.raises(ReleaseFormatError, match=f" {says}; "):
            check_next_nodes(*parts, start, EPSILON)


def test_nodes_follow_those_that_were_checked_before(subtests):
    """Each rule is broken at one place, which is found from there and before, and not after it."""
    root, order, level = RULES[1], RULES[2], RULES[3]
    epsilon, empty, tile = RULES[5], RULES[8], RULES[10]
    names = ("boxes", "parent", "level", "loss")
    for name, node, value, rule in (
        ("loss", 6, 10**12, None),
        ("parent", 0, 0, root),
        ("level", 0, 1, root),
        *(("parent", node, value, order) for node, value in ((1, -1), (1, 1), (6, 6), (6, 3))),
        *(("level", node, value, level) for node, value in ((1, 0), (4, 2), (6, 3))),
        *(("loss", node, value, epsilon) for node in (0, 3, 6) for value in (-1, 10**12 + 1)),
        *(("boxes", node, [2, 2, 2, 4], empty) for node in (0, 4, 6)),
        *(("boxes", 6, box, tile) for box in ([3, 2, 5, 4], [1, 2, 4, 4], [3, 1, 4, 4])),
        ("boxes", 1, [0, 0, 2, 5], tile),
    ):
        arrays = sound()
        arrays[name][node] = value
        for start in range(node + 1 if rule else 7):
            with subtests.test(name=name, node=node, value=value, start=start):
                if rule:
                    with pytest.raises(ReleaseFormatError, match=f"cells: {rule}; "):
                        check_next_nodes(*map(arrays.get, names), start, EPSILON)
                else:
                    check_next_nodes(*map(arrays.get, names), start, EPSILON)
    arrays = sound()
    arrays["loss"][2], arrays["boxes"][2] = -1, [2, 0, 2, 2]
    check_next_nodes(*map(arrays.get, names), 3, EPSILON)


def test_boxes_without_an_area_and_boxes_beyond_others_are_found():
    box = np.array([[0, 0, 4, 2]])
    assert not any_empty(box)
    assert any_empty(np.array([[0, 0, 4, 2], [1, 1, 3, 1]]))
    assert all_inside(box, np.array([[0, 0, 4, 4]]))
    assert not all_inside(box, np.array([[0, 0, 4, 1]]))
