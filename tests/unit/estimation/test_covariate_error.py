"""The relative error of a covariate, from the noisy counts."""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.space.covariate import Covariate
from support.releases import changed

SIDE = 64


def density():
    """Two towns on an even ground."""
    x, y = np.meshgrid(np.arange(SIDE) + 0.5, np.arange(SIDE) + 0.5)
    return 1 + sum(
        40 * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * s**2))
        for a, b, s in ((20, 15, 4), (45, 40, 7))
    )


def release(covariate):
    """Quadtree of records that follow the density, with noise on the leaves alone."""
    domain = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857", lattice=(SIDE, SIDE))
    tree = psd.decompositions.grid_tree(domain, SIDE // 4)
    column, row = tree.boxes[tree.is_leaf][:, :2].T
    mass = density().reshape(SIDE // 4, 4, SIDE // 4, 4).sum(axis=(1, 3))[row // 4, column // 4]
    random = np.random.default_rng(5)
    exact = random.poisson(50_000 * mass / mass.sum())
    noise = random.geometric(1 - np.exp(-1.0), (2, len(exact)))
    built = psd.Release.from_counts(tree, exact + noise[0] - noise[1], 1.0, domain=domain)
    return changed(
        built,
        covariate=Covariate.from_density(domain, covariate),
        post_processing=replace(built.record.post_processing, density="covariate"),
    )


def test_a_covariate_that_is_right_has_no_error():
    assert release(density()).index.fit.shift_share * 1.8 < 0.1


def test_a_covariate_that_moves_too_few_records_has_an_error():
    assert release(np.sqrt(density())).index.fit.shift_share * 1.8 > 0.7


def test_a_covariate_that_moves_what_lies_evenly_has_an_error():
    other = density()[::-1, ::-1]
    assert release(other).index.fit.shift_share * 1.8 > 0.7


def test_the_error_widens_answers():
    right, rough = release(density()), release(np.sqrt(density()))
    box = [0.26, 0.19, 0.37, 0.28]
    errors = [r.query([box])["nonuniformity_error"].iloc[0] for r in (right, rough)]
    assert errors[1] > errors[0]


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["box", "many"])
def test_joint_answers_have_the_same_error(shape):
    built = release(np.sqrt(density()))
    boxes = [[0.26, 0.19, 0.37, 0.28], [0.3, 0.1, 0.52, 0.71]]
    boxes = boxes if shape == "box" else boxes * 600
    errors = built.query(boxes)["nonuniformity_error"].to_numpy()[:2]
    joint = built.query(boxes[:2]).joint().nonuniformity_covariance
    assert errors == pytest.approx(np.sqrt(np.diag(joint)), rel=1e-9)
