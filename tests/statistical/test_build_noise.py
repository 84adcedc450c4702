"""Noise of whole builds, by chi-square at n = 100,000: the law that the release claims.

An empty domain is counted, so that every published count is noise; wrong scales are rejected.
"""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.curator.curator import Curator
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.testing import small_tally
from support.goodness_of_fit import ALPHA, discrete_laplace_p_value, holds
from support.privacy.samplers import AlteredSampler

DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
CELLS = psd.decompositions.Grid(size=317)


def scaled(factor):
    """Planted: noise of another scale than was asked for."""

    def change(mechanism):
        return replace(mechanism, epsilon=(mechanism.epsilon / factor).astype(np.int64))

    return AlteredSampler(change)


def draws(sampler, epsilon, k):
    tally = small_tally(2**20, (), k)
    tree = CELLS.build(Curator(tally, DOMAIN, budget=Budget(epsilon), sampler=sampler))
    return tree.count[tree.is_leaf][:100_000]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 100, NANO // 10, NANO, 2 * NANO])
def test_noise_is_discrete_laplace_of_scale_k_over_epsilon(epsilon, k):
    scale = k * NANO / epsilon
    assert holds(lambda: discrete_laplace_p_value(draws(SecureSampler(), epsilon, k), scale))


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO])
def test_wrong_scales_are_rejected(epsilon, factor):
    assert discrete_laplace_p_value(draws(scaled(factor), epsilon, 1), NANO / epsilon) < ALPHA


def test_each_level_has_the_noise_of_its_own_epsilon():
    """A quadtree spends another share on each level; its last two are large enough to test."""
    method = psd.decompositions.Quadtree(height=8)

    def level_p_value(level):
        curator = Curator(
            small_tally(2**20, ()), DOMAIN, budget=Budget(NANO), sampler=SecureSampler()
        )
        tree = method.build(curator)
        nodes = tree.levels[level]
        return discrete_laplace_p_value(tree.count[nodes], NANO / int(tree.epsilon[nodes][0]))

    assert holds(lambda: level_p_value(7))
    assert holds(lambda: level_p_value(8))
