"""hashing: a random linear function over GF(g) of the code of the answer, kept or replaced.

With g = 2 it is the 1-bit Hadamard response.

References
----------
Wang, Blocki, Li, Jha. "Locally Differentially Private Protocols for Frequency Estimation."
USENIX Security 2017, section 4.4. Bassily, Nissim, Stemmer, Thakurta. "Practical Locally Private
Heavy Hitters." NeurIPS 2017: counting by a fast transform.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import MAX_TABLE, UNIT, HashingDraw, digits_for
from psd.apps.local.protocols._base import Codes, LocalProtocol

__all__ = ["Hashing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing(LocalProtocol):
    """A function a, uniform among those that are not zero, and its value at the answer or another.

    P1. The largest ratio of a law is at most exp(epsilon). The function is drawn before the answer
    is looked at, and the value is k-ary with g answers: the ratio is at most exp(epsilon).

    P2. Another answer has the value of the true one with probability (D/g - 1) / (D - 1), where D
    is the number of functions with the zero function: so q is exact.
    """

    draw: HashingDraw

    name: ClassVar[str] = "hashing"
    report: ClassVar[Literal["pair"]] = "pair"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Hashing:
        """Prime with the least variance of a rare answer, see `MAX_TABLE`."""
        primes = (
            g
            for g in range(2, math.isqrt(MAX_TABLE) + 1)
            if g ** (digits_for(answers, g) + 1) <= MAX_TABLE
            and all(g % divisor for divisor in range(2, math.isqrt(g) + 1))
        )
        choices = (cls(draw=HashingDraw(nano_epsilon, answers, g, "")) for g in primes)
        return min(choices, key=lambda hashing: float(hashing.variance(0)))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"modulus": self.draw.modulus}

    @property
    def codes(self) -> tuple[int, int]:
        """First code of a report, and the one after the last."""
        return self.draw.modulus, self.draw.functions * self.draw.modulus

    @property
    def p(self) -> Fraction:
        """Probability of the true value of the function."""
        return Fraction(self.draw.threshold, UNIT)

    @property
    def q(self) -> Fraction:
        """Probability of the value of another answer."""
        g, functions = self.draw.modulus, self.draw.functions
        meet = Fraction(functions // g - 1, functions - 1)
        return self.p * meet + (1 - self.p) * (1 - meet) / (g - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        g, functions = self.draw.modulus, self.draw.functions
        other = (1 - self.p) / (g - 1)
        for function in range(1, functions):
            true = self.draw.value(function, self.draw.codes[answer])
            for value in range(g):
                chance = self.p if value == true else other
                yield f"[{function},{value}]", chance / (functions - 1)

    def read(self, first: Codes, second: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """Code of reports, function times g plus value, and which are valid."""
        valid = (first >= 1) & (first < self.draw.functions)
        valid &= (second >= 0) & (second < self.draw.modulus)
        return first * self.draw.modulus + second, valid

    def support(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of reports that support each answer, by fast Fourier transforms.

        P3. The numbers are exact. Let T(a, y) be the number of reports (a, y). The support of a
        code v is sum_a T(a, <a, v>) = (1/g) sum_k sum_a F_k(a) w^(k <a, v>), with w = exp(2 pi i /
        g) and F_k(a) = sum_y T(a, y) w^(-k y). For each k the sum over a is a discrete Fourier
        transform over digits in base g, at the code whose digits are k times those of v. The terms
        of k and g - k are conjugate. The sums are integers, so they are rounded.
        """
        g, functions = self.draw.modulus, self.draw.functions
        # F_k(a), (functions, g // 2 + 1): the other half is conjugate.
        by_value = np.fft.rfft(table.reshape(functions, g), axis=1)
        count = digits_for(self.answers, g)
        place_values = g ** np.arange(count)
        digits = np.asarray(self.draw.codes)[:, None] // place_values % g  # (answers, digits)
        support = np.full(self.answers, by_value[:, 0].sum().real / g)
        for k in range(1, g // 2 + 1):
            shape = (g,) * count
            sums = np.fft.ifftn(by_value[:, k].reshape(shape)).reshape(-1) * functions
            terms = sums[(digits * k % g) @ place_values].real
            support += terms * (1 if 2 * k == g else 2) / g
        counts: NDArray[np.int64] = np.rint(support).astype(np.int64)
        return counts


protocol = Hashing
