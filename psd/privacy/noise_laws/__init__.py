"""Laws of the noise of published counts, one file each. Public: readers of a release need them.

A file ``psd/privacy/noise_laws/<name>.py`` that ends in ``law = <an instance>`` is a law. The tree
of a release names the law of its noise; variances, likelihoods and intervals take it from there.
The private side draws from the law in `psd.mechanisms`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util import plugins

__all__ = ["DISCRETE_LAPLACE", "NoiseLaw", "noise_law"]

DISCRETE_LAPLACE = "discrete-laplace"
"""The law of every release whose tree names no other."""


class NoiseLaw(Protocol):
    """A distribution of integer noise, by the privacy loss that was paid for each count."""

    def variance(self, epsilon: NDArray[np.int64], contributions: int) -> NDArray[np.float64]:
        """Variance of the noise in records squared; infinite where ``epsilon`` is 0.

        Parameters
        ----------
        epsilon : ndarray, int64
            Nano-epsilon spent on each count; 0 where a count was not measured.
        contributions : int
            k, the largest change of the counts by one unit of privacy.
        """

    def log_density(
        self,
        noise: NDArray[np.integer | np.floating],
        epsilon: NDArray[np.int64],
        contributions: int,
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of noise, at whole numbers and between them.

        Parameters
        ----------
        noise : ndarray
            Published count less a possible true count. Broadcast against ``epsilon``.
        epsilon, contributions
            As in `variance`; every epsilon is above 0.
        """

    def rate(
        self, epsilon: NDArray[np.int64], contributions: int, scale: int = 1
    ) -> NDArray[np.float64]:
        """Parameter of the likelihood of counts in units of ``scale``; 0 where epsilon is 0.

        Parameters
        ----------
        epsilon, contributions
            As in `variance`.
        scale : int
            Amount of one counted user, or 1 where records are counted.
        """

    def misfit(
        self, distance: NDArray[np.float64], rate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Minus the log-likelihood at distances from a noisy count, 0 at distance 0."""

    def precision(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the inverse of the variance of the noise; 0 where the rate is 0."""

    def reach(self, epsilon: int, contributions: int, outside: float) -> int:
        """Least integer t such that the noise exceeds t in magnitude with at most a probability.

        Parameters
        ----------
        epsilon : int
            Nano-epsilon, above 0.
        contributions : int
            As in `variance`.
        outside : float
            The probability, in (0, 1).
        """


def noise_law(name: str) -> NoiseLaw:
    """Law of a name.

    Raises
    ------
    ParameterError
        If there is no such law; the message lists those that exist.

    Examples
    --------
    >>> noise_law("discrete-laplace").reach(1_000_000_000, 1, outside=0.05)
    3
    """
    law: NoiseLaw = plugins.load(__name__, "noise law", name).law
    return law
