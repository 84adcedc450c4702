"""piecewise: a window of likely outputs at the number, decoded evenly.

References
----------
Wang et al. "Collecting and Analyzing Multidimensional Data with Local Differential Privacy."
ICDE 2019, algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import ClassVar, Self

from psd.apps.local.device import NANO, STEPS
from psd.apps.local.protocols._numbers import UnbiasedProtocol

__all__ = ["Piecewise", "piecewise_window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(UnbiasedProtocol):
    """An output near the number is likelier; the best one for means from epsilon 1 or 2.

    P1. The largest ratio of a law is at most exp(epsilon). All windows have w + 1 of K + w outputs,
    so laws have one sum of weights, and the ratio is that of the weights, at most exp(epsilon).

    P2. The mean of the outputs grows evenly with the number, so decoding is exactly unbiased.
    """

    name: ClassVar[str] = "piecewise"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window of the continuous mechanism, rounded."""
        return cls.at(nano_epsilon, answers, piecewise_window(nano_epsilon, answers))


def piecewise_window(nano_epsilon: int, answers: int) -> int:
    """Window w with w / (K - 1) near exp(-epsilon / 2)."""
    return max(1, round((answers - 1) * exp(-nano_epsilon / NANO / 2)))


protocol = Piecewise
