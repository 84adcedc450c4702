"""Noise of whole builds, by chi-square at n = 100,000: the law that the release claims.

An empty domain is counted, so that every published count is noise. Planted bugs show that wrong
scales are rejected.
"""

import pytest

import psd
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from support.goodness_of_fit import discrete_laplace_p_value, holds
from support.privacy.curators import small_curator

DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")


def empty_tree(method, epsilon, k=1):
    sampler = SecureSampler()
    curator, _ = small_curator(2**20, (), k=k, budget=epsilon, domain=DOMAIN, sampler=sampler)
    return method.build(curator)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 100, NANO // 10, NANO, 2 * NANO])
def test_noise_is_discrete_laplace_of_scale_k_over_epsilon(epsilon, k):
    def p_value():
        tree = empty_tree(psd.decompositions.Grid(size=317), epsilon, k)
        return discrete_laplace_p_value(tree.count[tree.is_leaf][:100_000], k * NANO / epsilon)

    assert holds(p_value)


@pytest.mark.parametrize("level", [7, 8])
def test_each_level_has_the_noise_of_its_own_epsilon(level):
    """A quadtree spends another share on each level; its last two are large enough to test."""

    def level_p_value():
        tree = empty_tree(psd.decompositions.Quadtree(height=8), NANO)
        nodes = tree.levels[level]
        return discrete_laplace_p_value(tree.count[nodes], NANO / int(tree.loss[nodes][0]))

    assert holds(level_p_value)
