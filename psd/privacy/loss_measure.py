"""What the loss of a release is counted in: epsilon of pure privacy, or rho of zCDP.

The curator, the decompositions and the release file move integers of one measure. Nothing but
this module says what a part of it is worth.

References
----------
.. [1] M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016, arXiv:1605.02065.
.. [2] M. Cesar, R. Rogers, "Bounding, Concentrating, and Truncating: Unifying Privacy Loss
   Composition for Data Analytics", ALT 2021, arXiv:2004.07223.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import isqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from psd.privacy.epsilon import MAX_EPSILON, NANO

__all__ = ["EPSILON", "RHO", "LossMeasure"]

_PICO: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMeasure:
    """A measure of privacy loss that adds up, in whole parts: epsilon, or rho of zCDP [1]_."""

    name: Literal["epsilon", "rho"]  # pure, or zero-concentrated differential privacy
    parts: int  # parts of 1: 1e9 of epsilon, 1e12 of rho

    @property
    def largest(self) -> int:
        """Largest amount that a release may have, in parts."""
        return MAX_EPSILON * self.parts

    @property
    def is_pure(self) -> bool:
        """Whether amounts are of pure differential privacy."""
        return self.name == "epsilon"

    @property
    def one_text(self) -> str:
        """One amount, with its article."""
        return "an epsilon" if self.is_pure else "a rho"

    @property
    def least_text(self) -> str:
        """The smallest amount above 0, such as 1e-9."""
        return f"1e-{len(str(self.parts)) - 1}"

    def text(self, amount: int) -> str:
        """Shortest decimal text of an amount."""
        places = len(str(self.parts)) - 1
        return f"{amount // self.parts}.{amount % self.parts:0{places}d}".rstrip("0").rstrip(".")

    def decimal(self, amount: int) -> Decimal:
        """Amount as a decimal number."""
        return Decimal(self.text(amount))

    def of_selections(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of exponential mechanisms that cost these amounts, rounded down.

        P1. One of epsilon e costs e^2 / 8 in rho, since its log-ratios lie in an interval of length
        e [2]_.
        """
        return amounts if self.is_pure else self._roots(amounts, 8)

    def of_pure(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of any pure mechanisms that cost these amounts, rounded down.

        P2. One of epsilon e costs at most e^2 / 2 in rho, by proposition 3.3 of [1]_.
        """
        return amounts if self.is_pure else self._roots(amounts, 2)

    def _roots(self, amounts: NDArray[np.int64], times: int) -> NDArray[np.int64]:
        """Integer parts of nano * sqrt(times * rho), computed once for each distinct amount."""
        different, which = np.unique(amounts, return_inverse=True)
        roots = [isqrt(times * amount * NANO**2 // self.parts) for amount in different.tolist()]
        return np.array(roots, np.int64)[which.reshape(amounts.shape)]


EPSILON: Final = LossMeasure(name="epsilon", parts=NANO)
"""Nano-epsilon of pure differential privacy."""

RHO: Final = LossMeasure(name="rho", parts=_PICO)
"""Parts of 1e-12 of rho of zero-concentrated differential privacy."""
