"""The sampler of releases, and the law of the noise of counts. Private side.

Laws are exact, and draws come from the randomness of the operating system.
"""

from __future__ import annotations

from psd._util.arrays import Integers
from psd.mechanisms.base import Answer, Mechanism
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.count_noise import CountNoise
from psd.privacy.noise_laws import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE

__all__ = ["SecureSampler"]


class SecureSampler:
    """Draws each mechanism by its exact law; without state, so forks share no draws."""

    __slots__ = ()

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Draw the answer of a mechanism with the randomness of the operating system."""
        return mechanism.sample()


def count_mechanism(noise: CountNoise, true: Integers, loss: Integers) -> Mechanism[Integers]:
    """Counts plus noise of a law, whose factor is 1.

    true: (n,) int64, private; loss: (n,) int64, in parts of the measure of the noise, above 0.
    """
    if noise.law == DISCRETE_LAPLACE:
        return LaplaceMechanism(true=true, epsilon=loss, sensitivity=noise.sensitivity)
    if noise.law == DISCRETE_GAUSSIAN:
        squared = noise.squared_sensitivity
        return GaussianMechanism(true=true, rho=loss, squared_sensitivity=squared)
    raise KeyError(noise.law)
