"""Laws of noise: variance, density and reach against sums over the exact distribution."""

import itertools
import math

import numpy as np
import pytest

from psd._util import plugins
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO
from psd.privacy.noise_laws import DISCRETE_LAPLACE, noise_law
from psd.privacy.noise_laws.discrete_gaussian import law

LAWS = {name: noise_law(name) for name in plugins.names("psd.privacy.noise_laws")}


def loss_of(law, fineness, squared):
    """Loss at which sqrt(2) over the standard deviation is about this, in parts."""
    sensitivity = math.sqrt(squared)
    amount = fineness * sensitivity if law.measure.is_pure else (fineness * sensitivity) ** 2 / 4
    return np.array([round(amount * law.measure.parts)])


def probabilities(law, rate, squared):
    """Probabilities of all noise that matters, by the density of the law."""
    noise = np.arange(-round(60 / rate), round(60 / rate) + 1)
    return noise, np.exp(law.log_density(noise.astype(float), loss_of(law, rate, squared), squared))


def test_density_sums_to_one_and_has_the_variance(subtests):
    for name, k, rate in itertools.product(LAWS, (1, 3), (0.02, 0.1, 1.0, 5.0)):
        law = LAWS[name]
        with subtests.test(name, k=k, rate=rate):
            noise, density = probabilities(law, rate, k**2)
            assert density.sum() == pytest.approx(1, rel=1e-9)
            variance = pytest.approx((density * noise**2).sum(), rel=1e-9)
            assert law.variance(loss_of(law, rate, k**2), k**2)[0] == variance


def test_the_interval_is_the_shortest_that_covers(subtests):
    """Against the tail of the law, summed term by term."""
    outsides = (0.5, 0.05, 0.001)
    for name, rate, outside in itertools.product(LAWS, (0.001, 0.1, 1.0, 5.0), outsides):
        law = LAWS[name]
        loss = loss_of(law, rate, 1)

        def beyond(reach, law=law, loss=loss, rate=rate):
            terms = np.arange(reach + 1, reach + 1 + int(60 / rate) + 60)
            return 2 * np.exp(law.log_density(terms, loss, 1)).sum()

        with subtests.test(name, rate=rate, outside=outside):
            reach = law.tail_bound(int(loss[0]), 1, outside)
            assert beyond(reach) <= outside * (1 + 1e-9)
            assert reach == 0 or beyond(reach - 1) > outside * (1 - 1e-9)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_misfit_is_that_of_the_density(law):
    """In counted units, up to the constant that a likelihood does not need."""
    loss, distance = np.array([0, NANO // 2, NANO]), np.array([-7.5, 0, 0.5, 20])
    for scale in (1, 720_720):
        squared = (3 * scale) ** 2
        rate = law.rate(loss, squared, scale)
        assert rate[0] == law.inverse_variance(rate)[0] == 0
        misfit = law.negative_log_likelihood(distance, rate[1:, None])
        density = law.log_density(distance * scale, loss[1:, None], squared)
        expected = density.max(axis=1, keepdims=True) - density
        np.testing.assert_allclose(misfit, expected, rtol=1e-9, atol=1e-9)
        assert (misfit[:, 1] == 0).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_precision_and_signal_follow_from_the_variance_where_noise_is_wide(law):
    """The signal is N sqrt(2) over the deviation; a count without a loss has no signal."""
    loss = loss_of(law, 0.01, 1)
    precision = law.inverse_variance(law.rate(loss, 1))
    assert precision[0] * law.variance(loss, 1)[0] == pytest.approx(1, rel=1e-3)
    loss = loss_of(law, 0.01, 12)
    deviation = math.sqrt(law.variance(loss, 12)[0])
    signal = law.signal_to_noise(np.array([100]), loss, 12)[0]
    assert signal * deviation == pytest.approx(100 * math.sqrt(2), rel=0.2)
    assert np.isinf(law.variance(np.array([0]), 1)[0])
    assert law.signal_to_noise(np.array([5]), np.array([0]), 1)[0] == 0


def test_the_signal_of_laplace_noise_is_the_count_over_its_scale():
    assert noise_law(DISCRETE_LAPLACE).signal_to_noise(30, NANO // 2, 9) == 5.0
    with pytest.raises(ParameterError, match="discrete-laplace"):
        noise_law("uniform")


# Discrete Gaussian noise: the variances that theory and other sums give


PICO = 10**12


def variance_at(parameter):
    """Variance at sigma^2, by a squared sensitivity of that size and rho 1/2."""
    return law.variance(np.array([PICO // 2]), parameter)[0]


def test_variance_is_that_of_the_exact_law():
    thirds = law.variance(np.array([3 * PICO // 2]), 1)[0]  # sigma^2 of 1/3
    assert thirds == pytest.approx(0.321188265172, rel=1e-11)
    for squared, variance in ((1, 0.999999788768), (10, 10), (100, 100), (10**6, 10**6)):
        assert variance_at(squared) == pytest.approx(variance, rel=1e-11)
    noise = np.arange(-400, 401, dtype=np.float64)
    for parameter in (1, 2, 3, 4, 7, 30):
        weight = np.exp(-(noise**2) / (2 * parameter))
        expected = (weight * noise**2).sum() / weight.sum()
        assert variance_at(parameter) == pytest.approx(expected, rel=1e-13)
    losses = np.array([0, PICO // 2, PICO // 20, PICO // 2])
    each = [law.variance(np.array([loss]), 3)[0] for loss in losses.tolist()]
    assert law.variance(losses, 3).tolist() == each


def test_reach_is_the_same_on_both_sides_of_the_limit_of_sums():
    for deviation in (4_095, 4_097):
        reach = math.ceil(1.959963984540054 * deviation - 0.5)
        assert law.tail_bound(PICO // 2, deviation**2, 0.05) == reach
    assert (
        CountNoise.gaussian(100).tail_bound(PICO // 2, 0.05) == 20
    )  # 1.96 deviations, less a half


def test_densities_of_pairs_of_noise_and_loss():
    """Losses of rows against noise of columns, some smooth and some not."""
    noise, loss = np.arange(-2, 3), np.array([[2 * PICO], [PICO // 50]])
    density = np.exp(law.log_density(noise, loss, 1))
    assert density.shape == (2, 5)
    weight = np.exp(-(np.arange(-60, 61.0) ** 2) * 2)
    assert density[0] == pytest.approx((weight / weight.sum())[58:63])
