"""Levels of intervals that hold together: what is known exactly, and the limits."""

from statistics import NormalDist

import numpy as np
import pytest

from psd.query.joint import simultaneous_level


def equal_correlation(size, rho):
    return np.full((size, size), rho) + (1 - rho) * np.eye(size)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_independent_answers_need_sidak(size, confidence):
    level = simultaneous_level(np.eye(size), confidence)
    sidak = confidence ** (1 / size)
    assert confidence <= level <= sidak
    assert 1 - level == pytest.approx(1 - sidak, rel=0.02)


@pytest.mark.parametrize("size", [2, 10])
def test_one_and_the_same_answer_needs_nothing_more(size):
    assert simultaneous_level(np.ones((size, size)), 0.9) == pytest.approx(0.9, abs=2e-4)
    signs = np.where(np.arange(size) % 2, 1.0, -1.0)
    assert simultaneous_level(np.outer(signs, signs), 0.9) == pytest.approx(0.9, abs=2e-4)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9])
def test_two_answers_against_the_bivariate_normal(rho):
    from scipy.stats import multivariate_normal

    level = simultaneous_level(equal_correlation(2, rho), 0.95)
    c = -NormalDist().inv_cdf((1 - level) / 2)
    normal = multivariate_normal(cov=equal_correlation(2, rho))
    inside = normal.cdf([c, c], lower_limit=[-c, -c])
    assert inside == pytest.approx(0.95, abs=5e-4)


def test_many_alike_against_an_integral():
    # z_i = sqrt(rho) u + sqrt(1 - rho) e_i: given u the answers are independent.
    from scipy.integrate import quad
    from scipy.stats import norm

    rho, size = 0.5, 20
    level = simultaneous_level(equal_correlation(size, rho), 0.95)
    c = -NormalDist().inv_cdf((1 - level) / 2)

    def inside(u):
        one = norm.cdf((c - rho**0.5 * u) / (1 - rho) ** 0.5)
        other = norm.cdf((-c - rho**0.5 * u) / (1 - rho) ** 0.5)
        return norm.pdf(u) * (one - other) ** size

    assert quad(inside, -9, 9)[0] == pytest.approx(0.95, abs=2e-3)


def test_same_correlation_same_level():
    matrix = equal_correlation(30, 0.4)
    assert simultaneous_level(matrix, 0.95) == simultaneous_level(matrix, 0.95)


def test_more_correlation_needs_less():
    levels = [simultaneous_level(equal_correlation(8, rho), 0.95) for rho in (0, 0.3, 0.6, 0.9)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] - levels[-1] > 0.01


def test_no_answers():
    assert simultaneous_level(np.empty((0, 0)), 0.95) == 0.95
