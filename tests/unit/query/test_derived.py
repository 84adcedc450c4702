"""Ratios of joint answers."""

import math

import numpy as np
import pytest

import psd
from psd.query.derived import fieller_interval, two_sided_quantile
from support.noise import noise_variance
from support.trees import domain_of

VARIANCE = float(noise_variance(np.array([1_000_000_000]), 1)[0])


@pytest.fixture
def release():
    domain = domain_of((4, 4))
    counts = np.arange(16) * 10 + 50
    return psd.Release.from_counts(psd.grid_tree(domain, 4), counts, 1.0, domain=domain)


def test_a_ratio(release):
    joint = release.joint([(0, 0, 2, 2), (2, 2, 4, 4)])
    ratio = joint.ratio(0, 1)
    x, y = joint.answers.estimate
    assert ratio.estimate == pytest.approx(x / y)
    relative = math.sqrt(4 * VARIANCE / x**2 + 4 * VARIANCE / y**2)
    assert ratio.error == pytest.approx(x / y * relative, rel=1e-6)
    assert ratio.lower < ratio.estimate < ratio.upper
    itself = joint.ratio(0, 0)
    assert (itself.estimate, itself.error) == pytest.approx((1, 0))


def test_a_ratio_over_nothing():
    domain = domain_of((2, 2))
    release = psd.Release.from_counts(psd.grid_tree(domain, 2), [90, 0, 0, 0], 1.0, domain=domain)
    ratio = release.joint([(0, 0, 1, 1), (0, 1, 1, 2)]).ratio(0, 1)
    assert math.isnan(ratio.estimate)
    assert ratio.error == math.inf
    assert 0 < ratio.lower < ratio.upper == math.inf


def test_fieller_is_all_ratios_that_are_not_refuted():
    rng = np.random.default_rng(1)
    ratios = np.linspace(0, 400, 200_001)
    for _ in range(60):
        x, y = rng.normal(size=2) * rng.choice([1, 10], 2)
        factor = rng.normal(size=(2, 2))
        c = factor @ factor.T
        low, high = fieller_interval(*np.array([[x], [y], [c[0, 0]], [c[1, 1]], [c[0, 1]]]), 0.9)
        variance = c[0, 0] - 2 * ratios * c[0, 1] + ratios**2 * c[1, 1]
        kept = ratios[np.abs(x - ratios * y) <= two_sided_quantile(0.9) * np.sqrt(variance)]
        # The interval holds all of them; where they are in two pieces, what lies between too.
        assert (kept >= low[0] - 1e-9).all()
        assert (kept <= high[0] + 1e-9).all()
        if len(kept) and high[0] < 400 and low[0] > 0:
            assert (kept[0], kept[-1]) == pytest.approx((low[0], high[0]), abs=0.01)
