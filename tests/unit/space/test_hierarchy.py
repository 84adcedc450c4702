"""Hierarchies without boxes: any number of children, through everything that needs no box."""

import dataclasses

import numpy as np
import pytest

from psd.errors import ReleaseFormatError
from psd.estimation.least_squares import infer_counts, prune_counts
from psd.estimation.posterior import posterior_counts
from psd.estimation.published_covariance import published_covariance
from psd.privacy.epsilon import NANO
from psd.space.hierarchy import Hierarchy, check_hierarchy
from support.trees import dense_least_squares

CHILDREN = 7


def sevens(rng, *, height=2, unmeasured_root=False, epsilon=NANO, top=300):
    """Every node above the leaves has seven children; noise that fits the epsilons is added."""
    sizes = [CHILDREN**depth for depth in range(height + 1)]
    level = np.repeat(np.arange(height + 1), sizes)
    parent = np.concatenate([[-1], np.repeat(np.arange(sum(sizes[:-1])), CHILDREN)])
    count = np.zeros(len(level), np.int64)
    count[-sizes[-1] :] = rng.integers(0, top, sizes[-1])
    for node in range(len(level) - 1, 0, -1):
        count[parent[node]] += count[node]
    spent = np.full(len(level), epsilon)
    noisy = count + np.rint(rng.laplace(0, NANO / epsilon, len(level))).astype(np.int64)
    if unmeasured_root:
        spent[0] = noisy[0] = 0
    return Hierarchy(parent=parent, level=level, count=noisy, epsilon=spent), count


def sums_of_children(hierarchy, values):
    below = np.zeros(len(hierarchy))
    np.add.at(below, hierarchy.parent[1:], values[1:])
    return below


def test_seven_children_are_a_hierarchy():
    hierarchy, _ = sevens(np.random.default_rng(0))
    check_hierarchy(hierarchy)
    assert hierarchy.children[~hierarchy.is_leaf].tolist() == [7] * 8
    assert hierarchy.first_child[:8].tolist() == [1, *range(8, 57, 7)]
    assert hierarchy.max_path_epsilon == 3 * NANO


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("unmeasured_root", [False, True])
def test_least_squares_of_seven_children_is_the_dense_one(seed, unmeasured_root):
    hierarchy, _ = sevens(np.random.default_rng(seed), unmeasured_root=unmeasured_root)
    estimates = infer_counts(hierarchy)
    leaves, covariance = dense_least_squares(hierarchy)
    assert estimates.signed[hierarchy.is_leaf] == pytest.approx(leaves)
    assert estimates.variance[hierarchy.is_leaf] == pytest.approx(np.diag(covariance))
    assert estimates.variance[0] == pytest.approx(covariance.sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [NANO // 100, NANO])
def test_views_of_seven_children_add_up_and_are_not_negative(seed, epsilon):
    hierarchy, _ = sevens(np.random.default_rng(seed), height=3, epsilon=epsilon, top=8)
    estimates = infer_counts(hierarchy)
    inner = ~hierarchy.is_leaf
    share = np.full(len(hierarchy), 1 / CHILDREN)
    for values in (
        estimates.count,
        posterior_counts(hierarchy, estimates),
        prune_counts(hierarchy, estimates, 10, share),
    ):
        assert (values >= 0).all()
        sums = sums_of_children(hierarchy, values)
        assert sums[inner] == pytest.approx(values[inner], rel=1e-9, abs=1e-9)


def test_posterior_medians_of_seven_children_know_empty_cells():
    """Where most cells are empty, the medians are closer to the truth than the projection."""
    errors = {"projection": 0.0, "posterior": 0.0}
    for seed in range(20):
        noise, _ = sevens(np.random.default_rng(seed), epsilon=NANO // 4, top=1)
        full = np.arange(len(noise)) >= len(noise) - 3
        truth = with_parents(noise, 50 * full)
        measured = dataclasses.replace(noise, count=noise.count + truth)
        estimates = infer_counts(measured)
        views = {
            "projection": estimates.count,
            "posterior": posterior_counts(measured, estimates),
        }
        for name, counts in views.items():
            errors[name] += np.abs(counts - truth)[noise.is_leaf].sum()
    assert errors["posterior"] < 0.9 * errors["projection"]


def with_parents(hierarchy, leaves):
    """Counts of all nodes from those of the leaves."""
    counts = np.where(hierarchy.is_leaf, leaves, 0)
    for node in range(len(counts) - 1, 0, -1):
        counts[hierarchy.parent[node]] += counts[node]
    return counts


def test_published_covariance_of_seven_children_keeps_slopes_that_sum_to_one():
    hierarchy, _ = sevens(np.random.default_rng(3), top=8)
    slopes = published_covariance(hierarchy, infer_counts(hierarchy)).slope
    inner = ~hierarchy.is_leaf
    assert sums_of_children(hierarchy, slopes)[inner] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param({"parent": [-1, 0, 2]}, "parent is missing", id="its own parent"),
        pytest.param({"level": [0, 1, 2]}, "level", id="a level is skipped"),
        pytest.param({"count": [1, 0, 0]}, "unmeasured", id="a count without epsilon"),
        pytest.param({"epsilon": [0, -1, 1]}, "epsilon", id="negative epsilon"),
    ],
)
def test_damage_of_a_hierarchy_is_refused(changes, rule):
    sound = {"parent": [-1, 0, 0], "level": [0, 1, 1], "count": [0, 2, 3], "epsilon": [0, 1, 1]}
    check_hierarchy(Hierarchy(**sound))
    with pytest.raises(ReleaseFormatError, match=rule):
        check_hierarchy(Hierarchy(**{**sound, **changes}))
