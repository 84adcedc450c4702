"""The draws have the law. Planted bugs show that draws of another law are seen."""

from fractions import Fraction

import numpy as np
import pytest

from psd.mechanisms.bernoulli import bernoulli_exp
from psd.mechanisms.laplace import _by_rejection, discrete_laplace, discrete_laplace_each
from support.goodness_of_fit import (
    ALPHA,
    binomial_p_value,
    discrete_laplace_p_value,
    holds,
    independence_p_value,
)

N = 100_000
SCALES = [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100), Fraction(10**6)]
FACTORS = [Fraction(7, 10), Fraction(13, 10)]
each_scale = pytest.mark.parametrize("scale", SCALES, ids=str)


def size_for(scale):
    """At scale 1/10 only one draw in 10**4 is not zero."""
    return 10 * N if scale < 1 else N


def draw_one(scale, size):
    return discrete_laplace(scale.numerator, scale.denominator, size)


def draw_groups(scales, size, draw=discrete_laplace_each):
    """Draws of every scale, interleaved in one call, so that no two neighbours are alike."""
    factors = 10**9 + np.arange(len(scales))
    numerators = np.tile([s.numerator for s in scales] * factors, size)
    denominators = np.tile([s.denominator for s in scales] * factors, size)
    return draw(numerators, denominators).reshape(size, len(scales)).T


@each_scale
def test_one_scale_has_the_law(scale):
    size = size_for(scale)
    assert holds(lambda: discrete_laplace_p_value(draw_one(scale, size), float(scale)))


@each_scale
@pytest.mark.parametrize("factor", FACTORS, ids=str)
def test_one_scale_planted_factor_is_rejected(scale, factor):
    draws = draw_one(scale * factor, size_for(scale))
    assert discrete_laplace_p_value(draws, float(scale)) < ALPHA


# A few scales are sorted and drawn one after another; many are drawn by rejection.
DRAWS = {"sorted": discrete_laplace_each, "rejection": _by_rejection}
SEVERAL = {"small": SCALES[:1] * 2, "large": SCALES[1:]}  # the small scale needs more draws
SMALL = pytest.param(SEVERAL["small"], marks=pytest.mark.deep)


@pytest.mark.parametrize("scales", [SEVERAL["large"], SMALL], ids=["large", "small"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_scale_per_draw_has_the_laws(draw, scales):
    def p_value():
        groups = draw_groups(scales, size_for(scales[0]), draw)
        pairs = zip(groups, map(float, scales), strict=True)
        return min(discrete_laplace_p_value(*pair) for pair in pairs) * len(scales)  # Bonferroni

    assert holds(p_value)


def zero_p_value(draws, scale):
    """P-value of the number of zeros, P(X = 0) = (1 - q) / (1 + q)."""
    return binomial_p_value(draws == 0, np.tanh(0.5 / float(scale)))


@pytest.mark.parametrize("scale", SCALES[:4], ids=str)
def test_zero_has_its_probability(scale):
    assert holds(lambda: zero_p_value(draw_one(scale, N), scale))
    assert holds(lambda: zero_p_value(draw_groups([scale, scale + 1], N)[0], scale))


@pytest.mark.parametrize(("first", "scale"), [(10**15, 10.0), (10**18, 1e4)])
def test_budgets_that_differ_in_every_draw_have_the_law(first, scale):
    """No two scales alike, all within a billionth of one law, as far as a sample can tell.

    Near 2**60, the products of numerators and some draws do not fit in 64 bits.
    """
    numerators, denominators = first + np.arange(N), np.full(N, 10**14)

    def p_value():
        return discrete_laplace_p_value(discrete_laplace_each(numerators, denominators), scale)

    assert holds(p_value)


def test_draws_are_uncorrelated_and_signs_fair():
    assert holds(lambda: independence_p_value(draw_one(Fraction(10), N).astype(float)))


@pytest.mark.parametrize("exponent", [Fraction(1, 10), Fraction(1), Fraction(5, 2)], ids=str)
def test_bernoulli_exp_has_its_probability(exponent):
    shape = np.full(N, exponent.numerator), np.full(N, exponent.denominator)

    def p_value(of=exponent):
        return binomial_p_value(bernoulli_exp(*shape), np.exp(-float(of)))

    assert holds(p_value)
    assert all(p_value(exponent * factor) < ALPHA for factor in FACTORS)
