"""Laws of the noise of published counts, one file each. Public: readers of a release need them.

A file ``psd/privacy/noise_laws/<name>.py`` that ends in ``law = <an instance>`` is a law. The
`psd.privacy.count_noise.CountNoise` of a tree names it; variances, likelihoods and intervals take
it from there. The private side draws from it in `psd.mechanisms`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util import plugins
from psd.privacy.loss import LossMeasure

__all__ = ["DISCRETE_GAUSSIAN", "DISCRETE_LAPLACE", "NoiseLaw", "noise"]

DISCRETE_LAPLACE = "discrete-laplace"
"""The law of every release whose tree names no other."""

DISCRETE_GAUSSIAN = "discrete-gaussian"
"""The law of counts whose loss is counted in rho."""


class NoiseLaw(Protocol):
    """A distribution of integer noise, by the privacy loss that was paid for each count."""

    @property
    def measure(self) -> LossMeasure:
        """What the loss is counted in."""

    def variance(self, loss: NDArray[np.int64], squared_sensitivity: int) -> NDArray[np.float64]:
        """Variance of the noise in records squared; infinite where ``loss`` is 0.

        Parameters
        ----------
        loss : ndarray, int64
            Loss paid for each count, in parts of the measure; 0 where a count was not measured.
        squared_sensitivity : int
            Square of the largest change of the counts by one unit of privacy: k^2 in epsilon, k
            times the largest number of records that one question sees in rho.
        """

    def log_density(
        self,
        noise: NDArray[np.integer | np.floating],
        loss: NDArray[np.int64],
        squared_sensitivity: int,
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of noise, at whole numbers and between them.

        Parameters
        ----------
        noise : ndarray
            Published count less a possible true count. Broadcast against ``loss``.
        loss, squared_sensitivity
            As in `variance`; every loss is above 0.
        """

    def rate(
        self, loss: NDArray[np.int64], squared_sensitivity: int, scale: int = 1
    ) -> NDArray[np.float64]:
        """Parameter of the likelihood of counts in units of ``scale``; 0 where the loss is 0.

        Parameters
        ----------
        loss, squared_sensitivity
            As in `variance`.
        scale : int
            Amount of one counted user, or 1 where records are counted.
        """

    def negative_log_likelihood(
        self, distance: NDArray[np.float64], rate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Minus the log-likelihood at distances from a noisy count, 0 at distance 0."""

    def inverse_variance(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the inverse of the variance of the noise; 0 where the rate is 0."""

    def tail_bound(self, loss: int, squared_sensitivity: int, outside: float) -> int:
        """Least integer t such that the noise exceeds t in magnitude with at most a probability.

        Parameters
        ----------
        loss : int
            In parts of the measure, above 0.
        squared_sensitivity : int
            As in `variance`.
        outside : float
            The probability, in (0, 1).
        """

    def signal_to_noise(
        self,
        count: int | NDArray[np.integer],
        loss: int | NDArray[np.int64],
        squared_sensitivity: int,
    ) -> float | NDArray[np.float64]:
        """Counts times sqrt(2) over the standard deviation, not corrected for whole numbers.

        For discrete Laplace noise it is the count over the scale, n epsilon / k. Methods size their
        cells by it; 0 where the loss is 0.
        """


def noise_law(name: str) -> NoiseLaw:
    """Law of a name.

    >>> noise_law("discrete-laplace").tail_bound(1_000_000_000, 1, outside=0.05)
    3
    """
    law: NoiseLaw = plugins.load(__name__, "noise law", name).law
    return law
