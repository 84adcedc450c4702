"""The draws have the law, and draws of another law are seen."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from psd.mechanisms.bernoulli import bernoulli_exp
from psd.mechanisms.geometric import geometric_each
from psd.mechanisms.laplace import _by_rejection, discrete_laplace, discrete_laplace_each
from psd.mechanisms.random_words import random_bits
from support.goodness_of_fit import ALPHA, discrete_laplace_p_value, holds, two_sample_p_value

N = 100_000
SCALES = [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100), Fraction(10**6)]


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
    noise = draw(numerators, denominators)
    return noise.reshape(size, len(scales)).T


def zero_doubled(scale, size):
    """The planted bug: a sign without the refusal of the negative zero."""
    shape = np.full(size, scale.numerator), np.full(size, scale.denominator)
    return np.where(random_bits(size), -1, 1) * geometric_each(*shape)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_one_scale_has_the_law(scale):
    size = size_for(scale)
    assert holds(lambda: discrete_laplace_p_value(draw_one(scale, size), float(scale)))


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_one_scale_planted_factor_is_rejected(scale, factor):
    draws = draw_one(scale * factor, size_for(scale))
    assert discrete_laplace_p_value(draws, float(scale)) < ALPHA


@pytest.mark.parametrize(
    "draw", [discrete_laplace_each, _by_rejection], ids=["sorted", "rejection"]
)
def test_a_scale_per_draw_has_the_laws(draw):
    """A few scales are sorted and drawn one after another; many are drawn by rejection."""
    small, large = SCALES[:1], SCALES[1:]
    for scales in (small * 2, large):  # the small scale needs more draws
        size = size_for(scales[0])

        def p_value(scales=scales, size=size):
            groups = draw_groups(scales, size, draw)
            p_values = map(discrete_laplace_p_value, groups, map(float, scales))
            return min(p_values) * len(scales)  # Bonferroni

        assert holds(p_value)


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
def test_a_scale_per_draw_planted_factor_is_rejected(factor):
    for scales in (SCALES[:1] * 2, SCALES[1:]):
        groups = draw_groups([scale * factor for scale in scales], size_for(scales[0]))
        for scale, draws in zip(scales, groups, strict=True):
            assert discrete_laplace_p_value(draws, float(scale)) < ALPHA


@pytest.mark.parametrize("scale", SCALES[1:4], ids=str)
def test_planted_double_zero_is_rejected(scale):
    draws = zero_doubled(scale, N)
    assert zero_p_value(draws, scale) < ALPHA
    if scale <= 10:  # above, the cell of zero holds too many other values
        assert discrete_laplace_p_value(draws, float(scale)) < ALPHA


@pytest.mark.parametrize("scale", SCALES[:4], ids=str)
def test_zero_has_its_probability(scale):
    assert holds(lambda: zero_p_value(draw_one(scale, N), scale))
    assert holds(lambda: zero_p_value(draw_groups([scale, scale + 1], N)[0], scale))


def zero_p_value(draws, scale):
    """P-value of the number of zeros, P(X = 0) = (1 - q) / (1 + q)."""
    zero = np.tanh(0.5 / float(scale))
    return stats.binomtest(int((draws == 0).sum()), draws.size, zero).pvalue


def test_large_fractions_have_the_law():
    """Numerators near 2**60: the products of some draws do not fit in 64 bits."""
    numerators = 10**18 + np.arange(N)
    denominators = np.full(N, 10**14)

    def p_value():
        return discrete_laplace_p_value(discrete_laplace_each(numerators, denominators), 1e4)

    assert holds(p_value)


def test_budgets_that_differ_in_every_draw_have_the_law():
    """No two scales alike, all within a billionth of 10: one law as far as a sample can tell."""
    numerators = 10**15 + np.arange(N)
    denominators = np.full(N, 10**14)

    def p_value():
        return discrete_laplace_p_value(discrete_laplace_each(numerators, denominators), 10.0)

    assert holds(p_value)


def test_draws_are_uncorrelated_and_signs_fair():
    def p_value():
        draws = draw_one(Fraction(10), N).astype(float)
        signs = np.sign(draws)
        pairs = [
            (draws[:-1], draws[1:]),  # one draw and the next
            (draws[:-2], draws[2:]),
            (signs, np.abs(draws)),  # sign and magnitude of one word
            (signs[:-1], signs[1:]),
        ]
        p_values = [stats.pearsonr(*pair).pvalue for pair in pairs]
        nonzero = draws[draws != 0]
        p_values.append(stats.binomtest(int((nonzero > 0).sum()), nonzero.size).pvalue)
        return min(p_values) * len(p_values)

    assert holds(p_value)


@pytest.mark.parametrize("exponent", [Fraction(1, 10), Fraction(1), Fraction(5, 2)], ids=str)
def test_bernoulli_exp_has_its_probability(exponent):
    shape = np.full(N, exponent.numerator), np.full(N, exponent.denominator)

    def p_value(of=exponent):
        return stats.binomtest(int(bernoulli_exp(*shape).sum()), N, np.exp(-float(of))).pvalue

    assert holds(p_value)
    assert p_value(exponent * Fraction(13, 10)) < ALPHA
    assert p_value(exponent * Fraction(7, 10)) < ALPHA


def test_agrees_with_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=10.0)

    def p_value(scale=Fraction(10)):
        return two_sample_p_value(np.array(measurement([0] * N)), draw_one(scale, N))

    assert holds(p_value)
    assert p_value(Fraction(7)) < ALPHA
    assert p_value(Fraction(13)) < ALPHA
