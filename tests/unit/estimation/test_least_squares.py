"""Estimates of small trees, worked out by hand, and the view without negative numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest

from psd.errors import ReleaseFormatError
from psd.estimation.least_squares import infer_counts, prune_counts
from psd.privacy.epsilon import NANO
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
        epsilon=np.array(epsilon) * NANO,
    )


@pytest.mark.parametrize("contributions", [1, 4])
@pytest.mark.parametrize("nano", [1_000_000, 100_000_000, NANO, 3 * NANO, 20 * NANO])
def test_noise_variance_is_that_of_the_exact_distribution(nano, contributions):
    rate = nano / NANO / contributions
    q = math.exp(-rate)
    x = np.arange(1, int(80 / rate) + 2)
    variance = 2 * math.fsum((1 - q) / (1 + q) * x.astype(float) ** 2 * np.exp(-rate * x))
    assert noise_variance(np.array([nano]), contributions)[0] == pytest.approx(variance, rel=1e-9)


def test_noise_variance_is_not_that_of_the_continuous_distribution():
    assert noise_variance(np.array([2 * NANO]), 1)[0] == pytest.approx(0.5 * 0.724, rel=1e-3)


def test_noise_variance_at_its_ends():
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


def test_an_unmeasured_total_is_the_sum():
    estimates = infer_counts(strips([0, 4, 6], [0, 1, 1]))
    assert estimates.signed == pytest.approx([10, 4, 6])
    own = noise_variance(np.array([NANO]), 1)[0]
    assert estimates.variance == pytest.approx(np.array([2, 1, 1]) * own)


def test_an_unmeasured_child_is_the_rest():
    estimates = infer_counts(strips([20, 4, 0], [1, 1, 0]))
    assert estimates.signed == pytest.approx([20, 4, 16])
    own = noise_variance(np.array([NANO]), 1)[0]
    assert estimates.variance == pytest.approx(np.array([1, 1, 2]) * own)


def test_contributions_scale_the_variances_and_not_the_estimates():
    tree = strips([20, 4, 6], [0.01, 0.01, 0.01])
    one, four = infer_counts(tree), infer_counts(for_users(tree, 4))
    assert four.signed == pytest.approx(one.signed)
    assert four.variance == pytest.approx(16 * one.variance, rel=1e-3)


def test_a_lone_root_is_its_count():
    tree = Tree(boxes=[[0, 0, 1, 1]], parent=[-1], level=[0], count=[-7], epsilon=[NANO])
    estimates = infer_counts(tree)
    assert estimates.signed.tolist() == [-7]
    assert estimates.count.tolist() == [0]
    assert estimates.variance == pytest.approx([1.8413], rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "below", "says"),
    [
        pytest.param([1, 0, 0, 1], 0, "cannot be told apart", id="two unmeasured siblings"),
        pytest.param([0, 0, 1, 1], 0, "total", id="unmeasured total over an unmeasured leaf"),
        pytest.param([0, 0, 0, 0], 0, "total", id="nothing measured"),
        pytest.param([1, 0, 1, 1, 0, 0], 2, "cannot be told apart", id="two on a lower level"),
        pytest.param([1, 0, 0, 1, 1, 0], 2, "cannot be told apart", id="a leaf and a lame subtree"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(epsilon, below, says):
    with pytest.raises(ReleaseFormatError, match=says):
        infer_counts(strips([0] * len(epsilon), epsilon, below=below))


@pytest.mark.parametrize(
    ("count", "view"),
    [
        pytest.param([10, 4, 6], [10, 4, 6], id="nothing negative"),
        # Signed 10, -2, 12: the child below zero gives up, the other keeps the parent's value.
        pytest.param([10, -2, 12], [10, 0, 10], id="one negative child"),
        pytest.param([-9, -4, -5], [0, 0, 0], id="negative total"),
        pytest.param([0, -4, 4], [0, 0, 0], id="total of zero"),
        # Signed 1, -3, 2, 2: the two that are left share what is missing.
        pytest.param([1, -3, 2, 2], [1, 0, 0.5, 0.5], id="two children left"),
    ],
)
def test_the_view_keeps_the_parent_and_has_no_negative_number(count, view):
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
    tree = Tree(
        boxes=shape.boxes,
        parent=shape.parent,
        level=shape.level,
        count=np.where(shape.is_leaf, np.arange(len(shape)), 0),
        epsilon=np.where(shape.is_leaf, shape.epsilon, 0),
    )
    estimates = infer_counts(tree)
    assert estimates.signed[tree.is_leaf] == pytest.approx(tree.count[tree.is_leaf])
    assert estimates.count == pytest.approx(estimates.signed, rel=1e-12)


def test_huge_counts_and_extreme_epsilons_stay_finite():
    tree = strips([2**62, 2**61, 5, -(2**62)], [0.000000001, 1000, 0.000000001, 1000])
    for values in (
        infer_counts(tree).signed,
        infer_counts(tree).count,
        infer_counts(tree).variance,
    ):
        assert np.isfinite(values).all()


# --- pruning ------------------------------------------------------------------------------

# A root of 20 over strips of 4, 6 and 10, the first of them over strips of 1 and 3.
FAMILY = strips([20, 4, 6, 10, 1, 3], [5] * 6, below=2)


@pytest.mark.parametrize(
    ("most", "counts"),
    [
        pytest.param(3, [20, 4, 6, 10, 1, 3], id="no inner cell is that small"),
        pytest.param(4, [20, 4, 6, 10, 2, 2], id="at most so many counts"),
        pytest.param(19, [20, 4, 6, 10, 2, 2], id="leaves are never divided"),
        pytest.param(20, [20, 20 / 3, 20 / 3, 20 / 3, 10 / 3, 10 / 3], id="the root is small"),
    ],
)
def test_below_small_cells_counts_follow_the_area(most, counts):
    assert infer_counts(FAMILY).signed == pytest.approx([20, 4, 6, 10, 1, 3])
    assert prune_counts(FAMILY, infer_counts(FAMILY), most, areas(FAMILY)) == pytest.approx(counts)


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
        epsilon=[NANO] * 3,
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
