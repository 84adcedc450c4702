"""Comparisons of noisy numbers with 0; the mechanism returns only their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.base import Uniform
from psd.mechanisms.choice_laws import laplace_noise
from psd.mechanisms.laplace import noise_of_scales
from psd.privacy.loss import NANO

__all__ = ["ThresholdMechanism"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ThresholdMechanism:
    """Whether each number plus discrete Laplace noise is above 0.

    P1. The noise has scale numerator / denominator exactly. The noisy numbers are not returned: a
    noisy number that is returned would have to be charged as a count.
    """

    values: Integers  # (n,) int64, private; numbers that are compared
    numerator: int
    denominator: Integers  # (n,) int64; scales of the noise are numerator / denominator, positive
    # (n,) int64; nano-epsilon of the question of each comparison. Comparisons along a path may
    # share one charge, as those of a PrivTree do.
    cost: Integers

    @staticmethod
    def neighbours() -> tuple[ThresholdMechanism, ThresholdMechanism]:
        """Return comparisons of two numbers, and the same with a first number larger by 2."""
        values, cost = np.array([-1, 2]), np.array([NANO, NANO])
        first = ThresholdMechanism(values=values, numerator=2 * NANO, denominator=cost, cost=cost)
        return first, replace(first, values=values + np.array([2, 0]))

    @property
    def public(self) -> tuple[Any, ...]:
        """The scales."""
        return ("threshold", self.numerator, self.denominator)

    def sample(self) -> NDArray[np.bool_]:
        """Add fresh noise to each number and compare the sum with 0."""
        return self.values + noise_of_scales(self.numerator, self.denominator) > 0

    def log_probability(self, answer: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Compute the log-probability of each outcome."""
        scale = self.numerator / self.denominator
        # P(v + L > 0) = P(L >= 1 - v), and the other outcome has P(L >= v). The upper tail at n is
        # q^n / (1 + q) for n above 0 and 1 - q^(1 - n) / (1 + q) otherwise, q = exp(-1 / scale).
        n = np.where(answer, 1 - self.values, self.values)
        far = np.where(n > 0, n, 1 - n) / -scale - np.log1p(np.exp(-1 / scale))
        return np.where(n > 0, far, np.log1p(-np.exp(far)))

    def approximate(self, uniform: Uniform) -> NDArray[np.bool_]:
        """Whether each number plus noise of its scale is above 0."""
        noise = laplace_noise(self.numerator / self.denominator, uniform)
        return self.values + noise > 0


mechanism = ThresholdMechanism
