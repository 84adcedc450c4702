"""Variance of the noise of published counts, by the law that a tree names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.privacy.noise_laws import DISCRETE_LAPLACE, noise_law

__all__ = ["noise_variance"]


def noise_variance(
    epsilon: NDArray[np.int64], contributions: int, law: str = DISCRETE_LAPLACE
) -> NDArray[np.float64]:
    """Variance of the noise of counts.

    Parameters
    ----------
    epsilon : ndarray, shape (n,), int64
        Nano-epsilon; 0 where nothing was measured.
    contributions : int
        k, by which every scale is multiplied.
    law : str
        Name of the law of the noise, such as ``tree.noise_law``.

    Returns
    -------
    ndarray, shape (n,), float64
        Records squared; infinite where epsilon is 0.

    Examples
    --------
    >>> noise_variance(np.array([1_000_000_000, 0]), 1).round(4)
    array([1.8413,    inf])
    """
    return noise_law(law).variance(epsilon, contributions)
