"""Covariances of joint answers, which are repaired where they are none."""

import math

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from psd.query.covariance import _nearest_covariance
from psd.query.derived import two_sided_quantile
from support.noise import noise_variance
from support.trees import domain_of

VARIANCE = float(noise_variance(np.array([1_000_000_000]), 1)[0])


@pytest.fixture
def release():
    domain = domain_of((4, 4))
    counts = np.arange(16) * 10 + 50
    return psd.Release.from_counts(psd.grid_tree(domain, 4), counts, 1.0, domain=domain)


def test_disjoint_cells_do_not_covary(release):
    joint = release.joint([(0, 0, 1, 1), (2, 0, 4, 2)])
    assert joint.covariance == pytest.approx(np.diag([VARIANCE, 4 * VARIANCE]), abs=1e-9)
    assert joint.correlation == pytest.approx(np.eye(2), abs=1e-9)
    total = joint.total()
    assert total.estimate == pytest.approx(joint.answers.estimate.sum())
    assert total.error == pytest.approx(math.sqrt(5 * VARIANCE))
    assert total.upper - total.estimate == pytest.approx(two_sided_quantile(0.95) * total.error)
    assert joint.overlap is None


def test_shared_cells_covary_by_what_is_shared(release):
    joint = release.joint([(0, 0, 2, 1), (1, 0, 3, 1)])
    assert joint.covariance[0, 1] == pytest.approx(VARIANCE)
    assert joint.difference(0, 1).error == pytest.approx(math.sqrt(2 * VARIANCE))
    assert joint.overlap == (0, 1)
    with pytest.raises(ParameterError, match="regions 1 and 2 overlap"):
        joint.total()
    assert joint.combine([1, 1]).estimate == pytest.approx(joint.answers.estimate.sum())


def test_two_halves_of_a_cell_vary_against_each_other(release):
    joint = release.joint([(0, 0, 0.5, 1), (0.5, 0, 1, 1)])
    spread = joint.nonuniformity_covariance
    assert spread[0, 1] == pytest.approx(-spread[0, 0])
    assert spread[0, 0] > 0
    assert joint.total().nonuniformity_error == pytest.approx(0, abs=1e-6)
    assert joint.perturbation_covariance == pytest.approx(np.full((2, 2), VARIANCE / 4))


def test_a_matrix_that_is_no_covariance_is_repaired():
    wrong = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    fixed = _nearest_covariance(wrong)
    assert np.linalg.eigvalsh(fixed).min() > -1e-12
    assert np.diagonal(fixed) == pytest.approx([1, 1, 1])
    right = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert np.array_equal(_nearest_covariance(right), right)
