"""The noise of counts: what a loss means by law, sensitivity and factor."""

import math
from fractions import Fraction

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.currency import EPSILON, RHO
from psd.privacy.epsilon import NANO

PICO = 10**12
NOISES = {"laplace": CountNoise.laplace(3), "gaussian": CountNoise.gaussian(9)}
LOSSES = np.array([0, NANO // 2, NANO])


def test_each_law_counts_its_loss_in_its_currency():
    assert CountNoise().currency is EPSILON
    assert CountNoise.gaussian(1).currency is RHO


def test_gaussian_noise_has_the_variance_of_its_rho():
    """S^2 / (2 rho): 4 records of a user of whom one question sees 1, at rho .02."""
    assert CountNoise.gaussian(4).variance(np.array([PICO // 50]))[0] == pytest.approx(100)


def test_the_sensitivity_of_a_pure_law_follows_from_the_unit():
    assert CountNoise().for_contributions(5) == CountNoise.laplace(5)
    assert CountNoise.gaussian(7).for_contributions(5) == CountNoise.gaussian(7)


@pytest.mark.parametrize("name", NOISES)
def test_a_factor_multiplies_the_variance(name):
    noise = NOISES[name]
    totals = CountNoise(
        law=noise.law, squared_sensitivity=noise.squared_sensitivity, factor=Fraction(5, 2)
    )
    np.testing.assert_allclose(totals.variance(LOSSES), 2.5 * noise.variance(LOSSES))
    assert totals.signal(100, NANO) == pytest.approx(noise.signal(100, NANO) / math.sqrt(2.5))


@pytest.mark.parametrize("name", NOISES)
def test_the_likelihood_of_computed_counts_is_normal(name):
    noise = CountNoise(law=NOISES[name].law, squared_sensitivity=9, factor=Fraction(4))
    variance, rate = noise.variance(LOSSES), noise.rate(LOSSES, scale=2)
    assert rate[0] == 0
    np.testing.assert_allclose(noise.precision(rate)[1:], 4 / variance[1:])
    distance = np.array([3.0])
    misfit = noise.misfit(distance, rate[1:])
    np.testing.assert_allclose(misfit, (2 * distance) ** 2 / (2 * variance[1:]))
    density = noise.log_density(2 * distance, LOSSES[1:])
    np.testing.assert_allclose(misfit, noise.log_density(0 * distance, LOSSES[1:]) - density)


def test_the_signal_of_laplace_noise_is_the_count_over_its_scale():
    noise = CountNoise.laplace(4)
    assert noise.signal(1_000, NANO // 2) == 125.0
    assert noise.signal(np.array([-3, 8]), np.array([NANO, NANO])).tolist() == [0.0, 2.0]


def test_the_signal_of_gaussian_noise_is_that_of_laplace_noise_of_the_same_variance():
    """N sqrt(2) / sd: at sd 10 a count of 1,000 has 141.4."""
    assert CountNoise.gaussian(4).signal(1_000, PICO // 50) == pytest.approx(100 * math.sqrt(2))


@pytest.mark.parametrize("wrong", [{"squared_sensitivity": 0}, {"factor": Fraction(0)}])
def test_numbers_that_are_not_above_0_are_refused(wrong):
    with pytest.raises(ParameterError, match="must be above 0"):
        CountNoise(**wrong)
