"""Inference against dense algebra, naive quadratic programmes, and another library."""

import itertools

import numpy as np
import opendp.prelude as dp
import pytest

from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree
from psd.space.grids import grid_tree
from support import trees
from support.noise import for_users
from support.trees import dense_least_squares, domain_of, leaf_matrix, random_tree

pytestmark = pytest.mark.deep

KINDS = trees.KINDS | {"every node measured": {"unmeasured": 0.0}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("contributions", [1, 3])
def test_estimates_and_variances_are_those_of_dense_least_squares(kind, contributions):
    compared = 0
    for seed in range(60):
        tree = random_tree(np.random.default_rng(seed), **KINDS[kind])
        compared += len(tree) > 5
        leaf, covariance = dense_least_squares(tree, contributions)
        under = leaf_matrix(tree)
        estimates = infer_counts(for_users(tree, contributions))
        size = np.abs(tree.count).max()
        assert estimates.signed == pytest.approx(under @ leaf, rel=1e-9, abs=1e-9 * size)
        assert estimates.variance == pytest.approx(
            np.einsum("ij,jk,ik->i", under, covariance, under), rel=1e-9
        )
    assert compared > 30


def test_uniform_budgets_give_the_consistent_tree_of_opendp():
    dp.enable_features("contrib")
    rng = np.random.default_rng(8)
    for height in (1, 2, 3):
        tree = grid_tree(domain_of((64, 64)), 2**height)
        noisy = rng.integers(-20, 500, len(tree))
        tree = Tree(
            boxes=tree.boxes,
            parent=tree.parent,
            level=tree.level,
            count=noisy,
            loss=np.full(len(tree), NANO),
        )
        assert (tree.children[~tree.is_leaf] == 4).all()
        # Level order with families together is the order of a heap of fan-out four.
        theirs = dp.t.make_consistent_b_ary_tree(4)(noisy.tolist())
        assert infer_counts(tree).signed[tree.is_leaf] == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def nearest_by_active_sets(values, spread, total):
    """Argmin of sum (x - v)^2 / s^2 over x >= 0 with a given sum: try which are zero."""
    best, least = None, np.inf
    for kept in itertools.product([False, True], repeat=len(values)):
        kept = np.array(kept)
        if not kept.any():
            continue
        x = np.zeros(len(values))
        x[kept] = values[kept] + spread[kept] * (total - values[kept].sum()) / spread[kept].sum()
        distance = ((x - values) ** 2 / spread).sum()
        if (x >= -1e-12).all() and distance < least:
            best, least = x, distance
    return best


def test_the_view_is_the_nearest_one_in_every_family():
    projected = 0
    for seed in range(150):
        tree = random_tree(np.random.default_rng(seed), top=[5, 60][seed % 2])
        estimates = infer_counts(tree)
        for node in np.flatnonzero(~tree.is_leaf):
            family = np.flatnonzero(tree.parent == node)
            signed, spread = estimates.signed[family], estimates.upward_variance[family]
            nearest = nearest_by_active_sets(signed, spread, estimates.count[node])
            assert estimates.count[family] == pytest.approx(nearest, rel=1e-9, abs=1e-9)
            projected += bool((signed < 0).any())
    assert projected > 100
