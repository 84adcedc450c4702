"""duchi: one of two outputs; the chance of the upper one grows evenly with the number.

References
----------
Duchi, Jordan, Wainwright. "Minimax Optimal Procedures for Locally Private Estimation." JASA 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from psd.apps.local.device import STEPS
from psd.apps.local.protocols._numbers import UnbiasedProtocol

__all__ = ["Duchi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(UnbiasedProtocol):
    """One bit; the best one for means up to epsilon 1.

    P1. The largest ratio of a law is at most exp(epsilon). The upper output has weight A t + B (K -
    1 - t), the lower one the rest of (A + B) (K - 1), with A / B <= exp(epsilon): the ratio is at
    most A / B.
    """

    name: ClassVar[str] = "duchi"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Only protocol of its kind."""
        return cls.at(nano_epsilon, answers)


protocol = Duchi
