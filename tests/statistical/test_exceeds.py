"""Law of the splits: how often b + L > 0, against the exact tail; wrong scales are rejected."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import psd
from psd.curator.curator import Curator
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.space.grids import cut_grid
from psd.testing import small_tally
from support.goodness_of_fit import ALPHA, holds
from support.privacy.samplers import exceeds
from support.privacy.shapes import log_above
from support.privacy.split_law import N, p_value

DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
SCALES = [Fraction(7, 24), Fraction(7, 3), Fraction(14, 3), Fraction(140, 3)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_splits_have_their_probability(scale):
    assert holds(lambda: p_value(scale))


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_wrong_scales_of_splits_are_rejected(scale, factor):
    assert p_value(scale, factor) < ALPHA


def test_splits_of_different_scales():
    """Two scales in turns; each half has its own law."""

    def p_values():
        above = exceeds(np.full(2 * N, -2), 7, np.tile([3, 1], N))
        halves = zip((above[::2], above[1::2]), (7 / 3, 7), strict=True)
        return 2 * min(
            stats.binomtest(int(half.sum()), N, np.exp(log_above(-2, scale))).pvalue
            for half, scale in halves
        )

    assert holds(p_values)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 2, 8 * NANO])
def test_shapes_of_empty_cells(epsilon, k):
    """From the curator: a cell without records has b = 0, its quarters b = -delta."""

    def p_values():
        curator = Curator(
            small_tally(2**20, (), k), DOMAIN, budget=Budget(epsilon), sampler=SecureSampler()
        )
        cells = cut_grid(curator.cut, curator.root(), DOMAIN.lattice, (256, 256))
        leaves = curator.privtree_shape(cells, epsilon, height=2)
        width = leaves.boxes[:, 2] - leaves.boxes[:, 0]
        whole, halves = (int((width == 2**20 // 256 // part).sum()) for part in (1, 2))
        split, scale = len(cells) - whole, 7 * k * NANO / (3 * epsilon)
        delta = max(int(np.ceil(scale * np.log(4))), 1)
        tests = (
            stats.binomtest(split, len(cells), np.exp(log_above(0, scale))),
            stats.binomtest(4 * split - halves, 4 * split, np.exp(log_above(-delta, scale))),
        )
        return 2 * min(test.pvalue for test in tests)

    assert holds(p_values)
