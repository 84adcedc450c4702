"""Exact integer noise from operating-system randomness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.epsilon import NANO
from psd.noise.laplace import discrete_laplace, discrete_laplace_each
from psd.noise.selection import Candidates, exponential

__all__ = ["SecureNoise", "discrete_laplace", "discrete_laplace_each", "exponential"]


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
        if len(true) == 0:
            return true.copy()
        scale = sensitivity * NANO
        if (epsilon == epsilon[0]).all():
            return true + discrete_laplace(scale, int(epsilon[0]), len(true))
        return true + discrete_laplace_each(np.full(len(true), scale), epsilon)

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
