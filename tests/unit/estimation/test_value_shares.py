"""Shares of values by place: those of their surroundings as far as the noise hides their own."""

import numpy as np
import pytest

from psd.estimation.least_squares import Estimates
from psd.estimation.value_shares import LEAST_RECORDS, share_weights
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import Hierarchy


def two_levels(families, size):
    """A root, its children, and as many children of each."""
    leaves = families * size
    parent = np.concatenate([[-1], np.zeros(families), 1 + np.arange(leaves) // size])
    level = np.repeat([0, 1, 2], [1, families, leaves])
    zero = np.zeros(len(parent), np.int64)
    return Hierarchy(
        parent=parent.astype(np.int64), level=level, count=zero, loss=zero, noise=CountNoise()
    )


def added_up(tree, leaves):
    """Values of all nodes, from those of the leaves."""
    values = np.zeros(len(tree))
    values[tree.is_leaf] = leaves
    for level in reversed(tree.levels[1:]):
        np.add.at(values, tree.parent[level], values[level])
    return values


def shares(tree, records, share, variance, seed, centre=None):
    """Estimates of known records whose weights have normal noise; true weights of all nodes."""
    rng = np.random.default_rng(seed)
    count, true = added_up(tree, records), added_up(tree, records * share)
    noises = [added_up(tree, rng.normal(0, np.sqrt(variance), len(records))) for _ in range(2)]
    variances = added_up(tree, np.full(len(records), 2 * variance))
    slope = np.full(len(tree), 1 / tree.children[0])
    given = Estimates(
        signed=count,
        count=count,
        upward=count,
        upward_variance=variances,
        slope=slope,
        variance=variances,
    )
    upper, lower, uneven = share_weights(
        tree,
        given,
        true + noises[0],
        count - true + noises[1],
        0.5,
        np.zeros((2, len(tree))) if centre is None else centre,
    )
    UNEVEN.append(uneven)
    return count, true, upper, lower


UNEVEN = []  # of the last trees, as `share_weights` returns it

TREE = two_levels(30, 6)
RNG = np.random.default_rng(53)
RECORDS = RNG.integers(0, 60, 180).astype(float)
CASES = {
    "alike": np.full(180, 0.3),
    "by place": np.clip(0.2 + 0.3 * np.repeat(RNG.random(30), 6), 0, 1),
    "two kinds": np.where(RNG.random(180) < 0.5, 0.1, 0.8),
    "at a bound": np.zeros(180),
    "at the other": np.ones(180),
}


# Largest predicted error beside the true one. Where cells of a family are equal, the noise leaves
# some spread possible.
LARGEST = {"alike": 3.5, "by place": 1.4, "two kinds": 1.2}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variance", [1e-6, 4.0, 1e6])
def test_weights_sum_to_the_records_and_to_their_parent_and_are_not_negative(name, variance):
    count, _, upper, lower = shares(TREE, RECORDS, CASES[name], variance, 1)
    for each in (upper, lower):
        assert (each.count >= 0).all()
        below = np.bincount(TREE.parent[1:], each.count[1:], len(TREE))
        inner = ~TREE.is_leaf
        assert below[inner] == pytest.approx(each.count[inner], rel=1e-9, abs=1e-9)
        assert (each.variance >= 0).all()
        assert each.slope[1:31].sum() == pytest.approx(1)
    assert upper.count + lower.count == pytest.approx(count, abs=1e-9)


def test_what_the_noise_cannot_hide_is_kept():
    _, true, upper, _ = shares(TREE, RECORDS, CASES["two kinds"], 1e-6, 2)
    assert upper.count == pytest.approx(true, abs=0.02)


def test_what_noise_alone_shows_is_not():
    count, _, upper, _ = shares(TREE, RECORDS, CASES["alike"], 25.0, 3)
    share = upper.count[1:] / np.maximum(count[1:], LEAST_RECORDS)
    assert share == pytest.approx(np.full(len(share), upper.count[0] / count[0]), abs=0.05)


def test_a_cell_without_records_has_the_share_of_its_family():
    records = RECORDS.copy()
    records[:3] = 0
    _, _, upper, lower = shares(TREE, records, CASES["by place"], 1.0, 4)
    first = np.flatnonzero(TREE.is_leaf)[0]
    of_cell, of_parent = (
        upper.count[node] / (upper.count[node] + lower.count[node])
        for node in (first, TREE.parent[first])
    )
    assert of_cell == pytest.approx(of_parent)
    assert upper.count[first] < 1e-15


@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("variance", [1.0, 16.0, 100.0])
def test_errors_are_below_those_of_the_weights_alone_and_are_predicted(name, variance):
    squares, predicted, plain = 0.0, 0.0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        share = CASES[name] if name != "by place" else 0.2 + 0.3 * np.repeat(rng.random(30), 6)
        count, true, upper, _ = shares(TREE, RECORDS, share, variance, 100 + seed)
        leaf = np.flatnonzero(TREE.is_leaf)
        squares += ((upper.count - true)[leaf] ** 2).mean()
        predicted += upper.variance[leaf].mean()
        p = true[leaf] / np.maximum(count[leaf], 1)
        plain += (((1 - p) ** 2 + p**2) * variance).mean()
    assert squares < 1.05 * plain
    assert 0.95 < (predicted / squares) ** 0.5 < LARGEST[name]


def hidden_errors(tree, share, records, variance, **known):
    """Mean squared errors of cells beside their family, if the noise hides their own shares."""
    found, family = [], tree.parent[tree.is_leaf]
    for seed in range(20):
        _, true, upper, _ = shares(tree, records, share, variance, seed, **known)
        error = (upper.count - true)[tree.is_leaf]
        mean = np.bincount(family, error) / np.maximum(np.bincount(family), 1)
        found.append(((error - mean[family]) ** 2).mean())
    return np.mean(found)


def test_a_trend_is_continued_inside_cells():
    """Of values that rise from west to east, with cells of one level side by side."""
    tree = two_levels(5, 36)
    along = np.concatenate([[2.5], np.arange(5) + 0.5, (np.arange(180) + 0.5) / 36])
    centre, case = np.stack([along, 0 * along]), (tree, 0.1 + 0.16 * along[6:], np.full(180, 300.0))
    assert hidden_errors(*case, 2e3, centre=centre) < 0.4 * hidden_errors(*case, 2e3)


def test_parts_of_leaves_differ_no_more_than_the_cells_above_do():
    uneven = []
    for width in (0.02, 0.5):
        share = 0.3 + width * (np.repeat(np.arange(30), 6) / 30 - 0.5)
        shares(TREE, np.full(180, 3000.0), share, 1e5, 5)
        uneven.append(UNEVEN[-1][TREE.is_leaf].mean())
    assert uneven[0] < 0.5 * uneven[1]
