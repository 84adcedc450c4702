"""staircase: noise of endless stairs; what leaves the range is its end.

References
----------
Geng, Kairouz, Oh, Viswanath. "The Staircase Mechanism in Differential Privacy." IEEE Journal of
Selected Topics in Signal Processing 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from psd.apps.local.device import STEPS
from psd.apps.local.protocols._numbers import SingleValueProtocol, sum_squares

__all__ = ["Staircase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(SingleValueProtocol):
    """A step of the range: the number with noise whose density falls in stairs as long as it.

    P1. The largest ratio of a law is at most exp(epsilon). A distance below the window has weight
    A, and each next K - 1 distances have B / A times the weight, B / A >= exp(-epsilon). Another
    number changes a distance by at most K - 1, one stair. The ends take the sum of all stairs
    beyond them, rounded up in both laws, which makes no ratio larger.
    """

    name: ClassVar[str] = "staircase"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window with the least mean squared error of a uniform number."""
        choices = (cls.at(nano_epsilon, answers, window) for window in range(1, answers))
        return min(choices, key=lambda protocol: protocol.mean_squared_error())

    def mean_squared_error(self) -> float:
        """Mean squared error of a uniform number, in squared steps, by sums of squares."""
        inside, outside = map(float, self.draw.weights)
        window, last = self.draw.window, self.answers - 1
        tail = last * inside * outside / (inside - outside)
        error = np.zeros(self.answers)
        for to in (np.arange(self.answers, dtype=np.float64), np.arange(last, -1.0, -1.0)):
            near = np.minimum(np.maximum(to - 1, 0), window - 1)
            error += outside * sum_squares(np.maximum(to - 1, 0)) + (
                inside - outside
            ) * sum_squares(near)
            error += to**2 * (tail + (window - to) * np.where(to < window, inside, outside))
        return float(error.mean() / ((2 * window - 1) * inside + 2 * tail))


protocol = Staircase
