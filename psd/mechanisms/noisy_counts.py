"""The mechanism that draws the noise of counts, by the law that the noise names."""

from __future__ import annotations

from psd._util.arrays import Integers
from psd.mechanisms.base import Mechanism
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.count_noise import CountNoise
from psd.privacy.noise_laws import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE

__all__ = ["count_mechanism"]


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
