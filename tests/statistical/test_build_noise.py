"""Noise of whole builds, by chi-square at n = 100,000: the law that the release claims.

An empty domain is counted, so that every published count is noise; wrong scales are rejected.
"""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.epsilon import NANO
from support.goodness_of_fit import ALPHA, discrete_laplace_p_value, holds
from support.privacy.curators import small_curator
from support.privacy.samplers import AlteredSampler

DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")


def empty_tree(method, epsilon, k=1, sampler=None):
    sampler = sampler or SecureSampler()
    curator, _ = small_curator(2**20, (), k=k, budget=epsilon, domain=DOMAIN, sampler=sampler)
    return method.build(curator)


def p_value(epsilon, k=1, sampler=None):
    tree = empty_tree(psd.decompositions.Grid(size=317), epsilon, k, sampler)
    return discrete_laplace_p_value(tree.count[tree.is_leaf][:100_000], k * NANO / epsilon)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 100, NANO // 10, NANO, 2 * NANO])
def test_noise_is_discrete_laplace_of_scale_k_over_epsilon(epsilon, k):
    assert holds(lambda: p_value(epsilon, k))


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO])
def test_wrong_scales_are_rejected(epsilon, factor):
    """Planted: noise of another scale than was asked for."""

    def scaled(mechanism):
        return replace(mechanism, epsilon=(mechanism.epsilon / factor).astype(np.int64))

    assert p_value(epsilon, sampler=AlteredSampler(scaled)) < ALPHA


@pytest.mark.parametrize("level", [7, 8])
def test_each_level_has_the_noise_of_its_own_epsilon(level):
    """A quadtree spends another share on each level; its last two are large enough to test."""

    def level_p_value():
        tree = empty_tree(psd.decompositions.Quadtree(height=8), NANO)
        nodes = tree.levels[level]
        return discrete_laplace_p_value(tree.count[nodes], NANO / int(tree.epsilon[nodes][0]))

    assert holds(level_p_value)
