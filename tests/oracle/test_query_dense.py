"""Box queries against brute force: leaves one by one, and the covariance as a matrix."""

import math

import numpy as np
import pytest

from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from support.releases import changed
from support.trees import (
    KINDS,
    dense_least_squares,
    leaf_fractions,
    naive_line_variance,
    published_noise,
    random_queries,
    random_tree,
    release_of,
)

LATTICE = (64, 64)
SIGNED = PostProcessing(estimate="signed")


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_errors_are_those_of_brute_force(kind):
    compared = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4, **KINDS[kind])
        contributions = int(rng.integers(1, 4))
        release = release_of(tree, contributions=contributions)
        boxes = random_queries(rng, LATTICE, 15)
        weights = np.array([leaf_fractions(tree, box) for box in boxes])
        _, covariance = dense_least_squares(tree, contributions)
        deviation = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
        leaf = release.index.fit.estimates.count[tree.is_leaf]
        phi, cluster_size = (
            release.index.fit.dispersion.overdispersion[tree.is_leaf],
            release.index.fit.dispersion.cluster_size,
        )
        spread = weights * (1 - weights) * leaf * (cluster_size + phi * leaf)
        table = release.query(boxes).table
        assert list(table.estimate) == pytest.approx(weights @ leaf, rel=1e-9, abs=1e-9)
        signed = changed(release, post_processing=SIGNED).query(boxes).table
        assert list(signed.perturbation_error) == pytest.approx(deviation, rel=1e-9)
        covariance = published_noise(release)[np.ix_(tree.is_leaf, tree.is_leaf)]
        deviation = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
        assert list(table.perturbation_error) == pytest.approx(deviation, rel=1e-9)
        uneven = spread.sum(axis=1) + [naive_line_variance(release, box) for box in boxes]
        assert list(table.nonuniformity_error) == pytest.approx(np.sqrt(uneven), rel=1e-9, abs=1e-9)
        compared += len(boxes)
    assert compared > 1000


@pytest.mark.deep
def test_errors_are_numbers_for_extreme_budgets():
    # The difference of squares would go below zero here, and its root would be no number.
    for seed in range(100):
        rng = np.random.default_rng(seed)
        shape = random_tree(rng, height=4)
        exponent = rng.uniform(-6, 2, len(shape))
        tree = Tree(
            boxes=shape.boxes,
            parent=shape.parent,
            level=shape.level,
            count=shape.count,
            loss=np.where(shape.loss > 0, 10**exponent * NANO, 0).astype(int),
        )
        table = release_of(tree).query(random_queries(rng, LATTICE, 30)).table
        numbers = table.drop(columns=["id", "quality"]).to_numpy(float)
        assert not np.isnan(numbers).any()
        relative = [name for name in table if name.startswith("relative")]
        assert np.isfinite(table.drop(columns=["id", "quality", *relative]).to_numpy(float)).all()
        assert (table.perturbation_error >= 0).all()


@pytest.mark.deep
def test_errors_are_the_spread_of_answers_when_the_noise_is_drawn_again():
    rng = np.random.default_rng(17)
    draws = 2000
    shape = random_tree(rng, height=3, leaf_share=0.2)
    truth = rng.integers(0, 300, len(shape))
    boxes = random_queries(rng, LATTICE, 12)
    weights = np.array([leaf_fractions(shape, box) for box in boxes])
    p = -np.expm1(-np.maximum(shape.loss, 1) / NANO)
    noise = rng.geometric(p, (draws, len(shape))) - rng.geometric(p, (draws, len(shape)))
    answers = np.empty((draws, len(boxes)))
    for draw in range(draws):
        tree = Tree(
            boxes=shape.boxes,
            parent=shape.parent,
            level=shape.level,
            count=np.where(shape.loss > 0, truth + noise[draw], 0),
            loss=shape.loss,
        )
        answers[draw] = weights @ infer_counts(tree).signed[tree.is_leaf]
    release = changed(release_of(shape), post_processing=SIGNED)
    predicted = release.query(boxes).table.perturbation_error.to_numpy() ** 2
    centred = answers - answers.mean(axis=0)
    spread, fourth = (centred**2).mean(axis=0), (centred**4).mean(axis=0)
    standard_error = np.sqrt((fourth - spread**2) / draws)
    assert (np.abs(spread - predicted) < 5 * standard_error).all()
    # The test would notice a variance that is off by a third.
    assert (5 * standard_error < predicted / 3).all()


def test_answers_are_additive_for_the_covariance_too():
    # var(a + b) = var(a) + var(b) + 2 cov(a, b), for the two halves of a box.
    rng = np.random.default_rng(4)
    tree = random_tree(rng, height=4)
    release = changed(release_of(tree), post_processing=SIGNED)
    _, covariance = dense_least_squares(tree)
    for x in (7, 20.5, 33):
        west, east = (leaf_fractions(tree, box) for box in [(3, 5, x, 60), (x, 5, 61.5, 60)])
        whole, *halves = release.query(
            [(3, 5, 61.5, 60), (3, 5, x, 60), (x, 5, 61.5, 60)]
        ).table.perturbation_error
        together = sum(half**2 for half in halves) + 2 * west @ covariance @ east
        assert whole == pytest.approx(math.sqrt(together), rel=1e-9)
