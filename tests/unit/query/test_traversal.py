"""The traversal on a small tree, with shares that are stated cell by cell."""

import numpy as np
import pytest

from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.query.traversal import perturbation_variance, traverse, traverse_within, weighted_total
from psd.space.box_tree import Tree
from support.trees import dense_least_squares

# The root, its four quarters, and the quarters of the first of them; leaves are 2 to 8.
BOXES = [
    *([0, 0, 4, 4], [0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]),
    *([0, 0, 1, 1], [1, 0, 2, 1], [0, 1, 1, 2], [1, 1, 2, 2]),
]
TREE = Tree(
    boxes=np.array(BOXES),
    parent=np.array([-1, 0, 0, 0, 0, 1, 1, 1, 1]),
    level=np.array([0, 1, 1, 1, 1, 2, 2, 2, 2]),
    count=np.array([100, 40, 30, 20, 10, 4, 3, 2, 1]),
    loss=np.full(9, NANO),
)
VALUES = np.array([100.0, 40, 30, 20, 10, 16, 12, 8, 4])


def shares(*queries):
    """Covered shares of cells by node, 0 elsewhere; the second of a pair is that of the area."""

    def fraction(query, node):
        pairs = [queries[q].get(int(n), 0.0) for q, n in zip(query, node, strict=True)]
        both = [pair if isinstance(pair, tuple) else (pair, pair) for pair in pairs]
        points, area = np.array(both, float).reshape(-1, 2).T
        return points, area

    return traverse(TREE, len(queries), fraction)


def visited(covered):
    return [list(zip(s.query.tolist(), s.node.tolist(), strict=True)) for s in covered.levels]


def test_a_query_of_all_cells_or_of_none_opens_none():
    for query, total in (({0: 1.0}, 100), ({}, 0)):
        covered = shares(query)
        assert visited(covered) == [[(0, 0)]]
        assert weighted_total(covered, VALUES).tolist() == [total]


def test_cells_that_are_cut_are_opened_down_to_the_leaves():
    covered = shares({0: 0.5, 1: 0.5, 2: 1.0, 5: 1.0, 6: 0.25})
    assert visited(covered) == [
        [(0, 0)],
        [(0, 1), (0, 2), (0, 3), (0, 4)],
        [(0, 5), (0, 6), (0, 7), (0, 8)],
    ]
    assert [step.opened.tolist() for step in covered.levels] == [
        *([True], [True, False, False, False], [False] * 4)
    ]
    assert [step.parent.tolist() for step in covered.levels] == [[-1], [0] * 4, [0] * 4]
    assert weighted_total(covered, VALUES).tolist() == [30 + 16 + 0.25 * 12]


def test_several_queries_are_walked_within_a_number_of_pairs_and_a_single_one_always():
    def half(query, node):
        return np.full(len(query), 0.5), np.full(len(query), 0.5)

    assert traverse_within(TREE, 2, half, 2 * len(TREE) - 1) is None
    assert len(traverse_within(TREE, 2, half, 2 * len(TREE)).levels) == 3
    assert len(traverse_within(TREE, 1, half, 0).levels) == 3


def test_queries_do_not_mix():
    alone = [{0: 0.5, 1: 1.0}, {0: 1.0}, {}, {0: 0.5, 1: 0.5, 4: 0.5, 8: 1.0}]
    together = weighted_total(shares(*alone), VALUES)
    assert together.tolist() == [40, 100, 0, 5 + 4]
    assert together.tolist() == [float(weighted_total(shares(query), VALUES)[0]) for query in alone]


def test_the_area_decides_what_is_opened_and_the_points_what_is_counted():
    covered = shares({0: (0.0, 0.5), 2: (0.75, 0.5), 3: (0.0, 0.5), 4: (0.0, 0.0)})
    assert len(covered.levels) == 2
    assert weighted_total(covered, VALUES).tolist() == [0.75 * 30]


def test_no_queries():
    covered = shares()
    assert (covered.levels, weighted_total(covered, VALUES).tolist()) == ((), [])
    assert perturbation_variance(covered, infer_counts(TREE)).tolist() == []


@pytest.mark.parametrize(
    "query",
    [
        {0: 1.0},
        {},
        {0: 0.5, 2: 1.0},
        {0: 0.5, 2: 0.5, 3: 0.25},
        {0: 0.5, 1: 0.5, 5: 1.0, 6: 0.25, 4: 1.0},
    ],
)
def test_the_variance_is_that_of_the_dense_covariance(query):
    leaves = np.flatnonzero(TREE.is_leaf)
    weights = np.array([query.get(int(leaf), 0.0) for leaf in leaves])
    if query.get(0) == 1:
        weights[:] = 1
    _, covariance = dense_least_squares(TREE)
    variance = perturbation_variance(shares(query), infer_counts(TREE))
    assert variance[0] == pytest.approx(weights @ covariance @ weights, rel=1e-9, abs=1e-12)
