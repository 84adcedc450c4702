"""Law of the splits: how often b + L > 0, against the exact tail.

Planted bugs show that wrong scales are rejected.
"""

from fractions import Fraction

import numpy as np
import pytest

import psd
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from psd.space.grids import cut_grid
from support.goodness_of_fit import binomial_p_value, holds
from support.privacy.curators import small_curator
from support.privacy.samplers import exceeds
from support.privacy.shapes import log_above

N = 100_000
DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
SCALES = [Fraction(7, 24), Fraction(7, 3), Fraction(14, 3), Fraction(140, 3)]


def chance_p_value(above, biased, scale):
    return binomial_p_value(above, np.exp(log_above(biased, float(scale))))


def p_value(scale):
    """Smallest of the p-values over b around 0, corrected for their number."""
    around = (Fraction(b) * max(scale, 1) for b in (-2, -1, Fraction(-1, 2), 0, 1, Fraction(3, 2)))
    found = []
    for b in sorted({round(b) for b in around}):
        above = exceeds(np.full(N, b), scale.numerator, np.full(N, scale.denominator))
        found.append(chance_p_value(above, b, scale))
    return min(found) * len(found)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_splits_have_their_probability(scale):
    assert holds(lambda: p_value(scale))


def test_splits_of_different_scales():
    """Two scales in turns; each half has its own law."""

    def p_values():
        above = exceeds(np.full(2 * N, -2), 7, np.tile([3, 1], N))
        halves = chance_p_value(above[::2], -2, 7 / 3), chance_p_value(above[1::2], -2, 7)
        return 2 * min(halves)

    assert holds(p_values)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("epsilon", [NANO // 2, 8 * NANO])
def test_shapes_of_empty_cells(epsilon, k):
    """From the curator: a cell without records has b = 0, its quarters b = -delta."""
    scale = 7 * k * NANO / (3 * epsilon)
    delta = max(int(np.ceil(scale * np.log(4))), 1)

    def p_values():
        sampler = SecureSampler()
        curator, _ = small_curator(2**20, (), k=k, budget=epsilon, domain=DOMAIN, sampler=sampler)
        cells = cut_grid(curator.cut, curator.root(), DOMAIN.lattice, (256, 256))
        leaves = curator.privtree_shape(cells, epsilon, height=2)
        width = leaves.boxes[:, 2] - leaves.boxes[:, 0]
        whole, halves = (int((width == 2**20 // 256 // part).sum()) for part in (1, 2))
        split = np.arange(len(cells)) < len(cells) - whole
        again = np.arange(4 * split.sum()) < 4 * split.sum() - halves
        return 2 * min(chance_p_value(split, 0, scale), chance_p_value(again, -delta, scale))

    assert holds(p_values)
