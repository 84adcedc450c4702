"""Laws of noise: variance, density and reach against sums over the exact distribution."""

import math

import numpy as np
import pytest

from psd._util import plugins
from psd.errors import ParameterError
from psd.privacy.epsilon import NANO
from psd.privacy.noise_laws import DISCRETE_LAPLACE, noise_law

LAWS = plugins.names("psd.privacy.noise_laws")
RATES = [0.02, 0.1, 1.0, 5.0]


def loss_of(law, fineness, squared):
    """Loss at which sqrt(2) over the standard deviation is about this, in parts."""
    sensitivity = math.sqrt(squared)
    amount = fineness * sensitivity if law.currency.is_pure else (fineness * sensitivity) ** 2 / 4
    return np.array([round(amount * law.currency.parts)])


def probabilities(law, rate, squared):
    """Probabilities of all noise that matters, by the density of the law."""
    noise = np.arange(-round(60 / rate), round(60 / rate) + 1)
    return noise, np.exp(law.log_density(noise.astype(float), loss_of(law, rate, squared), squared))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rate", RATES)
def test_density_sums_to_one_and_has_the_variance(name, rate, k):
    law = noise_law(name)
    noise, density = probabilities(law, rate, k**2)
    assert density.sum() == pytest.approx(1, rel=1e-9)
    variance = (density * noise**2).sum()
    assert law.variance(loss_of(law, rate, k**2), k**2)[0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_a_count_without_a_loss_has_no_finite_variance(name):
    law = noise_law(name)
    assert np.isinf(law.variance(np.array([0]), 1)[0])
    assert law.signal(np.array([5]), np.array([0]), 1)[0] == 0


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rate", [0.001, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("outside", [0.5, 0.05, 0.001])
def test_the_interval_is_the_shortest_that_covers(name, rate, outside):
    """Against the tail of the law, summed term by term."""
    law = noise_law(name)
    loss = loss_of(law, rate, 1)

    def beyond(reach):
        terms = np.arange(reach + 1, reach + 1 + int(60 / rate) + 60)
        return 2 * np.exp(law.log_density(terms, loss, 1)).sum()

    reach = law.reach(int(loss[0]), 1, outside)
    assert beyond(reach) <= outside * (1 + 1e-9)
    assert reach == 0 or beyond(reach - 1) > outside * (1 - 1e-9)


def test_an_unknown_law_is_refused():
    with pytest.raises(ParameterError, match="discrete-laplace"):
        noise_law("uniform")


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [1, 720_720])
def test_the_misfit_is_that_of_the_density(name, scale):
    """In counted units, up to the constant that a likelihood does not need."""
    law, squared = noise_law(name), (3 * scale) ** 2
    loss = np.array([0, NANO // 2, NANO])
    rate, distance = law.rate(loss, squared, scale), np.array([-7.5, 0, 0.5, 20])
    assert rate[0] == law.precision(rate)[0] == 0
    misfit = law.misfit(distance, rate[1:, None])
    density = law.log_density(distance * scale, loss[1:, None], squared)
    np.testing.assert_allclose(
        misfit, density.max(axis=1, keepdims=True) - density, rtol=1e-9, atol=1e-9
    )
    assert (misfit[:, 1] == 0).all()


@pytest.mark.parametrize("name", LAWS)
def test_precision_is_near_the_inverse_variance_of_small_losses(name):
    law = noise_law(name)
    loss = loss_of(law, 0.01, 1)
    precision = law.precision(law.rate(loss, 1))
    assert precision[0] * law.variance(loss, 1)[0] == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("name", LAWS)
def test_the_signal_is_that_of_the_deviation(name):
    """N sqrt(2) over the standard deviation, for noise that is much wider than one."""
    law = noise_law(name)
    loss = loss_of(law, 0.01, 12)
    deviation = math.sqrt(law.variance(loss, 12)[0])
    signal = law.signal(np.array([100]), loss, 12)[0]
    assert signal * deviation == pytest.approx(100 * math.sqrt(2), rel=0.2)


def test_the_signal_of_laplace_noise_is_the_count_over_its_scale():
    assert noise_law(DISCRETE_LAPLACE).signal(30, NANO // 2, 9) == 5.0
