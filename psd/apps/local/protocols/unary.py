"""unary: a bit for each answer, drawn alone.

References
----------
Wang, Blocki, Li, Jha. "Locally Differentially Private Protocols for Frequency Estimation."
USENIX Security 2017, sections 4.2 and 4.3: SUE and OUE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from psd.apps.local.device import UNIT, UnaryDraw, mask_text
from psd.apps.local.protocols._base import MaskProtocol

__all__ = ["Unary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(MaskProtocol):
    """A 1 with probability p at the true answer, and with probability q at each other one.

    P1. The largest ratio of a law is at most exp(epsilon). Two answers differ in two bits, so the
    largest ratio is p (1 - q) / ((1 - p) q). Symmetric: (p / (1 - p))^2 with bits at half of
    epsilon. Optimised: p = 1/2, so (1 - q) / q, with the bit of another answer at all of epsilon.
    """

    draw: UnaryDraw

    name: ClassVar[str] = "unary"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Unary:
        """Optimised form, which has the smaller variance of rare answers."""
        cls.check_answers(answers)
        return cls(draw=UnaryDraw(nano_epsilon, answers, "optimised"))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"form": self.draw.form}

    @property
    def p(self) -> Fraction:
        """Probability of a 1 at the true answer."""
        return Fraction(self.draw.thresholds[1], UNIT)

    @property
    def q(self) -> Fraction:
        """Probability of a 1 at another answer."""
        return Fraction(self.draw.thresholds[0], UNIT)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for mask in range(2**self.answers):
            chance = Fraction(1)
            for i in range(self.answers):
                rate = self.p if i == answer else self.q
                chance *= rate if mask >> i & 1 else 1 - rate
            yield mask_text(mask, self.answers), chance


protocol = Unary
