"""Exact discrete Laplace noise: P(X = x) proportional to exp(-|x| / scale), scale rational.

`discrete_laplace` inverts a table for one scale; `discrete_laplace_each` rejects, for many.

.. [1] Ghosh, Roughgarden, Sundararajan. "Universally Utility-Maximizing Privacy Mechanisms." STOC
   2009. https://doi.org/10.1145/1536414.1536464
.. [2] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
   2020, arXiv:2004.00010, section 5.2.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.base import Uniform
from psd.mechanisms.bernoulli import (
    checked_pair,
    geometric_each,
    invert,
    refuse_beyond_limit,
)
from psd.mechanisms.certified_thresholds import MAX_TABLE_SCALE, Survival, thresholds
from psd.mechanisms.choice_laws import laplace_noise
from psd.mechanisms.random_words import random_bits, random_words
from psd.privacy.loss import NANO
from psd.privacy.noise_laws import DISCRETE_LAPLACE, noise_law

_MAX = 2**63 - 1
_BLOCK = 2**16  # draws per block, so that the arrays of a block stay in the cache
_SMALL_TABLE = 2**10
_SHORT_RUN = 2**10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LaplaceMechanism:
    """Counts plus discrete Laplace noise of scale sensitivity / epsilon.

    P1. If the counts of two data sets differ by d in sum over the answers, weighted by their
    epsilons, the loss is at most d / sensitivity [1]_.
    """

    true: Integers  # (n,) int64, private; counts
    epsilon: Integers  # (n,) int64; nano-epsilon of each count, above 0
    sensitivity: int  # largest change of the counts, in sum, by one unit of privacy

    noise_law: ClassVar[str] = DISCRETE_LAPLACE

    @staticmethod
    def neighbours() -> tuple[LaplaceMechanism, LaplaceMechanism]:
        """Return counts of two cells, and the same with one more unit in the first cell."""
        true, epsilon = np.array([3, 0]), np.array([NANO, NANO // 2])
        first = LaplaceMechanism(true=true, epsilon=epsilon, sensitivity=2)
        return first, replace(first, true=true + np.array([2, 0]))

    @property
    def cost(self) -> Integers:
        """Nano-epsilon of each count."""
        return self.epsilon

    @property
    def public(self) -> tuple[Any, ...]:
        """Epsilons and sensitivity."""
        return ("counts", self.noise_law, self.epsilon, self.sensitivity)

    def sample(self) -> Integers:
        """Draw noisy counts; they may be negative."""
        return self.true + noise_of_scales(self.sensitivity * NANO, self.epsilon)

    def log_probability(self, answer: Integers) -> NDArray[np.float64]:
        """Compute the log-probability of each noisy count."""
        law = noise_law(self.noise_law)
        return law.log_density(answer - self.true, self.epsilon, self.sensitivity**2)

    def approximate(self, uniform: Uniform) -> Integers:
        """Counts plus noise of scale sensitivity / epsilon."""
        return self.true + laplace_noise(self.sensitivity * NANO / self.epsilon, uniform)


mechanism = LaplaceMechanism


def noise_of_scales(numerator: int, denominators: Integers) -> Integers:
    """Draw discrete Laplace noise of scale numerator / denominator for each denominator."""
    if len(denominators) == 0:
        return np.zeros(0, np.int64)
    if (denominators == denominators[0]).all():
        return discrete_laplace(numerator, int(denominators[0]), len(denominators))
    return discrete_laplace_each(np.full(len(denominators), numerator), denominators)


def discrete_laplace(numerator: int, denominator: int, size: int) -> Integers:
    """Draw discrete Laplace noise of one public scale.

    Returns (size,) int64, below 2**62 in magnitude. A draw beyond raises OverflowError. That
    depends on no data; its probability per draw is about exp(-2**62 / scale), which is below
    exp(-2**20) for scales up to 2**42, and 1 % at 10**18. Strictly, this cut of the law costs a
    delta of that order. Time is not constant: it depends on the draws.

    P2. P(X = x) = (1 - q) / (1 + q) * q**abs(x) exactly, q = exp(-denominator / numerator).

    P3. Draws are independent of each other and of all earlier calls, also in forked processes.

    P4. Only integers decide an outcome, and every random bit comes from `os.urandom`.

    Of a word of 64 bits, 63 decide the magnitude M by inversion, see
    `psd.mechanisms.bernoulli.invert`; the last, independent of them, decides the sign. P(M >= k) =
    2 q**k / (1 + q) for k >= 1, so P(M = 0) = (1 - q) / (1 + q) and P(M = k) = 2 q**k (1 - q) / (1
    + q). The sign halves the latter and does not change zero, which gives the law. Where a table
    would be too long, draws are those of `discrete_laplace_each`, which have the same law.
    """
    numerator, denominator = operator.index(numerator), operator.index(denominator)
    if numerator < 1 or denominator < 1:
        raise ValueError("numerator and denominator must be positive")
    # In lowest terms, so that a table serves all fractions of one scale.
    common = math.gcd(numerator, denominator)
    numerator, denominator = numerator // common, denominator // common
    if max(numerator, denominator) > _MAX:
        raise ValueError("numerator and denominator must be below 2**63 in lowest terms")
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = noise[start : start + _BLOCK]
        # A table of nine scales pays where the block is longer than it; a wider law is drawn by
        # rejection.
        longest = min(9 * MAX_TABLE_SCALE, max(block.size, _SMALL_TABLE))
        if 9 * numerator <= longest * denominator:
            block[:] = _by_table(numerator, denominator, block.size)
        else:
            scale = _filled(numerator, block.size), _filled(denominator, block.size)
            block[:] = _by_rejection(*scale)
    return noise


def discrete_laplace_each(numerators: Integers, denominators: Integers) -> Integers:
    """Draw discrete Laplace noise, (n,) int64 below 2**62 in magnitude, each of its own scale.

    numerators, denominators: (n,) int64, positive, public. Time is not constant.

    P5. The i-th draw has the law of `discrete_laplace` at scale numerators[i] / denominators[i],
    exactly, whether or not the fraction is in lowest terms.

    P6. No product wraps: a product that does not fit into int64 is computed in Python integers.

    Algorithm 2 of [2]_ repeats only those not accepted. The magnitude is geometric, see
    `psd.mechanisms.bernoulli.geometric_each`; a fair sign makes it two-sided. A zero with a
    negative sign is drawn again, so zero is not counted twice: P(X = x) is proportional to
    q**abs(x) / 2 for every x. Long runs of equal scales, in their order or sorted, are drawn by
    `discrete_laplace`. The order is a function of the scales, which are public, and each draw has
    the law of its own scale and is independent of the others.
    """
    numerators, denominators = checked_pair(numerators, denominators, least_numerator=1)
    noise = np.empty(numerators.size, dtype=np.int64)
    # First as they come, since a level has one scale; sorted only if that has many runs.
    for order in (np.arange(noise.size), np.lexsort((denominators, numerators))):
        # Runs of equal scales are drawn together, and put back in their places.
        by_scale = numerators[order], denominators[order]
        differ = (np.diff(by_scale[0]) != 0) | (np.diff(by_scale[1]) != 0)
        starts = [0, *(np.flatnonzero(differ) + 1).tolist()]
        if (len(starts) - 1) * _SHORT_RUN < noise.size:  # equal fractions form few runs
            for a, b in pairwise([*starts, noise.size]):
                scale = int(by_scale[0][a]), int(by_scale[1][a])
                noise[order[a:b]] = discrete_laplace(*scale, b - a)
            return noise
    for start in range(0, noise.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        noise[block] = _by_rejection(numerators[block], denominators[block])
    return noise


def _filled(value: int, size: int) -> Integers:
    """Repeat one number."""
    return np.full(size, value, dtype=np.int64)


def _by_table(numerator: int, denominator: int, size: int) -> Integers:
    """Draw by inversion; the excess beyond the table is geometric."""
    law = Survival(numerator, denominator, two_sided=True)
    words = random_words(size)
    magnitudes = invert(words >> np.uint64(1), law)
    beyond = np.flatnonzero(magnitudes == thresholds(law).size)
    if beyond.size:
        scale = _filled(numerator, beyond.size), _filled(denominator, beyond.size)
        # The tail of the law is the law again, moved to the end of the table.
        magnitudes[beyond] += geometric_each(*scale)
    # The lowest bit of a word, which chose no magnitude, is its sign.
    return _signed(magnitudes, (words & np.uint64(1)).astype(np.bool_))


def _by_rejection(numerators: Integers, denominators: Integers) -> Integers:
    """Draw a geometric magnitude and a sign; a negative zero is drawn again."""
    noise = np.empty(numerators.size, dtype=np.int64)
    pending = np.arange(numerators.size)
    while pending.size:
        magnitudes = geometric_each(numerators[pending], denominators[pending])
        negative = random_bits(pending.size)
        # Zero would have two ways, with either sign; one of them is refused.
        accepted = (magnitudes > 0) | ~negative
        noise[pending[accepted]] = _signed(magnitudes, negative)[accepted]
        pending = pending[~accepted]
    return noise


def _signed(magnitudes: Integers, negative: NDArray[np.bool_]) -> Integers:
    """Apply the signs; refuse magnitudes beyond the limit."""
    refuse_beyond_limit(int(magnitudes.max()))
    return np.where(negative, -magnitudes, magnitudes)
