"""Counts that decided how finely their cells are divided are pooled without bias."""

import numpy as np
import pytest

from psd.estimation.constants import POOLING_PEERS
from psd.estimation.least_squares import infer_counts, settled_variance
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree

GROUP = 2 * POOLING_PEERS + 1


def pooled(count, below, variance, below_variance):
    """Mean of counts and sums by inverse variances."""
    return below + below_variance / (below_variance + variance) * (count - below)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_mean_is_not_biased_by_the_count_that_chose_the_variance(law):
    random = np.random.default_rng(3)
    true = random.uniform(40, 200, 200_000)
    draw = random.normal if law == "normal" else random.laplace
    count = true + draw(0, 7 / (1 if law == "normal" else np.sqrt(2)), len(true))
    below_variance = 50 * 4.0 ** np.rint(np.log2(np.maximum(count, 1) / 40) / 2)
    below = true + random.normal(size=len(true)) * np.sqrt(below_variance)
    variance = np.full(len(true), 49.0)
    settled = settled_variance(variance, below_variance, count, below)
    before = pooled(count, below, variance, below_variance) - true
    after = pooled(count, below, variance, settled) - true
    error = after.std() / np.sqrt(len(true))
    assert before.mean() > 5 * error
    assert abs(after.mean()) < 0.2 * before.mean() + 3 * error
    assert after.std() < 1.02 * before.std()


def test_equal_variances_stay():
    random = np.random.default_rng(1)
    equal = np.full(100, 3.0)
    count, below = random.normal(size=(2, 100))
    assert np.array_equal(settled_variance(equal, equal * 2, count, below), equal * 2)


@pytest.mark.parametrize(("size", "changes"), [(GROUP, False), (2 * GROUP, True)])
def test_small_groups_stay(size, changes):
    count = np.arange(float(size))
    below_variance = 1 + count
    settled = settled_variance(np.full(size, 5.0), below_variance, count, np.zeros(size))
    assert (settled != below_variance).any() == changes
    # The sums are all lower than the counts, so that the variances become smaller.
    assert (settled <= below_variance).all()


def test_groups_are_cells_of_one_epsilon():
    count, below_variance = np.tile(np.arange(40.0), 2), np.tile(1 + np.arange(40.0), 2)
    variance = np.repeat([2.0, 9.0], 40)
    settled = settled_variance(variance, below_variance, count, np.zeros(80))
    for own in (2.0, 9.0):
        group = variance == own
        alone = settled_variance(variance[group], below_variance[group], count[group], np.zeros(40))
        assert np.array_equal(settled[group], alone)


def test_cells_that_have_one_measurement_stay():
    size = 60
    variance = np.full(size, 4.0)
    variance[:5] = np.inf
    below_variance = 1 + np.arange(size, dtype=float)
    below_variance[5:8], below_variance[8:10] = np.inf, 0.0
    settled = settled_variance(variance, below_variance, np.arange(size, dtype=float), np.zeros(60))
    assert np.array_equal(settled[:10], below_variance[:10])
    assert (settled[10:] != below_variance[10:]).any()


# --- trees --------------------------------------------------------------------------------

STRIPS, WIDTH, EPSILON = 200, 840, NANO // 10


def divided(random):
    """Tree of strips, each divided by its noisy count in one to eight parts; and the true total."""
    part = random.integers(3, 20, STRIPS)
    first = part * WIDTH // 105 + noise(random, STRIPS)
    parts = np.clip(first // 20, 1, 8)
    owner = np.repeat(np.arange(STRIPS), parts)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    size = WIDTH // parts[owner]
    start = np.arange(STRIPS) * WIDTH
    low = start[owner] + nth * size
    boxes = [
        [[0, 0, STRIPS * WIDTH, 1]],
        np.stack([start, 0 * start, start + WIDTH, 0 * start + 1], axis=1),
        np.stack([low, 0 * low, low + size, 0 * low + 1], axis=1),
    ]
    leaves = np.rint(part[owner] * size / 105).astype(int) + noise(random, len(owner))
    sizes = [1, STRIPS, len(owner)]
    tree = Tree(
        boxes=np.concatenate(boxes),
        parent=np.concatenate([[-1], np.zeros(STRIPS, int), 1 + owner]),
        level=np.repeat([0, 1, 2], sizes),
        count=np.concatenate([[0], first, leaves]),
        loss=np.repeat([0, EPSILON, EPSILON], sizes),
    )
    return tree, int((part * WIDTH // 105).sum())


def noise(random, size):
    """Integer noise of about the variance of the mechanism."""
    return np.rint(random.laplace(0, NANO / EPSILON, size)).astype(int)


@pytest.mark.deep
def test_the_total_of_a_tree_is_not_biased():
    random = np.random.default_rng(8)
    trees = [divided(random) for _ in range(200)]
    before, after = (
        np.array([infer_counts(tree, settled=settled).signed[0] - true for tree, true in trees])
        for settled in (False, True)
    )
    error = before.std() / np.sqrt(len(trees))
    assert before.mean() > 5 * error
    assert abs(after.mean()) < 0.2 * before.mean() + 3 * error
    assert np.sqrt((after**2).mean()) < np.sqrt((before**2).mean())


def test_children_sum_to_their_parent():
    tree, _ = divided(np.random.default_rng(2))
    estimates = infer_counts(tree, settled=True)
    for values in (estimates.signed, estimates.count):
        sums = np.bincount(tree.parent[1:], values[1:], len(tree))
        assert sums[~tree.is_leaf] == pytest.approx(values[~tree.is_leaf])


def test_the_variance_is_that_of_the_weights():
    tree, _ = divided(np.random.default_rng(9))
    settled, best = infer_counts(tree, settled=True), infer_counts(tree)
    assert (settled.upward_variance != best.upward_variance).sum() > STRIPS / 2
    # Other weights than the best ones can only add to it.
    assert best.variance[0] < settled.variance[0] < 1.2 * best.variance[0]
