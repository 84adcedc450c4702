"""The first nodes of a tree are checked as they come; what is wrong is found at once."""

import numpy as np
import pytest

from psd.errors import ReleaseFormatError
from psd.privacy.currency import EPSILON
from psd.space.partial_tree import check_next_nodes
from support.trees import random_tree

NAMES = ("boxes", "parent", "level", "epsilon")


def columns(tree):
    return {name: getattr(tree, name).copy() for name in NAMES}


def checked(nodes, step):
    for start in range(0, len(nodes["parent"]), step):
        part = [nodes[name][: start + step] for name in NAMES]
        check_next_nodes(*part, start, EPSILON)


def tree(seed=3, height=4):
    return random_tree(np.random.default_rng(seed), lattice=(64, 64), height=height)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("step", [1, 2, 7, 10**6])
def test_trees_are_taken_in_whatever_parts_they_come(seed, step):
    checked(columns(tree(seed)), step)


@pytest.mark.parametrize("step", [1, 5, 10**6])
@pytest.mark.parametrize(
    ("name", "row", "value", "says"),
    [
        pytest.param("parent", 0, 0, "not the root", id="no root"),
        pytest.param("level", 0, 1, "not the root", id="root below the top"),
        pytest.param("parent", 6, -1, "parent is missing", id="two roots"),
        pytest.param("parent", 6, 6, "parent is missing", id="its own parent"),
        pytest.param("parent", 6, 2**31 - 1, "parent is missing", id="parent far away"),
        pytest.param("parent", 9, 0, "parent is missing", id="parent of an earlier family"),
        pytest.param("level", 6, 7, "level is not", id="level left out"),
        pytest.param("level", 6, -(2**15), "level is not", id="level far below"),
        pytest.param("epsilon", 6, -1, "epsilon is negative", id="negative epsilon"),
        pytest.param("epsilon", 6, 10**12 + 1, "epsilon is negative", id="large epsilon"),
        pytest.param("boxes", 6, [5, 5, 5, 9], "box is empty", id="no width"),
        pytest.param("boxes", 6, [0, 0, 65, 64], "do not tile", id="beyond its parent"),
    ],
)
def test_the_first_node_that_breaks_a_rule_is_found(name, row, value, says, step):
    nodes = columns(tree())
    nodes[name][row] = value
    checked({key: values[:row] for key, values in nodes.items()}, step)
    with pytest.raises(ReleaseFormatError, match=says):
        checked({key: values[: row + 1] for key, values in nodes.items()}, step)


def test_no_node_has_five_children():
    parent = np.array([-1, 0, 0, 0, 0, 0])
    boxes = np.array([[0, 0, 5, 1], *([i, 0, i + 1, 1] for i in range(5))])
    level, epsilon = np.array([0, 1, 1, 1, 1, 1]), np.zeros(6, np.int64)
    checked(dict(zip(NAMES, (boxes[:5], parent[:5], level[:5], epsilon[:5]), strict=True)), 9)
    with pytest.raises(ReleaseFormatError, match="four children"):
        check_next_nodes(boxes, parent, level, epsilon, 0, EPSILON)


def test_no_tree_is_deeper_than_256_levels():
    parent, level = np.arange(-1, 256), np.arange(257)
    boxes, epsilon = np.tile([0, 0, 9, 9], (257, 1)), np.zeros(257, np.int64)
    checked(
        dict(zip(NAMES, (boxes[:256], parent[:256], level[:256], epsilon[:256]), strict=True)), 9
    )
    with pytest.raises(ReleaseFormatError, match="256 levels"):
        check_next_nodes(boxes, parent, level, epsilon, 250, EPSILON)
