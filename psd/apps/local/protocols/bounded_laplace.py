"""bounded-laplace: outputs of the range, the less likely the farther away.

References
----------
Holohan, Antonatos, Braghin, Mac Aonghusa. "The Bounded Laplace Mechanism in Differential Privacy."
Journal of Privacy and Confidentiality 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from psd.apps.local.device import STEPS
from psd.apps.local.protocols._numbers import SingleValueProtocol

__all__ = ["BoundedLaplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(SingleValueProtocol):
    """A step of the range; weights fall by exp(-epsilon) from one end to the other.

    P1. The largest ratio of a law is at most exp(epsilon). The range is the sensitivity, so the
    scale needs no correction: the worst pair is the two ends, whose sums of weights are equal.
    Weights are rounded down from those of epsilon - 1e-9, which leaves room for what is rounded.
    """

    name: ClassVar[str] = "bounded-laplace"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Only protocol of its kind."""
        return cls.at(nano_epsilon, answers)


protocol = BoundedLaplace
