"""Exact integer noise from operating-system randomness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.epsilon import NANO
from psd.noise.laplace import discrete_laplace, discrete_laplace_each

__all__ = ["SecureNoise", "discrete_laplace", "discrete_laplace_each"]


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
