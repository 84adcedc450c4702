"""Estimates of small trees, worked out by hand, and the view without negative numbers."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from psd.errors import ReleaseFormatError
from psd.estimation.least_squares import infer_counts, prune_counts
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree
from support.noise import for_users, noise_variance
from support.trees import random_tree


def areas(tree):
    """Share of its parent's area that each node has."""
    return tree.area / tree.area[np.maximum(tree.parent, 0)]


WIDTH = 12


def strips(count, epsilon, *, below=0):
    """A root over equal strips; the first one over `below` strips of its own."""
    children = len(count) - 1 - below
    lines = np.arange(children + 1) * (WIDTH // children)
    boxes = [(0, 0, WIDTH, WIDTH)] + [(a, 0, b, WIDTH) for a, b in pairwise(lines)]
    inner = np.arange(below + 1) * (WIDTH // below) if below else []
    boxes += [(0, a, lines[1], b) for a, b in pairwise(inner)]
    return Tree(
        boxes=boxes,
        parent=[-1] + [0] * children + [1] * below,
        level=[0] + [1] * children + [2] * below,
        count=count,
        loss=np.array(epsilon) * NANO,
    )


def test_noise_variance_is_that_of_the_exact_distribution():
    for nano in (1_000_000, 100_000_000, NANO, 3 * NANO, 20 * NANO):
        for contributions in (1, 4):
            rate = nano / NANO / contributions
            q, x = math.exp(-rate), np.arange(1, int(80 / rate) + 2)
            exact = 2 * math.fsum((1 - q) / (1 + q) * x.astype(float) ** 2 * np.exp(-rate * x))
            found = noise_variance(np.array([nano]), contributions)[0]
            assert found == pytest.approx(exact, rel=1e-9), (nano, contributions)
    # That of the continuous distribution is 0.5.
    assert noise_variance(np.array([2 * NANO]), 1)[0] == pytest.approx(0.5 * 0.724, rel=1e-3)
    none, least, most = noise_variance(np.array([0, 1, 1000 * NANO]), 1)
    assert none == np.inf
    assert least == pytest.approx(2e18)
    assert 0 < most < 1e-100
    assert np.isfinite(noise_variance(np.array([1]), 10**9))


def test_a_measured_total_is_shared_out_in_proportion_to_the_variances():
    estimates = infer_counts(strips([20, 4, 6], [1, 1, 1]))
    # 20 and 4 + 6 disagree by 10; three equal variances take a third of it each.
    assert estimates.signed == pytest.approx([20 - 10 / 3, 4 + 10 / 3, 6 + 10 / 3])
    own = noise_variance(np.array([NANO]), 1)[0]
    assert estimates.variance == pytest.approx(np.array([2, 2, 2]) / 3 * own)
    assert estimates.slope == pytest.approx([1, 0.5, 0.5])


def test_an_unmeasured_count_follows_from_the_others():
    own = noise_variance(np.array([NANO]), 1)[0]
    for count, epsilon, signed, variance in (
        ([0, 4, 6], [0, 1, 1], [10, 4, 6], [2, 1, 1]),  # the sum
        ([20, 4, 0], [1, 1, 0], [20, 4, 16], [1, 1, 2]),  # the rest
    ):
        estimates = infer_counts(strips(count, epsilon))
        assert estimates.signed == pytest.approx(signed)
        assert estimates.variance == pytest.approx(np.array(variance) * own)


def test_contributions_scale_the_variances_and_not_the_estimates():
    tree = strips([20, 4, 6], [0.01, 0.01, 0.01])
    one, four = infer_counts(tree), infer_counts(for_users(tree, 4))
    assert four.signed == pytest.approx(one.signed)
    assert four.variance == pytest.approx(16 * one.variance, rel=1e-3)


def test_a_lone_root_is_its_count():
    tree = Tree(boxes=[[0, 0, 1, 1]], parent=[-1], level=[0], count=[-7], loss=[NANO])
    estimates = infer_counts(tree)
    assert estimates.signed.tolist() == [-7]
    assert estimates.count.tolist() == [0]
    assert estimates.variance == pytest.approx([1.8413], rel=1e-4)


def test_what_cannot_be_told_apart_is_refused(subtests):
    for name, epsilon, below, says in (
        ("two unmeasured siblings", [1, 0, 0, 1], 0, "cannot be told apart"),
        ("unmeasured total over an unmeasured leaf", [0, 0, 1, 1], 0, "total"),
        ("nothing measured", [0, 0, 0, 0], 0, "total"),
        ("two on a lower level", [1, 0, 1, 1, 0, 0], 2, "cannot be told apart"),
        ("a leaf and a lame subtree", [1, 0, 0, 1, 1, 0], 2, "cannot be told apart"),
    ):
        with subtests.test(name), pytest.raises(ReleaseFormatError, match=says):
            infer_counts(strips([0] * len(epsilon), epsilon, below=below))


def test_the_view_keeps_the_parent_and_has_no_negative_number(subtests):
    for name, count, view in (
        ("nothing negative", [10, 4, 6], [10, 4, 6]),
        # Signed 10, -2, 12: the child below zero gives up, the other keeps the parent's value.
        ("one negative child", [10, -2, 12], [10, 0, 10]),
        ("negative total", [-9, -4, -5], [0, 0, 0]),
        ("total of zero", [0, -4, 4], [0, 0, 0]),
        # Signed 1, -3, 2, 2: the two that are left share what is missing.
        ("two children left", [1, -3, 2, 2], [1, 0, 0.5, 0.5]),
    ):
        with subtests.test(name):
            estimates = infer_counts(strips(count, [1] * len(count)))
            assert estimates.count == pytest.approx(view, abs=1e-12)


def test_the_view_weighs_by_variance():
    # The signed estimates are the counts, they agree; the loose third child (epsilon 0.1)
    # gives nearly all of what the negative first one lacks.
    tree = strips([30, -6, 16, 20], [1, 1, 1, 0.1])
    estimates = infer_counts(tree)
    assert estimates.signed == pytest.approx([30, -6, 16, 20])
    tight, loose = noise_variance(np.array([NANO, NANO // 10]), 1)
    assert estimates.count == pytest.approx(
        [30, 0, 16 - 6 * tight / (tight + loose), 20 - 6 * loose / (tight + loose)]
    )


@pytest.mark.parametrize("seed", range(40))
def test_both_views_add_up_and_the_second_is_not_negative(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, height=4, unknown_leaf=0.3, top=[30, 1000][seed % 2])
    estimates = infer_counts(tree)
    inner = ~tree.is_leaf
    for values in (estimates.signed, estimates.count):
        below = np.zeros(len(tree))
        np.add.at(below, tree.parent[1:], values[1:])
        assert below[inner] == pytest.approx(values[inner], rel=1e-9, abs=1e-9)
    assert (estimates.count >= 0).all()
    assert estimates.count[0] == max(estimates.signed[0], 0)


def test_the_view_is_the_signed_one_where_that_has_no_negative_number():
    shape = random_tree(np.random.default_rng(3), height=4)
    count, epsilon = (np.where(shape.is_leaf, v, 0) for v in (np.arange(len(shape)), shape.loss))
    tree = replace(shape, count=count, loss=epsilon)
    estimates = infer_counts(tree)
    assert estimates.signed[tree.is_leaf] == pytest.approx(tree.count[tree.is_leaf])
    assert estimates.count == pytest.approx(estimates.signed, rel=1e-12)


def test_huge_counts_and_extreme_epsilons_stay_finite():
    tree = strips([2**62, 2**61, 5, -(2**62)], [0.000000001, 1000, 0.000000001, 1000])
    estimates = infer_counts(tree)
    for values in (estimates.signed, estimates.count, estimates.variance):
        assert np.isfinite(values).all()


# --- pruning ------------------------------------------------------------------------------

# A root of 20 over strips of 4, 6 and 10, the first of them over strips of 1 and 3.
FAMILY = strips([20, 4, 6, 10, 1, 3], [5] * 6, below=2)


def test_below_small_cells_counts_follow_the_area():
    estimates = infer_counts(FAMILY)
    assert estimates.signed == pytest.approx([20, 4, 6, 10, 1, 3])
    for most, counts in (
        (3, [20, 4, 6, 10, 1, 3]),  # no inner cell is that small
        (4, [20, 4, 6, 10, 2, 2]),
        (19, [20, 4, 6, 10, 2, 2]),  # leaves are never divided
        (20, [20, 20 / 3, 20 / 3, 20 / 3, 10 / 3, 10 / 3]),
    ):
        assert prune_counts(FAMILY, estimates, most, areas(FAMILY)) == pytest.approx(counts), most


def test_pruning_looks_at_signed_estimates():
    """A negative cell is small, and its parts share the nothing that is published of it."""
    tree = strips([5, -4, 9, 0, -7, 3], [5] * 6, below=2)
    assert infer_counts(tree).signed[1] < 0
    assert prune_counts(tree, infer_counts(tree), 0, areas(tree))[[1, 4, 5]].tolist() == [0, 0, 0]


def test_areas_of_different_sizes_get_different_shares():
    tree = Tree(
        boxes=[(0, 0, 8, 4), (0, 0, 2, 4), (2, 0, 8, 4)],
        parent=[-1, 0, 0],
        level=[0, 1, 1],
        count=[8, 8, 0],
        loss=[NANO] * 3,
    )
    assert prune_counts(tree, infer_counts(tree), 100, areas(tree)) == pytest.approx([8, 2, 6])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [0, 10, 100, 10**6])
def test_pruning_keeps_the_sums_and_what_is_large(seed, most):
    tree = random_tree(np.random.default_rng(seed), height=4, top=60)
    estimates = infer_counts(tree)
    counts, before = prune_counts(tree, estimates, most, areas(tree)), estimates.count.copy()
    below = np.zeros(len(tree))
    np.add.at(below, tree.parent[1:], counts[1:])
    assert below[~tree.is_leaf] == pytest.approx(counts[~tree.is_leaf], rel=1e-9, abs=1e-9)
    assert (counts >= 0).all()
    assert counts[0] == before[0]
    small = np.zeros(len(tree), bool)
    for node in range(1, len(tree)):
        up = tree.parent[node]
        small[node] = small[up] or estimates.signed[up] <= most
    assert (counts[~small] == before[~small]).all()
    assert np.array_equal(estimates.count, before)
    share = tree.area[1:] / tree.area[tree.parent[1:]]
    even = counts[tree.parent[1:]] * share
    assert counts[1:][small[1:]] == pytest.approx(even[small[1:]])
