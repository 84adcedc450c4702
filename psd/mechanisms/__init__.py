"""Exact integer noise from operating-system randomness."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.exponential_mechanism import Candidates, exponential
from psd.mechanisms.laplace import discrete_laplace, discrete_laplace_each
from psd.privacy.epsilon import NANO

__all__ = ["Noise", "SecureNoise", "discrete_laplace", "discrete_laplace_each", "exponential"]


class Noise(Protocol):
    """The mechanisms that the curator draws from.

    `SecureNoise` is the one for releases; tests record and replay through another.
    """

    def count(
        self, true: NDArray[np.int64], epsilon: NDArray[np.int64], sensitivity: int
    ) -> NDArray[np.int64]:
        """Noisy counts: true counts plus discrete Laplace noise of scale sensitivity / epsilon."""

    def select(
        self,
        candidates: Candidates,
        epsilon: NDArray[np.int64],
        sensitivity: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """One candidate per group, by the exponential mechanism."""

    def exceeds(
        self, biased: NDArray[np.int64], numerator: int, denominator: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each number plus discrete Laplace noise of its scale is above 0."""


class SecureNoise:
    """The mechanisms of a release: exact laws, drawn from the operating system's randomness.

    Guarantees
    ----------
    - The noise has no state: forked processes and repeated builds never share draws.
    """

    __slots__ = ()

    def count(
        self, true: NDArray[np.int64], epsilon: NDArray[np.int64], sensitivity: int
    ) -> NDArray[np.int64]:
        """Add discrete Laplace noise of scale sensitivity / epsilon to true counts.

        Parameters
        ----------
        true : ndarray, shape (n,), int64
            Private.
        epsilon : ndarray, shape (n,), int64
            Nano-epsilon for each count, above 0.
        sensitivity : int
            Most that one unit changes the counts by in sum.

        Returns
        -------
        ndarray, shape (n,), int64
        """
        return true + _laplace(sensitivity * NANO, epsilon)

    def exceeds(
        self, biased: NDArray[np.int64], numerator: int, denominator: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Tell which numbers are above 0 with discrete Laplace noise added.

        Parameters
        ----------
        biased : ndarray, shape (n,), int64
            Private.
        numerator : int
            The scales of the noise are numerator / denominator.
        denominator : ndarray, shape (n,), int64
            Above 0.

        Returns
        -------
        ndarray, shape (n,), bool
        """
        noisy = biased + _laplace(numerator, denominator)
        above: NDArray[np.bool_] = noisy > 0
        return above

    def select(
        self,
        candidates: Candidates,
        epsilon: NDArray[np.int64],
        sensitivity: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Select one candidate per group by the exponential mechanism.

        Parameters
        ----------
        candidates : Candidates
            Private scores of public candidates.
        epsilon : ndarray, shape (g,), int64
            Nano-epsilon of each group, above 0.
        sensitivity : ndarray, shape (g,), int64
            Most that one unit changes any score of the group.

        Returns
        -------
        ndarray, shape (g,), int64
        """
        if len(epsilon) == 0:
            return np.empty(0, np.int64)
        return exponential(candidates, epsilon, sensitivity)


def _laplace(numerator: int, denominator: NDArray[np.int64]) -> NDArray[np.int64]:
    """Discrete Laplace noise of scale numerator / denominator, one draw each."""
    if len(denominator) == 0:
        return np.zeros(0, np.int64)
    if (denominator == denominator[0]).all():
        return discrete_laplace(numerator, int(denominator[0]), len(denominator))
    return discrete_laplace_each(np.full(len(denominator), numerator), denominator)
