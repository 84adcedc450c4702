"""hybrid: piecewise with probability 1 - exp(-epsilon / 2), else duchi.

References
----------
Wang et al. "Collecting and Analyzing Multidimensional Data with Local Differential Privacy."
ICDE 2019, section III-C.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Self

from psd.apps.local.device import NANO, STEPS
from psd.apps.local.protocols._numbers import UnbiasedProtocol, decode_evenly
from psd.apps.local.protocols.piecewise import piecewise_window

__all__ = ["Hybrid"]

# Up to this epsilon, duchi alone has the least worst variance.
_DUCHI: Final = 61 * NANO // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(UnbiasedProtocol):
    """Outputs of piecewise, and then the two of duchi: which one was drawn is part of the report.

    P1. The largest ratio of a law is at most exp(epsilon). The sum of weights of each part is the
    same for all numbers, so a device chooses between the parts without looking at its number.
    """

    name: ClassVar[str] = "hybrid"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window of piecewise above epsilon 0.61; without a window it is duchi alone."""
        is_window = nano_epsilon > _DUCHI
        window = piecewise_window(nano_epsilon, answers) if is_window else 0
        return cls.at(nano_epsilon, answers, window)

    def decoded(self) -> list[Fraction]:
        """Step that each output stands for, within its part."""
        last = self.answers - 1
        first_row, last_row = self.chances(0), self.chances(last)
        parts = (slice(0, -2), slice(-2, None)) if self.draw.window else (slice(None),)
        return [
            value
            for part in parts
            for value in decode_evenly(first_row[part], last_row[part], last)
        ]


protocol = Hybrid
