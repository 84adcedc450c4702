"""The sampler of releases, exact and of system randomness, and the law of counts. Private side."""

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
    """Counts plus noise; true: (n,), private; loss: (n,) int64, above 0, of the noise's measure."""
    if noise.law == DISCRETE_LAPLACE:
        return LaplaceMechanism(true=true, epsilon=loss, sensitivity=noise.sensitivity)
    if noise.law == DISCRETE_GAUSSIAN:
        squared = noise.squared_sensitivity
        return GaussianMechanism(true=true, rho=loss, squared_sensitivity=squared)
    raise KeyError(noise.law)
