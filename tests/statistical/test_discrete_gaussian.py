"""The draws have the law of discrete Gaussian noise. Planted bugs show that others are seen."""

from fractions import Fraction

import numpy as np
import pytest

from psd.mechanisms import gaussian
from psd.mechanisms.gaussian import _by_rejection, discrete_gaussian_each
from support.goodness_of_fit import ALPHA, discrete_gaussian_p_value, holds, independence_p_value

N = 100_000
VARIANCES = [Fraction(1, 3), Fraction(1), Fraction(41, 2), Fraction(10**4), Fraction(10**12)]


def size_for(variance):
    """Draws at small parameters are mostly 0, and tell less."""
    return 10 * N if variance < 1 else N


def draw_table(variance, size):
    return gaussian.discrete_gaussian(variance.numerator, variance.denominator, size)


def draw_rejection(variance, size):
    denominators = np.full(size, variance.denominator, dtype=object)
    return _by_rejection(variance.numerator, denominators)


each_way = pytest.mark.parametrize("draw", [draw_table, draw_rejection], ids=["table", "rejection"])
SMALLEST = pytest.param(VARIANCES[0], marks=pytest.mark.deep, id="1/3")


@each_way
@pytest.mark.parametrize("variance", [SMALLEST, *VARIANCES[1:]], ids=str)
def test_one_parameter_has_the_law(draw, variance):
    size = size_for(variance)
    assert holds(lambda: discrete_gaussian_p_value(draw(variance, size), variance))


def test_a_parameter_per_draw_has_the_laws():
    """No two parameters alike, all within a hundred-thousandth: one law as a sample can tell."""
    denominators = 10**10 + np.arange(N)

    def p_value(variance=1000):
        draws = discrete_gaussian_each(1000 * 10**10, denominators)
        return discrete_gaussian_p_value(draws, variance)

    assert holds(p_value)
    assert p_value(900) < ALPHA


def test_levels_of_a_tree_have_their_laws():
    denominators = np.repeat([3, 10, 30], N)

    def p_value():
        draws = discrete_gaussian_each(300, denominators)
        groups = [(draws[denominators == d], Fraction(300, d)) for d in (3, 10, 30)]
        return 3 * min(discrete_gaussian_p_value(*group) for group in groups)

    assert holds(p_value)


@each_way
def test_draws_are_uncorrelated_and_signs_fair(draw):
    assert holds(lambda: independence_p_value(draw(Fraction(100), N).astype(float)))
