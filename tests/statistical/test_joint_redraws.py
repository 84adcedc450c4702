"""Noise drawn again and again for a frozen tree: intervals hold together, odds are right."""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.query.answer_table import two_sided_quantile
from psd.query.joint import fieller_interval, simultaneous_level
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import raster_overlay
from psd.statistics.top_cells import weighted_quantiles
from support.releases import changed
from support.trees import domain_of, leaf_fractions, leaf_matrix, release_of

pytestmark = pytest.mark.deep

DRAWS = 1500


def unmeasured(shape, epsilon):
    """A tree with an epsilon for each node and no counts."""
    nodes = len(shape)
    return replace(shape, count=np.zeros(nodes, int), loss=np.broadcast_to(epsilon, nodes))


def signed_joint(tree, boxes, **options):
    """Joint answers of a release whose errors are those of least squares."""
    release = changed(release_of(tree), post_processing=PostProcessing(estimate="signed"))
    return release.query(boxes, **options).joint()


def redrawn(tree, truth, rng):
    """The same tree with noise drawn for its counts."""
    p = -np.expm1(-np.maximum(tree.loss, 1) / NANO)
    noise = rng.geometric(p) - rng.geometric(p)
    return replace(tree, count=np.where(tree.loss > 0, truth.astype(int) + noise, 0))


@pytest.fixture(scope="module")
def drawn():
    """A tree, its true leaf counts, and what least squares makes of noise drawn for it.

    Cells are small, so that answers add up many numbers and are nearly normal.
    """
    rng = np.random.default_rng(7)
    tree = unmeasured(psd.decompositions.grid_tree(domain_of((64, 64)), 16), NANO // 8)
    leaves = rng.integers(200, 900, 256)
    truth = leaf_matrix(tree) @ leaves
    draws = (infer_counts(redrawn(tree, truth, rng)) for _ in range(DRAWS))
    return tree, leaves, np.array([draw.signed[tree.is_leaf] for draw in draws])


def weights_of(tree, boxes):
    return np.array([leaf_fractions(tree, box) for box in np.array(boxes, float)])


BOXES = {
    "overlapping": [(x, y, x + 20, y + 25) for x in (0, 12, 30) for y in (0, 10, 35)],
    "nested": [(32 - s, 32 - s, 32 + s, 32 + s) for s in range(4, 33, 4)],
    "disjoint": [(x, 0, x + 8, 64) for x in range(0, 64, 8)],
}


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_all_intervals_hold_together_as_often_as_said(drawn, kind, confidence):
    tree, leaves, estimates = drawn
    weights = weights_of(tree, BOXES[kind])
    joint = signed_joint(tree, BOXES[kind], confidence=confidence)
    deviation = np.sqrt(np.diagonal(joint.perturbation_covariance))
    noise = joint.perturbation_covariance / np.outer(deviation, deviation)
    level = simultaneous_level(noise, confidence)
    off = np.abs((estimates - leaves) @ weights.T) / deviation
    together = (off <= two_sided_quantile(level)).all(axis=1).mean()
    # Five standard errors of the share, and the tails of Laplace noise.
    slack = 5 * np.sqrt(confidence * (1 - confidence) / DRAWS) + 0.01
    assert abs(together - confidence) < slack
    if kind == "disjoint":
        # Single intervals would not hold together: the test sees the difference.
        assert (off <= two_sided_quantile(confidence)).all(axis=1).mean() < confidence - slack


@pytest.mark.parametrize("small", [False, True])
def test_ratios_are_covered_as_often_as_said(drawn, small):
    tree, leaves, estimates = drawn
    boxes = [(0, 0, 30, 30), (20, 10, 60, 64)]
    weights = weights_of(tree, boxes)
    covariance = signed_joint(tree, boxes).perturbation_covariance
    truth = weights @ leaves
    answers = truth + (estimates - leaves) @ weights.T
    if small:
        # The same errors around a denominator of about one standard deviation.
        shift = truth - np.array([30.0, 1.2]) * np.sqrt(np.diagonal(covariance))
        truth, answers = truth - shift, answers - shift
    variances = [np.full(DRAWS, covariance[cell]) for cell in ((0, 0), (1, 1), (0, 1))]
    low, high = fieller_interval(*answers.T, *variances, 0.9)
    ratio = truth[0] / truth[1]
    covered = ((low <= ratio) & (ratio <= high)).mean()
    assert covered > 0.9 - 5 * np.sqrt(0.09 / DRAWS)
    if not small:
        assert covered < 0.9 + 5 * np.sqrt(0.09 / DRAWS)


def test_probabilities_of_the_top_are_frequencies():
    """True counts all alike beforehand: cells given 70 % are in the top 70 times of 100."""
    rng = np.random.default_rng(11)
    said, true = [], []
    tree = unmeasured(psd.decompositions.grid_tree(domain_of((64, 64)), 8), NANO // 30)
    places = {tuple(box): n for n, box in enumerate(tree.boxes[tree.is_leaf][:, :2].tolist())}
    for seed in range(250):
        leaves = rng.integers(1_000, 1_400, 64)
        release = release_of(redrawn(tree, leaf_matrix(tree) @ leaves, rng))
        table = release.query(top=20, draws=400, seed=seed).table
        corners = table[["west", "south"]].astype(int).to_numpy()
        order = [places[tuple(corner)] for corner in corners.tolist()]
        said.append(table.probability.to_numpy())
        true.append(leaves[order] >= np.sort(leaves)[-20])
    said, true = np.concatenate(said), np.concatenate(true)
    for low, high in ((0.2, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        some = (said >= low) & (said < high)
        assert some.sum() > 100
        error = np.sqrt(said[some].mean() * (1 - said[some].mean()) / some.sum())
        assert abs(true[some].mean() - said[some].mean()) < 4 * error + 0.03


@pytest.mark.parametrize("weight", ["area", "people"])
def test_breaks_are_covered(weight):
    rng = np.random.default_rng(5)
    shape = psd.decompositions.grid_tree(domain_of((64, 64)), 16)
    leaves = np.round(rng.lognormal(5, 1, 256)).astype(int)
    tree = unmeasured(shape, np.where(shape.is_leaf, NANO // 4, 0))
    truth = leaf_matrix(tree) @ leaves
    base = release_of(tree)
    count = truth[raster_overlay(base.index.fit, 16, 16).node]
    covered = []
    for seed in range(60):
        release = changed(base, tree=redrawn(tree, truth, rng))
        table = release.query(
            quantiles=True, classes=5, size=(16, 16), weight=weight, draws=60, seed=seed
        ).table
        area = (64 / 16) ** 2 / 1e6
        weights = np.ones(256) if weight == "area" else count
        at = weighted_quantiles(count / area, weights, table.share.to_numpy())
        covered.append((table.lower <= at) & (at <= table.upper))
    # A break is one cell's density, whose noise is no normal number.
    assert np.mean(covered) > 0.9
