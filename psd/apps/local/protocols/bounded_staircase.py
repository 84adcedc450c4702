"""bounded-staircase: a window of likely outputs to both sides, cut off where the range ends.

The weight of the window is the largest whose loss is within epsilon; the continuous form is in
`docs/reference/local-numbers.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from psd.apps.local.device import STEPS
from psd.apps.local.protocols._numbers import SingleValueProtocol, sum_squares

__all__ = ["BoundedStaircase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedStaircase(SingleValueProtocol):
    """A step of the range, which is likelier within the window.

    P1. The largest ratio of a law is at most exp(epsilon). With weight E in the window and 1 beside
    it, the sum of weights is E w + K - w for a window of w outputs. The ratio is largest between a
    number at an end, w1 = window + 1, and one with the widest window that leaves out an output, w2
    = min(2 window + 1, K - 1): it is E (E w2 + K - w2) / (E w1 + K - w1), and E is the largest
    weight for which this is at most exp(epsilon).
    """

    name: ClassVar[str] = "bounded-staircase"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window with the least mean squared error of a uniform number."""
        choices = (cls.at(nano_epsilon, answers, window) for window in range(answers - 1))
        return min(choices, key=lambda protocol: protocol.mean_squared_error())

    def mean_squared_error(self) -> float:
        """Mean squared error of a uniform number, in squared steps, by sums of squares."""
        inside, outside = map(float, self.draw.weights)
        window, last = self.draw.window, self.answers - 1
        steps = np.arange(self.answers, dtype=np.float64)
        below, above = np.minimum(steps, window), np.minimum(last - steps, window)
        near = sum_squares(below) + sum_squares(above)
        total = outside * (last + 1) + (inside - outside) * (below + above + 1)
        every = sum_squares(steps) + sum_squares(last - steps)
        return float(((outside * every + (inside - outside) * near) / total).mean())


protocol = BoundedStaircase
