"""Declared workloads: the variance of answers, the budgets that make it least, and refusals."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import psd
from psd.decompositions._workload_shares import (
    CLASSES,
    check_workload,
    class_boxes,
    class_weights,
    detail_energies,
    level_weights,
    mean_variance,
    weights_for_boxes,
)
from psd.decompositions.grid import tiny_size
from psd.errors import ParameterError
from psd.estimation.least_squares import infer_counts
from psd.privacy.budget import geometric_shares, uniform_shares
from psd.privacy.loss import NANO
from psd.query.box_parts import box_fraction
from psd.query.traversal import perturbation_variance, traverse
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.releases import release_from
from support.trees import domain_of


def tree_of(height, shares):
    """A quadtree as the method cuts it, with these epsilons, on a lattice as fine as it is."""
    side = 2**height
    method = psd.decompositions.Quadtree(height=height, budget="leaf")
    run = run_method(method, small_tally(side, ()), small_domain(side), NANO, RecordingSampler())
    return replace(run[1], loss=np.rint(np.array(shares) * NANO).astype(np.int64)[run[1].level])


def some_boxes(number=40):
    """Boxes in the unit square, some of them on the lines of a quadtree."""
    ends = np.sort(np.random.default_rng(3).uniform(0, 1, (number, 2, 2)), axis=1)
    ends[::4] = [[0.25, 0], [0.75, 0.5]]
    ends[1] = [[0, 0], [1, 1]]
    return ends.reshape(number, 4)


@pytest.mark.parametrize(
    "shares",
    [(1.0,), (0.1, 0.2, 0.3, 0.4), (0.0, 0.0, 0.0, 1.0), (0.0, 0.3, 0.0, 0.0, 0.7)],
    ids=["root alone", "all levels", "leaves alone", "two levels"],
)
def test_variance_is_that_of_least_squares(shares):
    # A small epsilon, at which discrete Laplace noise has the variance 2 / epsilon^2.
    height, scale, boxes = len(shares) - 1, 1e-3, some_boxes()
    tree = tree_of(height, np.array(shares) * scale)
    domain = psd.Domain(bounds=(0, 0, 1, 1), lattice=(2**height, 2**height))
    release = release_from(tree=tree, domain=domain, epsilon=NANO, method="given")
    covered = traverse(tree, len(boxes), box_fraction(release.index.fit, boxes * 2**height))
    exact = perturbation_variance(covered, infer_counts(tree)).mean() * scale**2
    told = mean_variance(detail_energies(boxes, height), np.array(shares))
    assert told == pytest.approx(exact, rel=1e-5)


def test_energies_are_those_of_the_covered_fractions():
    height, boxes = 4, some_boxes()
    energies = np.zeros(height + 1)
    for box in boxes * 2**height:
        lines = np.arange(2**height)
        x, y = (
            np.clip(np.minimum(lines + 1, box[a + 2]) - np.maximum(lines, box[a]), 0, 1)
            for a in (0, 1)
        )
        fractions, above = np.outer(x, y), 0.0
        for level in range(height + 1):
            part = 2 ** (height - level)
            means = fractions.reshape(2**level, part, 2**level, part).mean(axis=(1, 3))
            length = (means**2).sum() * part**2
            energies[level] += (length - above) / len(boxes)
            above = length
    assert np.allclose(detail_energies(boxes, height), energies, atol=1e-9)


@pytest.mark.parametrize("name", [*CLASSES, "some"])
@pytest.mark.parametrize("height", [1, 5, 8])
def test_no_shares_nearby_and_no_usual_ones_serve_the_declared_boxes_better(name, height):
    boxes = some_boxes() if name == "some" else class_boxes(name)
    energies = detail_energies(boxes, height)
    shares = np.array(level_weights(boxes, height)) / 10**6
    best = mean_variance(energies, shares / shares.sum()) * (1 - 1e-4)
    for up, down in permutations(range(height + 1), 2):
        for step in (0.01, 0.1, 1):
            moved = shares.copy()
            moved[down] -= step * shares[down]
            moved[up] += step * shares[down]
            assert moved[-1] == 0 or best <= mean_variance(energies, moved / moved.sum())
    for usual in (geometric_shares, uniform_shares):
        assert best <= mean_variance(energies, np.array(usual(NANO, height + 1)) / NANO)


@pytest.mark.deep
def test_larger_boxes_are_given_coarser_levels():
    coarsest = [np.flatnonzero(np.array(class_weights(name, 9)) > 1000)[0] for name in CLASSES]
    assert coarsest[0] == 9
    assert sorted(coarsest, reverse=True) == coarsest
    assert coarsest[-1] <= 4


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_told_from_random_boxes_of_it_by_little(name):
    boxes = class_boxes(name)
    sides = boxes[:, 2:] - boxes[:, :2]
    corner = np.random.default_rng(5).uniform(0, 1, sides.shape) * (1 - sides)
    moved = detail_energies(np.concatenate([corner, corner + sides], axis=1), 8)
    assert np.allclose(detail_energies(boxes, 8), moved, rtol=0.05, atol=0.01 * moved.max())


@pytest.mark.parametrize(
    ("name", "least", "greatest", "aspect"),
    [
        ("tiny", 0.002**2, 0.00275**2, 1),
        ("small", 1e-4, 1e-4, 4),
        ("medium", 1e-3, 1e-3, 4),
        ("large", 1e-2, 1e-2, 4),
        ("huge", 1e-1, 1e-1, 4),
    ],
)
def test_boxes_of_a_class(name, least, greatest, aspect):
    boxes = class_boxes(name)
    wide, high = (boxes[:, 2:] - boxes[:, :2]).T
    assert (boxes >= 0).all()
    assert (boxes <= 1 + 1e-12).all()
    assert np.isclose(wide * high, np.clip(wide * high, least, greatest), rtol=1e-9).all()
    assert wide.max() / high[wide.argmax()] == pytest.approx(aspect, rel=0.01)
    assert (wide / high).min() == pytest.approx(1 / aspect, rel=0.01)
    # Uniform positions: the middle of a box of width w is at 1/2 on average.
    assert np.allclose((boxes[:, :2] + boxes[:, 2:]).mean(axis=0), 1, atol=0.01)


def test_shares_sum_to_epsilon():
    for workload in (*CLASSES, "0 0 0 1", "3 1 4 1", "0 0 999999 1"):
        method = psd.decompositions.Quadtree(height=3, budget="workload", workload=workload)
        for epsilon in (1, 7, 1_000, NANO, 1_000 * NANO):
            shares = method.level_shares(epsilon)
            assert sum(shares) == epsilon
            assert min(shares) >= 0
            assert shares[-1] > 0


def test_unused_levels_are_not_asked():
    method = psd.decompositions.Quadtree(height=2, budget="workload", workload="0 1 3")
    curator, tree = run_method(
        method, small_tally(4, (0,)), small_domain(4), NANO, RecordingSampler()
    )
    assert tree.loss[tree.level == 0].tolist() == [0]
    assert [len(question.boxes) for question in curator.questions] == [4, 16]
    assert curator.spent == NANO


BAD_BOXES = {
    "no box": ([], "must have at least one box"),
    "outside": ([(0, 0, 1, 1), (9, 0, 10, 1)], r"box 2 \(9 0 10 1\)"),
    "reversed": ([(1, 0, 0, 1)], "west south east north"),
    "no width": ([(1, 1, 1, 2)], "no area"),
    "no number": ([(0, 0, np.nan, 1)], "no area"),
    "no end": ([(0, 0, np.inf, 1)], "no area"),
}
BAD_WORKLOADS = (
    ({"budget": "workload"}, "must be given together"),
    ({"workload": "tiny"}, "must be given together"),
    ({"budget": "leaf", "workload": "tiny"}, "must be given together"),
    ({"budget": "workload", "workload": "boxes.csv"}, "must be one of tiny"),
    ({"budget": "workload", "workload": "1 -2"}, "must be one of tiny"),
    ({"budget": "workload", "workload": "1 2", "height": "3"}, "4 levels of height 3, got 2"),
    ({"budget": "workload", "workload": "1 0", "height": "1"}, "last weight above 0"),
)


def test_boxes_and_workloads_that_are_refused(subtests):
    domain = domain_of((8, 8))
    for name, (boxes, words) in BAD_BOXES.items():
        with subtests.test(name), pytest.raises(ParameterError, match=words):
            weights_for_boxes(boxes, domain, 2)
    for settings, words in BAD_WORKLOADS:
        with subtests.test(str(settings)), pytest.raises(ParameterError, match=words):
            psd.decompositions.method("quadtree", settings)
    with pytest.raises(ParameterError, match="must not both"):
        psd.decompositions.method("grid", {"size": "3", "workload": "tiny"})
    # A box that reaches beyond the domain counts for its part inside.
    inside = weights_for_boxes([(0, 0, 3, 5)], domain, 3)
    assert weights_for_boxes([(-5, -5, 3, 5)], domain, 3) == inside


def test_size_of_a_grid_for_tiny_boxes():
    for total, epsilon, k, size in (
        (140_000, 0.05, 1, 276),  # 8 * 7,000^0.4
        (140_000, 1, 1, 915),  # 8 * 140,000^0.4
        (140_000, 1, 20, 276),  # twenty rows per user
        (0, 1, 1, 1),
        (-500, 1, 1, 1),
        (10**18, 1_000, 1, 4_096),  # public limit
    ):
        assert tiny_size(max(total, 0) * epsilon / k) == size


def test_a_grid_for_tiny_boxes_takes_its_size_from_the_noisy_total():
    # The recorder answers one row with 41, twice: the second count takes a tenth of what is left.
    method, noise = (
        psd.decompositions.method("grid", {"workload": "tiny"}),
        RecordingSampler(SCRIPTS[1]),
    )
    tree = run_method(method, small_tally(64, (0,)), small_domain(64), NANO, noise)[1]
    assert tree.is_leaf.sum() == tiny_size(41 * 0.98 * 0.9) ** 2 == 34**2


def test_a_grid_for_tiny_boxes_has_signed_estimates():
    estimates = [
        psd.decompositions.method("grid", settings).post_processing.estimate
        for settings in ({}, {"size": "9"}, {"workload": "tiny"})
    ]
    assert estimates == ["posterior", "posterior", "signed"]


def test_a_workload_is_a_size_class_or_weights_of_levels():
    for workload in ("tiny", "0 0 3 0 7"):
        assert check_workload("workload", workload) == workload
