"""Laws of noise: variance, density and reach against sums over the exact distribution."""

import math

import numpy as np
import pytest

from psd._util import plugins
from psd.errors import ParameterError
from psd.privacy.epsilon import NANO
from psd.privacy.noise_laws import DISCRETE_LAPLACE, noise_law
from psd.privacy.noise_variance import noise_variance

LAWS = plugins.names("psd.privacy.noise_laws")
RATES = [0.02, 0.1, 1.0, 5.0]


def probabilities(law, rate, k):
    """Probabilities of all noise that matters, by the density of the law."""
    noise = np.arange(-round(60 / rate), round(60 / rate) + 1)
    epsilon = np.array([round(rate * k * NANO)])
    return noise, np.exp(law.log_density(noise.astype(float), epsilon, k))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rate", RATES)
def test_density_sums_to_one_and_has_the_variance(name, rate, k):
    noise, density = probabilities(noise_law(name), rate, k)
    assert density.sum() == pytest.approx(1, rel=1e-9)
    variance = (density * noise**2).sum()
    epsilon = np.array([round(rate * k * NANO)])
    assert noise_variance(epsilon, k, name)[0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_a_count_without_epsilon_has_no_finite_variance(name):
    assert np.isinf(noise_variance(np.array([0]), 1, name)[0])


@pytest.mark.parametrize("rate", [0.001, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("outside", [0.5, 0.05, 0.001])
def test_the_interval_is_the_shortest_that_covers(rate, outside):
    """Against the tail of the law, summed term by term."""

    def beyond(reach):
        q, terms = math.exp(-rate), np.arange(reach + 1, reach + 1 + int(60 / rate) + 60)
        return 2 * (1 - q) / (1 + q) * np.exp(-rate * terms).sum()

    reach = noise_law(DISCRETE_LAPLACE).reach(round(rate * NANO), 1, outside)
    assert beyond(reach) <= outside * (1 + 1e-9)
    assert reach == 0 or beyond(reach - 1) > outside * (1 - 1e-9)


def test_an_unknown_law_is_refused():
    with pytest.raises(ParameterError, match="discrete-laplace"):
        noise_law("uniform")


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [1, 720_720])
def test_the_misfit_is_that_of_the_density(name, scale):
    """In counted units, up to the constant that a likelihood does not need."""
    law, epsilon, k = noise_law(name), np.array([0, NANO // 2, NANO]), 3 * scale
    rate, distance = law.rate(epsilon, k, scale), np.array([-7.5, 0, 0.5, 20])
    assert rate[0] == law.precision(rate)[0] == 0
    misfit = law.misfit(distance, rate[1:, None])
    density = law.log_density(distance * scale, epsilon[1:, None], k)
    np.testing.assert_allclose(misfit, density.max(axis=1, keepdims=True) - density, rtol=1e-9)
    assert (misfit[:, 1] == 0).all()


@pytest.mark.parametrize("name", LAWS)
def test_precision_is_near_the_inverse_variance_of_small_epsilons(name):
    law, epsilon = noise_law(name), np.array([NANO // 100])
    precision = law.precision(law.rate(epsilon, 1))
    assert precision[0] * law.variance(epsilon, 1)[0] == pytest.approx(1, rel=1e-3)
