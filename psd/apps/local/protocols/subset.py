"""subset: a set of answers, which holds the true one more often than a random set.

References
----------
Ye, Barg. "Optimal Schemes for Discrete Distribution Estimation under Locally Differential
Privacy." IEEE Transactions on Information Theory 2018. Wang et al. "Mutual Information Optimally
Local Private Discrete Distribution Estimation." 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import UNIT, SubsetDraw, mask_text
from psd.apps.local.protocols._base import MaskProtocol, Masks

__all__ = ["Subset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset(MaskProtocol):
    """A uniform set of w answers with the true one, or a uniform set of w others.

    P1. The largest ratio of a law is at most exp(epsilon). A set has probability p / C(d - 1, w -
    1) if it holds the true answer, and (1 - p) / C(d - 1, w) if not. Their ratio is p (d - w) / ((1
    - p) w), at most exp(epsilon) by `keep_threshold`.
    """

    draw: SubsetDraw

    name: ClassVar[str] = "subset"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Subset:
        """Size with the least variance of a rare answer."""
        cls.check_answers(answers)
        # The best size is near d / (exp(epsilon) + 1), below one half.
        sizes = (cls(draw=SubsetDraw(nano_epsilon, answers, w)) for w in range(1, answers // 2 + 1))
        return min(sizes, key=lambda subset: float(subset.variance(0)))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"size": self.draw.size}

    @property
    def p(self) -> Fraction:
        """Probability that the set holds the true answer."""
        return Fraction(self.draw.threshold, UNIT)

    @property
    def q(self) -> Fraction:
        """Probability that the set holds another answer."""
        size = self.draw.size
        return (self.p * (size - 1) + (1 - self.p) * size) / (self.answers - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        size, others = self.draw.size, self.answers - 1
        inside, beside = self.p / comb(others, size - 1), (1 - self.p) / comb(others, size)
        for members in combinations(range(self.answers), size):
            mask = sum(1 << i for i in members)
            yield mask_text(mask, self.answers), inside if answer in members else beside

    def read_masks(self, masks: Masks) -> NDArray[np.bool_]:
        """Which sets are valid reports: those of the right size."""
        members = np.unpackbits(masks, axis=1).sum(axis=1, dtype=np.int64)
        valid: NDArray[np.bool_] = MaskProtocol.read_masks(self, masks) & (
            members == self.draw.size
        )
        return valid


protocol = Subset
