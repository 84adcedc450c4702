"""Discrete Gaussian noise: the variances that theory and other sums give."""

import math

import numpy as np
import pytest

from psd.privacy.count_noise import CountNoise
from psd.privacy.noise_laws.discrete_gaussian import law

PICO = 10**12


def variance_at(parameter):
    """Variance at sigma^2, by a squared sensitivity of that size and rho 1/2."""
    return law.variance(np.array([PICO // 2]), parameter)[0]


@pytest.mark.parametrize(
    ("loss", "squared", "variance"),
    [
        pytest.param(3 * PICO // 2, 1, 0.321188265172, id="sigma^2 1/3"),
        pytest.param(PICO // 2, 1, 0.999999788768, id="sigma^2 1"),
        pytest.param(PICO // 2, 10, 10, id="sigma^2 10"),
        pytest.param(PICO // 2, 10**6, 10**6, id="sigma^2 1e6"),
    ],
)
def test_variance_is_that_of_the_exact_law(loss, squared, variance):
    assert law.variance(np.array([loss]), squared)[0] == pytest.approx(variance, rel=1e-11)


@pytest.mark.parametrize("parameter", [1, 2, 3, 4, 7, 30])
def test_variance_against_a_long_sum(parameter):
    noise = np.arange(-400, 401, dtype=np.float64)
    weight = np.exp(-(noise**2) / (2 * parameter))
    expected = (weight * noise**2).sum() / weight.sum()
    assert variance_at(parameter) == pytest.approx(expected, rel=1e-13)


def test_a_variance_of_sigma_itself_is_noticed():
    """Sigma in place of sigma^2 is another law wherever sigma is not one."""
    deviation = math.sqrt(variance_at(100))
    assert deviation == pytest.approx(10)
    assert CountNoise.gaussian(100).reach(PICO // 2, 0.05) == 20  # 1.96 deviations, less a half


def test_arrays_of_losses_have_the_variance_of_each():
    losses = np.array([0, PICO // 2, PICO // 20, PICO // 2])
    each = [law.variance(np.array([loss]), 3)[0] for loss in losses.tolist()]
    assert law.variance(losses, 3).tolist() == each


@pytest.mark.parametrize("squared", [4_095**2, 4_097**2])
def test_reach_is_the_same_on_both_sides_of_the_limit_of_sums(squared):
    deviation = math.sqrt(squared)
    assert law.reach(PICO // 2, squared, 0.05) == math.ceil(1.959963984540054 * deviation - 0.5)


def test_densities_of_pairs_of_noise_and_loss():
    """Losses of rows against noise of columns, some smooth and some not."""
    noise, loss = np.arange(-2, 3), np.array([[2 * PICO], [PICO // 50]])
    density = np.exp(law.log_density(noise, loss, 1))
    assert density.shape == (2, 5)
    weight = np.exp(-(np.arange(-60, 61.0) ** 2) * 2)
    assert density[0] == pytest.approx((weight / weight.sum())[58:63])
