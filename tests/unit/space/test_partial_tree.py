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


@pytest.mark.parametrize("step", [1, 2, 7, 10**6])
def test_trees_are_taken_in_whatever_parts_they_come(step):
    for seed in range(5):
        checked(columns(tree(seed)), step)


@pytest.mark.parametrize("step", [1, 5, 10**6])
def test_the_first_node_that_breaks_a_rule_is_found(step, subtests):
    for name, row, value, says in (
        ("parent", 0, 0, "not the root"),
        ("level", 0, 1, "not the root"),
        ("parent", 6, -1, "parent is missing"),
        ("parent", 6, 6, "parent is missing"),
        ("parent", 6, 2**31 - 1, "parent is missing"),
        ("parent", 9, 0, "parent is missing"),  # of an earlier family
        ("level", 6, 7, "level is not"),
        ("level", 6, -(2**15), "level is not"),
        ("epsilon", 6, -1, "epsilon is negative"),
        ("epsilon", 6, 10**12 + 1, "epsilon is negative"),
        ("boxes", 6, [5, 5, 5, 9], "box is empty"),
        ("boxes", 6, [0, 0, 65, 64], "do not tile"),
    ):
        nodes = columns(tree())
        nodes[name][row] = value
        with subtests.test(name, row=row, value=value):
            checked({key: values[:row] for key, values in nodes.items()}, step)
            with pytest.raises(ReleaseFormatError, match=says):
                checked({key: values[: row + 1] for key, values in nodes.items()}, step)


def test_no_node_has_five_children_and_no_tree_is_deeper_than_256_levels():
    kids, chain, zeros = np.arange(5), np.arange(257), np.zeros(257, np.int64)
    strips = np.array([[0, 0, 5, 1], *([i, 0, i + 1, 1] for i in range(5))])
    wide = strips, np.array([-1, *(0 * kids)]), np.array([0, *(0 * kids + 1)]), zeros[:6]
    deep = np.tile([0, 0, 9, 9], (257, 1)), chain - 1, chain, zeros
    for parts, start, says in ((wide, 0, "four children"), (deep, 250, "256 levels")):
        checked(dict(zip(NAMES, (values[:-1] for values in parts), strict=True)), 9)
        with pytest.raises(ReleaseFormatError, match=says):
            check_next_nodes(*parts, start, EPSILON)
