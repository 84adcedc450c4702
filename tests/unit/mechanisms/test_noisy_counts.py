"""The mechanism of a noise: its law, its scale and its cost."""

import numpy as np
import pytest

from psd._util import plugins
from psd.mechanisms.sampler import count_mechanism
from psd.privacy.count_noise import CountNoise

LOSS = np.array([10**9, 3 * 10**9])
TRUE = np.array([5, 0])


@pytest.mark.parametrize("name", plugins.own_names("psd.privacy.noise_laws"))
def test_the_mechanism_has_the_law_that_readers_are_told(name):
    """Equal log-probabilities at 50 answers: sigma in place of sigma^2 is another law."""
    noise = CountNoise(law=name, squared_sensitivity=36)
    mechanism = count_mechanism(noise, TRUE, LOSS)
    assert mechanism.cost.tolist() == LOSS.tolist()
    for offset in range(-25, 25):
        expected = noise.log_density(np.full(2, offset), LOSS)
        found = mechanism.log_probability(TRUE + offset)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
