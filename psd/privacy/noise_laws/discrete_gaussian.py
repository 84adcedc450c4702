"""Discrete Gaussian noise: P(x) proportional to exp(-x^2 / (2 s)) with s = S^2 / (2 rho)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from psd.privacy.loss import RHO, LossMeasure

# From this parameter on, variance and normalisation are those of the normal law to 16 digits: the
# first term of the dual series is exp(-2 pi^2 s).
_SMOOTH = 3.0
# Terms of a sum on each side: at parameters below _SMOOTH, the last is below exp(-500).
_TERMS = 60
# Standard deviations up to which tails are summed term by term.
_SUMMED = 2**12


class DiscreteGaussian:
    """Law of the noise of counts under zero-concentrated differential privacy.

    The loss is rho in units of 1e-12; S^2 = k times the largest number of records of one unit that
    one question sees. The parameter s = S^2 / (2 rho) is not the variance, the sum over the exact
    law, where it is small: s = 1/3 has a variance of 0.3212 [1]_.

    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010, section 4.
    """

    __slots__ = ()

    measure: ClassVar[LossMeasure] = RHO

    def variance(self, loss: NDArray[np.int64], squared_sensitivity: int) -> NDArray[np.float64]:
        """Variance of the noise; see `psd.privacy.noise_laws.NoiseLaw`."""
        with np.errstate(divide="ignore"):
            parameter = 1 / self.rate(loss, squared_sensitivity)
        variance = np.array(parameter, np.float64)
        is_small = parameter < _SMOOTH
        # Sums over the law, once for each parameter: there are few among many nodes.
        different, which = np.unique(parameter[is_small], return_inverse=True)
        squares, weights = _squares_and_weights(different)
        moments = (squares * weights).sum(axis=1) / weights.sum(axis=1)
        variance[is_small] = moments[which.reshape(-1)]
        return variance

    def log_density(
        self,
        noise: NDArray[np.integer | np.floating],
        loss: NDArray[np.int64],
        squared_sensitivity: int,
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of noise; see `psd.privacy.noise_laws.NoiseLaw`."""
        rate = self.rate(loss, squared_sensitivity)
        # The sum of all weights: that of the normal law, but where the parameter is small.
        parameter = 1 / rate
        total: NDArray[np.float64] = 0.5 * np.log(2 * np.pi * parameter)
        is_small = parameter < _SMOOTH
        total[is_small] = np.log(_squares_and_weights(parameter[is_small])[1].sum(axis=1))
        return -total - self.negative_log_likelihood(np.asarray(noise, np.float64), rate)

    def rate(
        self, loss: NDArray[np.int64], squared_sensitivity: int, scale: int = 1
    ) -> NDArray[np.float64]:
        """1 / s in units of the scale; see `psd.privacy.noise_laws.NoiseLaw`."""
        unit = 2 * scale**2 / (RHO.parts * squared_sensitivity)
        return np.asarray(loss, np.float64) * unit

    def negative_log_likelihood(
        self, distance: NDArray[np.float64], rate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Minus the log-likelihood at distances; see `psd.privacy.noise_laws.NoiseLaw`."""
        return rate * distance**2 / 2

    def inverse_variance(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the inverse of the variance; see `psd.privacy.noise_laws.NoiseLaw`."""
        return rate

    def tail_bound(self, loss: int, squared_sensitivity: int, outside: float) -> int:
        """Least t that the noise exceeds so rarely; see `psd.privacy.noise_laws.NoiseLaw`."""
        parameter = squared_sensitivity * RHO.parts / (2 * loss)
        deviation = math.sqrt(parameter)
        # Beyond, the tail is that of the normal law, half a unit further out.
        if deviation > _SUMMED:
            from scipy.special import erfcinv

            return math.ceil(math.sqrt(2) * deviation * float(erfcinv(outside)) - 0.5)
        # Weights of 0, 1, ... up to 40 deviations, beyond which they are 0 in double precision.
        steps = np.arange(math.ceil(40 * deviation) + 1)
        weights = np.exp(-(steps**2) / (2 * parameter))
        tails = 2 * np.cumsum(weights[::-1])[::-1]  # of abs(noise) >= t, but at t = 0
        beyond = np.append(tails[1:], 0.0) / (tails[0] - 1)
        return int(np.argmax(beyond <= outside))

    def signal_to_noise(
        self,
        count: int | NDArray[np.integer],
        loss: int | NDArray[np.int64],
        squared_sensitivity: int,
    ) -> float | NDArray[np.float64]:
        """N sqrt(2 / s); see `psd.privacy.noise_laws.NoiseLaw`."""
        fineness = np.sqrt(2 * self.rate(np.asarray(loss), squared_sensitivity))
        return np.asarray(count, np.float64) * fineness


def _squares_and_weights(
    parameter: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squares of whole numbers, and their weights at each parameter, shape (n, terms)."""
    squares = np.arange(-_TERMS, _TERMS + 1, dtype=np.float64) ** 2
    return squares, np.exp(-squares / (2 * parameter[:, None]))


law = DiscreteGaussian()
