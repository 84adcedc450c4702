"""square-wave: a window of likely outputs around the number, in a range that is longer by it.

References
----------
Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric. "Estimating Numerical Distributions under Local
Differential Privacy." SIGMOD 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import ClassVar, Literal, Self

from psd.apps.local.device import NANO, STEPS
from psd.apps.local.protocols._numbers import NumberProtocol

__all__ = ["SquareWave"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(NumberProtocol):
    """An output near the number is likelier; all laws differ, so distributions can be decoded.

    P1. The largest ratio of a law is at most exp(epsilon). All windows have w + 1 of K + w outputs,
    so laws have one sum of weights, and the ratio is that of the weights, at most exp(epsilon).
    """

    name: ClassVar[str] = "square-wave"
    use: ClassVar[Literal["distributions"]] = "distributions"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window 2 b K that has the most mutual information with a uniform number."""
        return cls.at(nano_epsilon, answers, 2 * max(1, round(half_width(nano_epsilon) * answers)))


def half_width(nano_epsilon: int) -> float:
    """Half of the best window, as a share of the range."""
    epsilon = nano_epsilon / NANO
    growth = exp(epsilon)
    return (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))


protocol = SquareWave
