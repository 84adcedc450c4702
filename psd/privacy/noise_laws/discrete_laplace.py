"""Discrete Laplace noise: P(x) = (1 - q) / (1 + q) q^|x| with q = exp(-epsilon / k)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from psd.privacy.loss import EPSILON, NANO, LossMeasure


class DiscreteLaplace:
    """Law of the noise of counts under pure differential privacy.

    The loss is nano-epsilon; the squared sensitivity is k^2, k the largest change of all counts by
    one unit. The variance is 2q / (1 - q)^2, and P(abs(noise) > t) = 2 q^(t + 1) / (1 + q) for
    whole t [1]_.

    .. [1] Inusah, Kozubowski. "A Discrete Analogue of the Laplace Distribution." Journal of
       Statistical Planning and Inference 136(3), 2006.
    """

    __slots__ = ()

    measure: ClassVar[LossMeasure] = EPSILON

    def variance(self, loss: NDArray[np.int64], squared_sensitivity: int) -> NDArray[np.float64]:
        """Variance of the noise; see `psd.privacy.noise_laws.NoiseLaw`."""
        # 2q / (1 - q)^2 = 1 / (2 sinh^2(epsilon / 2)), which does not cancel for a small epsilon.
        half = np.minimum(loss / (2 * NANO * math.isqrt(squared_sensitivity)), 150)
        with np.errstate(divide="ignore"):
            return 1 / (2 * np.sinh(half) ** 2)

    def log_density(
        self,
        noise: NDArray[np.integer | np.floating],
        loss: NDArray[np.int64],
        squared_sensitivity: int,
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of noise; see `psd.privacy.noise_laws.NoiseLaw`."""
        rate = self.rate(loss, squared_sensitivity)
        # (1 - q) / (1 + q) = tanh(rate / 2).
        density: NDArray[np.float64] = np.log(np.tanh(rate / 2)) - rate * np.abs(noise)
        return density

    def rate(
        self, loss: NDArray[np.int64], squared_sensitivity: int, scale: int = 1
    ) -> NDArray[np.float64]:
        """Parameter of the likelihood of counts; see `psd.privacy.noise_laws.NoiseLaw`."""
        return loss * scale / (NANO * math.isqrt(squared_sensitivity))

    def negative_log_likelihood(
        self, distance: NDArray[np.float64], rate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Minus the log-likelihood at distances; see `psd.privacy.noise_laws.NoiseLaw`."""
        return rate * np.abs(distance)

    def inverse_variance(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the inverse of the variance; see `psd.privacy.noise_laws.NoiseLaw`."""
        return rate**2 / 2

    def tail_bound(self, loss: int, squared_sensitivity: int, outside: float) -> int:
        """Least t that the noise exceeds so rarely; see `psd.privacy.noise_laws.NoiseLaw`."""
        rate = loss / (NANO * math.isqrt(squared_sensitivity))
        odds = math.log(2 / (outside * (1 + math.exp(-rate))))
        return max(math.ceil(odds / rate - 1), 0)

    def signal_to_noise(
        self,
        count: int | NDArray[np.integer],
        loss: int | NDArray[np.int64],
        squared_sensitivity: int,
    ) -> float | NDArray[np.float64]:
        """N epsilon / k; see `psd.privacy.noise_laws.NoiseLaw`."""
        scale = NANO * math.isqrt(squared_sensitivity)
        # The product of whole numbers is exact; that of arrays could pass 64 bits.
        if isinstance(count, int):
            return count * loss / scale
        return count * (np.asarray(loss) / scale)


def laplace_tail(weights: Sequence[float], distance: float) -> float:
    """Probability that a Laplace sum is farther from 0; two variables of any weights, or all 1."""
    large, small = sorted((abs(weights[0]), abs(weights[1])), reverse=True)
    if len(weights) == 2 and large - small > 1e-6 * large:
        tails = [w * w * math.exp(-distance / w) if w else 0.0 for w in (large, small)]
        return (tails[0] - tails[1]) / (large * large - small * small)
    n, t = len(weights), distance / large
    terms = (
        t**i / math.factorial(i) * math.comb(n + j - 1, j) / 2.0 ** (n + j)
        for i in range(n)
        for j in range(n - i)
    )
    return 2 * math.exp(-t) * math.fsum(terms)


def laplace_reach(weights: Sequence[float], outside: float) -> float:
    """Distance from 0 that such a sum passes with a probability; see `laplace_tail`."""
    low, high = 0.0, max(map(abs, weights))
    while laplace_tail(weights, high) > outside:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if laplace_tail(weights, middle) > outside else (low, middle)
    return high


law = DiscreteLaplace()
