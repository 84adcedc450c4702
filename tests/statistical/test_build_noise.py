"""Noise of whole builds, by chi-square at n = 100,000: the law that the release claims.

An empty domain is counted, so that every published count is noise; wrong scales are rejected.
"""

import numpy as np
import pytest

import psd
from psd.curator.curator import Curator
from psd.mechanisms import SecureNoise
from psd.privacy.epsilon import NANO
from support.goodness_of_fit import ALPHA, discrete_laplace_p_value, holds
from support.privacy.replay import small_tally

DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
CELLS = psd.Grid(size=317)


class Scaled(SecureNoise):
    """Planted: noise of another scale than was asked for."""

    def __init__(self, factor):
        self.factor = factor

    def count(self, true, epsilon, sensitivity):
        return super().count(true, (epsilon / self.factor).astype(np.int64), sensitivity)


def draws(noise, epsilon, k):
    tally = small_tally(2**20, (), k)
    tree = CELLS.build(Curator(tally, DOMAIN, epsilon=epsilon, noise=noise))
    return tree.count[tree.is_leaf][:100_000]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 100, NANO // 10, NANO, 2 * NANO])
def test_noise_is_discrete_laplace_of_scale_k_over_epsilon(epsilon, k):
    scale = k * NANO / epsilon
    assert holds(lambda: discrete_laplace_p_value(draws(SecureNoise(), epsilon, k), scale))


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO])
def test_wrong_scales_are_rejected(epsilon, factor):
    assert discrete_laplace_p_value(draws(Scaled(factor), epsilon, 1), NANO / epsilon) < ALPHA


def test_each_level_has_the_noise_of_its_own_epsilon():
    """A quadtree spends another share on each level; its last two are large enough to test."""
    method = psd.Quadtree(height=8)

    def level_p_value(level):
        curator = Curator(small_tally(2**20, ()), DOMAIN, epsilon=NANO, noise=SecureNoise())
        tree = method.build(curator)
        nodes = tree.levels[level]
        return discrete_laplace_p_value(tree.count[nodes], NANO / int(tree.epsilon[nodes][0]))

    assert holds(lambda: level_p_value(7))
    assert holds(lambda: level_p_value(8))
