"""Predicted perturbation variances against the spread of answers when noise is drawn again.

The cells of a method are kept as it made them, and every count that it measured is drawn 2,000
times at its own epsilon. Noise is seeded, so a run says the same again.
"""

import dataclasses

import numpy as np
import pytest

from psd.estimation.least_squares import infer_counts
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.release.post_processing import INFERENCE_VERSION, PostProcessing
from psd.testing import RecordingSampler, run_method, small_domain, small_tally
from support.privacy.replay import small_cases
from support.releases import changed, release_from
from support.trees import leaf_fractions, random_queries

SIDE, DRAWS, QUERIES = 32, 2000, 200
METHODS = small_cases()
ADAPTIVE = ("adaptive-grid", "auto", "cascade")


def built(method, contributions):
    """Release of two clusters with exact counts where the method measures."""
    rng = np.random.default_rng(11)
    places = np.concatenate([rng.normal(9, 3, (300, 2)), rng.normal(24, 1, (150, 2))])
    columns, rows = np.clip(places.astype(int), 0, SIDE - 1).T
    points = small_tally(SIDE, tuple(rows * SIDE + columns), contributions)
    domain = small_domain(SIDE)
    _, tree = run_method(method, points, domain, NANO // 2, RecordingSampler())
    return release_from(
        tree=tree,
        domain=domain,
        epsilon=NANO // 2,
        method=method.name,
        unit=PrivacyUnit(
            kind="user" if contributions > 1 else "record", max_contributions=contributions
        ),
        post_processing=PostProcessing(estimate="signed"),
    )


def with_counts(tree, count):
    return dataclasses.replace(tree, count=np.where(tree.epsilon > 0, count, 0))


def drawn(rng, tree, contributions):
    """Counts with discrete Laplace noise at the epsilon of each node, shape (draws, measured)."""
    measured = tree.epsilon > 0
    p = -np.expm1(-tree.epsilon[measured] / (NANO * contributions))
    shape = (DRAWS, int(measured.sum()))
    return tree.count[measured] + rng.geometric(p, shape) - rng.geometric(p, shape)


def response(release, weights):
    """What each measured count adds to each answer: least squares is linear in the counts."""
    tree, k = release.tree, release.unit.max_contributions
    columns = [
        weights
        @ infer_counts(with_counts(tree, np.arange(len(tree)) == node), k).signed[tree.is_leaf]
        for node in np.flatnonzero(tree.epsilon > 0)
    ]
    return np.array(columns)


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_predicted_variances_are_those_of_answers_over_redraws(method, contributions):
    # Version 2 pools counts that decide divisions by weights that follow them, so its answers are
    # not linear where cells follow from counts.
    version = 1 if method.name in ADAPTIVE else INFERENCE_VERSION
    release = changed(built(method, contributions), inference=version)
    tree, rng = release.tree, np.random.default_rng(2026)
    boxes = random_queries(rng, (SIDE, SIDE), 2 * QUERIES)[:QUERIES]
    assert len(boxes) == QUERIES
    weights = np.array([leaf_fractions(tree, box) for box in boxes])
    counts = drawn(rng, tree, contributions)
    answers = counts @ response(release, weights)

    # The product is what a release of these counts answers.
    first = np.zeros(len(tree), np.int64)
    first[tree.epsilon > 0] = counts[0]
    again = changed(release, tree=with_counts(tree, first)).query(boxes)
    assert again["estimate"].to_numpy() == pytest.approx(answers[0].clip(0), rel=1e-9, abs=1e-6)

    predicted = again["perturbation_error"].to_numpy() ** 2
    centred = answers - answers.mean(axis=0)
    spread, fourth = (centred**2).mean(axis=0), (centred**4).mean(axis=0)
    standard_error = np.sqrt((fourth - spread**2) / DRAWS)
    assert (np.abs(spread - predicted) < 5 * standard_error).all()
    # A variance that is off by a half would be noticed.
    assert (5 * standard_error < predicted / 2).all()
    # And the answers are not off on average.
    expected = weights @ infer_counts(tree, contributions).signed[tree.is_leaf]
    assert (np.abs(answers.mean(axis=0) - expected) < 5 * np.sqrt(spread / DRAWS)).all()
