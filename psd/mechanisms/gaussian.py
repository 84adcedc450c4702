"""Exact discrete Gaussian noise: P(X = x) proportional to exp(-x^2 / (2 s)), s rational.

.. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
   2020, arXiv:2004.00010, theorem 4 and section 5.3.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.accounting import PICO
from psd.errors import ParameterError
from psd.mechanisms.base import Uniform
from psd.mechanisms.bernoulli import bernoulli_exp_of_any, invert, refuse_beyond_limit
from psd.mechanisms.certified_thresholds import MAX_TABLE_SCALE, GaussianSurvival
from psd.mechanisms.laplace import discrete_laplace_each
from psd.mechanisms.random_words import random_words
from psd.privacy.count_noise import CountNoise
from psd.privacy.noise_laws import DISCRETE_GAUSSIAN, noise_law

MAX_VARIANCE_BITS = 112
_BLOCK = 2**16  # draws per block, so that the arrays of a block stay in the cache
_SMALL_TABLE = 2**10
_SHORT_RUN = 2**10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GaussianMechanism:
    """Counts plus discrete Gaussian noise of parameter s = squared_sensitivity / (2 rho).

    P1. If the count of an answer differs by d on two data sets, its draw is (d^2 rho /
    squared_sensitivity)-zCDP [1]_, and the draws of all answers together have the sum.
    """

    true: Integers  # (n,) int64, private; counts
    rho: Integers  # (n,) int64; rho of each count in units of 1e-12, above 0
    squared_sensitivity: int  # square of the change for which rho is charged, above 0

    noise_law: ClassVar[str] = DISCRETE_GAUSSIAN

    @staticmethod
    def neighbours() -> tuple[GaussianMechanism, GaussianMechanism]:
        """Return counts of two cells, and the same with one more unit in the first cell."""
        true, rho = np.array([3, 0]), np.array([PICO // 2, PICO // 20])
        first = GaussianMechanism(true=true, rho=rho, squared_sensitivity=4)
        return first, replace(first, true=true + np.array([2, 0]))

    @property
    def cost(self) -> Integers:
        """Rho of each count, in units of 1e-12."""
        return self.rho

    @property
    def public(self) -> tuple[Any, ...]:
        """Rhos and squared sensitivity."""
        return ("counts", self.noise_law, self.rho, self.squared_sensitivity)

    def sample(self) -> Integers:
        """Draw noisy counts; they may be negative."""
        noise = discrete_gaussian_each(self.squared_sensitivity * PICO, 2 * self.rho)
        return self.true + noise

    def log_probability(self, answer: Integers) -> NDArray[np.float64]:
        """Compute the log-probability of each noisy count."""
        law = noise_law(self.noise_law)
        return law.log_density(answer - self.true, self.rho, self.squared_sensitivity)

    def approximate(self, uniform: Uniform) -> Integers:
        """Counts plus rounded normal noise of the variance of the law."""
        noise = CountNoise.gaussian(self.squared_sensitivity)
        # Normal numbers of Box and Muller.
        radius, angle = uniform(2 * len(self.rho)).reshape(2, -1)
        normal = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)
        deviation = np.sqrt(noise.variance(self.rho))
        noisy: Integers = self.true + np.rint(deviation * normal).astype(np.int64)
        return noisy


mechanism = GaussianMechanism


def discrete_gaussian(numerator: int, denominator: int, size: int) -> Integers:
    """Draw discrete Gaussian noise of one public parameter s, sigma up to 2**56.

    Returns (size,) int64, below 2**62 in magnitude. A draw beyond raises OverflowError; that
    depends on no data, and its probability is below exp(-2**11). Below 1, s is larger than the
    variance. Time is not constant: it depends on the draws.

    P2. P(X = x) is proportional to exp(-x^2 / (2 s)) exactly, s = numerator / denominator.

    P3. Draws are independent of each other and of all earlier calls, also in forked processes.

    P4. Only integers decide an outcome, and every random bit comes from `os.urandom`.

    By table, 63 bits of a word of 64 decide the magnitude by inversion, see
    `psd.mechanisms.bernoulli.invert`, and the last bit decides the sign. Else, by Algorithm 3 of
    [1]_, a draw Y of discrete Laplace noise of scale t = floor(sigma) + 1 is kept with probability
    exp(-(|Y| - s / t)^2 / (2 s)). The product with exp(-|Y| / t) is exp(-Y^2 / (2 s)) up to a
    constant.
    """
    numerator, denominator = _lowest_terms(numerator, denominator)
    # Tables serve sigma up to 2**12, rejection a larger one.
    # A table has about 10 sigma entries, and must not be long for the draws.
    longest = min(10 * MAX_TABLE_SCALE, max(size, _SMALL_TABLE))
    has_table = 100 * numerator <= longest**2 * denominator
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = noise[start : start + _BLOCK]
        if has_table:
            block[:] = _by_table(numerator, denominator, block.size)
        else:
            block[:] = _by_rejection(numerator, np.full(block.size, denominator, dtype=object))
    return noise


def discrete_gaussian_each(numerator: int, denominators: Integers) -> Integers:
    """Draw discrete Gaussian noise, (n,) below 2**62 in magnitude, by public parameters.

    P5. The i-th draw has the law of `discrete_gaussian` at numerator / denominators[i], exactly.

    Draws of few equal parameters are drawn together, others by rejection; the order is public.
    """
    parameters, which, counts = np.unique(denominators, return_inverse=True, return_counts=True)
    noise = np.empty(denominators.size, dtype=np.int64)
    if not noise.size:
        return noise
    if (parameters.size - 1) * _SHORT_RUN < denominators.size:
        # The draws stand parameter by parameter, and go back to their places.
        order = np.argsort(which, kind="stable")
        pairs = zip(parameters.tolist(), counts.tolist(), strict=True)
        noise[order] = np.concatenate([discrete_gaussian(numerator, d, n) for d, n in pairs])
        return noise
    _lowest_terms(numerator, int(parameters[0]))
    for start in range(0, noise.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        noise[block] = _by_rejection(numerator, denominators[block].astype(object))
    return noise


def _lowest_terms(numerator: int, denominator: int) -> tuple[int, int]:
    """Return sigma^2 in lowest terms, or refuse it."""
    numerator, denominator = operator.index(numerator), operator.index(denominator)
    if numerator < 1 or denominator < 1:
        raise ParameterError("sigma must be above 0, got a variance of 0 or less", name="sigma")
    if numerator >> MAX_VARIANCE_BITS >= denominator:
        power = ((numerator // denominator).bit_length() - 1) // 2
        raise ParameterError(
            f"sigma must be below 2**{MAX_VARIANCE_BITS // 2}, got about 2**{power}; "
            "the budget is too small for the number of records of a unit",
            name="sigma",
        )
    common = math.gcd(numerator, denominator)
    return numerator // common, denominator // common


def _by_table(numerator: int, denominator: int, size: int) -> Integers:
    """Draw by inversion: 63 bits of a word are the magnitude, and one is the sign."""
    words = random_words(size)
    magnitudes = invert(words >> np.uint64(1), GaussianSurvival(numerator, denominator))
    return np.where(words & np.uint64(1), -magnitudes, magnitudes)


def _by_rejection(numerator: int, denominators: NDArray[Any]) -> Integers:
    """Draw discrete Laplace noise of about the same width, and keep it with a probability."""
    # Scales t = floor(sigma) + 1.
    scales = np.array([math.isqrt(numerator // d) + 1 for d in denominators.tolist()], object)
    noise = np.empty(scales.size, dtype=np.int64)
    pending = np.arange(scales.size)
    while pending.size:
        scale, denominator = scales[pending], denominators[pending]
        draws = discrete_laplace_each(scale.astype(np.int64), np.ones(pending.size, np.int64))
        # As in `discrete_gaussian`: (|Y| - s / t)^2 / (2 s) as a fraction of integers of any size.
        off = np.abs(draws).astype(object) * scale * denominator - numerator
        accepted = bernoulli_exp_of_any(off**2, 2 * numerator * denominator * scale**2)
        noise[pending[accepted]] = draws[accepted]
        pending = pending[~accepted]
    refuse_beyond_limit(int(np.abs(noise).max()))
    return noise
