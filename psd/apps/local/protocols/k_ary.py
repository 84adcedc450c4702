"""k-ary: the true answer, or another one; with two answers it is Warner's response.

References
----------
Warner. "Randomized Response." JASA 1965. Kairouz, Bonawitz, Ramage. "Discrete Distribution
Estimation under Local Privacy." ICML 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from psd.apps.local.device import UNIT, KaryDraw
from psd.apps.local.protocols._base import LocalProtocol

__all__ = ["Kary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kary(LocalProtocol):
    """The true answer with probability e / (e + k - 1), e = exp(epsilon), or one of the others.

    P1. The largest ratio of a law is at most exp(epsilon). Two answers give a report with
    probabilities p and (1 - p) / (k - 1), whose ratio is at most e by `keep_threshold`.
    """

    draw: KaryDraw

    name: ClassVar[str] = "k-ary"
    stated: ClassVar[tuple[str, ...]] = ("truth",)
    report: ClassVar[Literal["integer"]] = "integer"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Kary:
        """Only protocol of its kind."""
        return cls(draw=KaryDraw(nano_epsilon, answers))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {}

    @property
    def p(self) -> Fraction:
        """Probability of the true answer."""
        return Fraction(self.draw.threshold, UNIT)

    @property
    def q(self) -> Fraction:
        """Probability of each other answer."""
        return (1 - self.p) / (self.answers - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for i in range(self.answers):
            yield f"[{i}]", self.p if i == answer else self.q


protocol = Kary
