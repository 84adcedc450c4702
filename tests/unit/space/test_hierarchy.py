"""Hierarchies without boxes: any number of children, through everything that needs no box."""

import numpy as np
import pytest

from psd.errors import ReleaseFormatError
from psd.estimation.least_squares import infer_counts, prune_counts, published_covariance
from psd.estimation.posterior import posterior_counts
from psd.privacy.loss import NANO
from psd.space.box_tree import Hierarchy, refuse_broken, topology_rules
from support.tables import refused
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
    return Hierarchy(parent=parent, level=level, count=noisy, loss=spent), count


def sums_of_children(hierarchy, values):
    below = np.zeros(len(hierarchy))
    np.add.at(below, hierarchy.parent[1:], values[1:])
    return below


@pytest.mark.parametrize("seed", range(5))
def test_estimates_of_seven_children_are_dense_add_up_and_are_not_negative(seed):
    for unmeasured_root in (False, True):
        hierarchy, _ = sevens(np.random.default_rng(seed), unmeasured_root=unmeasured_root)
        estimates = infer_counts(hierarchy)
        leaves, covariance = dense_least_squares(hierarchy)
        assert estimates.signed[hierarchy.is_leaf] == pytest.approx(leaves)
        assert estimates.variance[hierarchy.is_leaf] == pytest.approx(np.diag(covariance))
        assert estimates.variance[0] == pytest.approx(covariance.sum())
    for epsilon in (NANO // 100, NANO):
        hierarchy, _ = sevens(np.random.default_rng(seed), height=3, epsilon=epsilon, top=8)
        estimates = infer_counts(hierarchy)
        inner, share = ~hierarchy.is_leaf, np.full(len(hierarchy), 1 / CHILDREN)
        pruned = prune_counts(hierarchy, estimates, 10, share)
        for values in (estimates.count, posterior_counts(hierarchy, estimates), pruned):
            assert (values >= 0).all()
            sums = sums_of_children(hierarchy, values)
            assert sums[inner] == pytest.approx(values[inner], rel=1e-9, abs=1e-9)
        slopes = published_covariance(hierarchy, estimates).slope
        assert sums_of_children(hierarchy, slopes)[inner] == pytest.approx(1)


def check(hierarchy):
    refuse_broken("hierarchy", topology_rules(hierarchy))


def test_damage_of_a_hierarchy_is_refused(subtests):
    sound = {"parent": [-1, 0, 0], "level": [0, 1, 1], "count": [0, 2, 3], "loss": [0, 1, 1]}
    check(Hierarchy(**sound))
    table = [
        ("parent is missing", {"parent": [-1, 0, 2]}),
        ("level", {"level": [0, 1, 2]}),
        ("unmeasured", {"count": [1, 0, 0]}),
        ("epsilon", {"loss": [0, -1, 1]}),
    ]
    damaged = [(rule, Hierarchy(**sound | changes)) for rule, changes in table]
    refused(subtests, ReleaseFormatError, damaged, check)
    hierarchy, _ = sevens(np.random.default_rng(0))
    check(hierarchy)
    assert hierarchy.children[~hierarchy.is_leaf].tolist() == [7] * 8
    assert hierarchy.first_child[:8].tolist() == [1, *range(8, 57, 7)]
    assert hierarchy.max_path_loss == 3 * NANO
