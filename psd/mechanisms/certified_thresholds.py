"""Survival probabilities as certified integers: the floor of 2**bits * P(X >= k).

No random number is drawn and none rounded to nearest: every number is enclosed between two
integers, and a floor is returned only if both ends of the enclosure have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 63
MAX_TABLE_SCALE = 2**12
_TAIL = 2 ** (WORD_BITS - 12)
_GUARD_BITS = 64


def exp_enclosure(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Enclose 2**bits * exp(-numerator / denominator), arguments positive, between two integers.

    P1. low <= 2**bits * exp(-numerator / denominator) <= high. Let y = numerator / denominator /
    2**h <= 1/2. The loop sums t_0 = 2**bits and t_j = floor(t_(j-1) * y / j) up to the last
    positive term, J terms. The error of a term, e_j = 2**bits * y**j / j! - t_j, obeys e_0 = 0 and
    e_j < e_(j-1) * y / j + 1, so 0 <= e_j < 2. The omitted terms start below 2, each at most half
    of the one before: their sum is below 4. Thus ``total <= 2**bits * exp(y) < total + 2 * J + 2``.
    The reciprocal and the h squarings back to exp(-numerator / denominator) round outward.
    """
    if numerator >= bits * denominator:
        return 0, 1  # exp(-x) < 2**-x
    unit = 1 << bits
    halvings = (2 * numerator // denominator).bit_length()
    total, term, count = 0, unit, 0
    while term:
        total, count = total + term, count + 1
        term = term * numerator // (denominator * count << halvings)
    low, high = unit * unit // (total + 2 * count + 2), -(-unit * unit // total)
    for _ in range(halvings):
        low, high = low * low >> bits, -(-high * high >> bits)
    return low, high


class Law(Protocol):
    """A law on the integers from 0, by its certified survival probabilities."""

    has_geometric_excess: ClassVar[bool]
    """Whether the table ends early, and a geometric excess is drawn for what lies beyond."""

    def floor(self, k: int, bits: int) -> int:
        """Compute the floor of 2**bits * P(X >= k)."""

    def entries(self, guard: int) -> list[int] | None:
        """List the entries of the table, or None if the guard bits do not decide one of them."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Survival:
    """The probabilities P(X >= k), k >= 1, of a law on the integers from 0.

    With q = exp(-denominator / numerator): q**k (geometric), and 2 q**k / (1 + q), magnitudes of
    discrete Laplace. Given X >= k, for any k >= 1, the excess X - k is geometric in both.
    """

    numerator: int  # the scale is numerator / denominator, positive
    denominator: int
    two_sided: bool  # whether X is the magnitude of a discrete Laplace variable

    has_geometric_excess: ClassVar[bool] = True

    def entries(self, guard: int) -> list[int] | None:
        """List the floors for k = 1, 2, ..., or None if the guard bits do not decide one."""
        bits = WORD_BITS + guard
        low_q, high_q = exp_enclosure(self.denominator, self.numerator, bits)
        low, high = self.enclosure(1, bits)
        entries = []
        while low >> guard == high >> guard:
            entries.append(low >> guard)
            if entries[-1] < _TAIL:
                return entries
            low, high = low * low_q >> bits, -(-high * high_q >> bits)
        return None

    def enclosure(self, k: int, bits: int) -> tuple[int, int]:
        """Enclose 2**bits * P(X >= k) between two integers."""
        low, high = exp_enclosure(k * self.denominator, self.numerator, bits)
        if not self.two_sided:
            return low, high
        unit = 1 << bits
        low_q, high_q = exp_enclosure(self.denominator, self.numerator, bits)
        return 2 * low * unit // (unit + high_q), -(-2 * high * unit // (unit + low_q))

    def floor(self, k: int, bits: int) -> int:
        """Compute the floor of 2**bits * P(X >= k).

        P2. The loop ends: q is transcendental (Hermite-Lindemann), so neither q**k nor 2 q**k / (1
        + q) is rational, and a narrow enough enclosure contains no integer.
        """
        guard = _GUARD_BITS
        while True:
            low, high = self.enclosure(k, bits + guard)
            if low >> guard == high >> guard:
                return low >> guard
            guard *= 2


@lru_cache(maxsize=32)
def thresholds(law: Law) -> NDArray[np.uint64]:
    """Tabulate the floors of 2**63 * P(X >= k), k = 1, 2, ..., ascending, (m,) uint64, read-only.

    Entry m - k is the floor for k; the scale, or sigma, is at most `MAX_TABLE_SCALE`. With a
    geometric excess, which is drawn beyond, it ends with the first probability below 2**-12, after
    at most 9 * scale + 2 entries. Others end with their first 0; entries near it may be equal.

    P3. Entries for a geometric excess are distinct: consecutive probabilities differ by a factor q
    <= exp(-2**-12), and all but the last are above 2**-12, so they lie 2**38 apart.
    """
    guard = _GUARD_BITS
    while (entries := law.entries(guard)) is None:
        guard *= 2
    table = np.array(entries[::-1], dtype=np.uint64)
    table.setflags(write=False)
    return table


_GAUSSIAN_GUARD_BITS = 96
_MORE_BITS = 32  # sums of thousands of terms are known less closely than one term


@dataclass(frozen=True, slots=True)
class GaussianSurvival:
    """The probabilities P(|X| >= k), k >= 1, where P(X = x) is proportional to exp(-x^2 / (2 s)).

    The excess over each value has a law of its own, so tables go on to probabilities below 2**-63.
    """

    numerator: int  # s is numerator / denominator, positive, of any size
    denominator: int

    has_geometric_excess: ClassVar[bool] = False

    def floor(self, k: int, bits: int) -> int:
        """Compute the floor of 2**bits * P(|X| >= k), k >= 1."""
        guard = _GAUSSIAN_GUARD_BITS
        # If 2**bits * P(|X| >= k) were a whole number, the loop would not end, and nothing would be
        # drawn. No rational s is known for which it is one.
        while True:
            low, high = self._enclosures(bits + guard)
            at = min(k, len(low)) - 1  # the last lower end is 0, as are all beyond it
            if low[at] >> guard == high[at] >> guard:
                return low[at] >> guard
            guard *= 2

    def entries(self, guard: int) -> list[int] | None:
        """List the floors of 2**63 * P(|X| >= k) up to the first 0; None if undecided."""
        guard += _MORE_BITS
        entries = []
        for low, high in zip(*self._enclosures(WORD_BITS + guard), strict=True):
            if low >> guard != high >> guard:
                return None
            entries.append(low >> guard)
            if not entries[-1]:
                return entries
        return None

    def _enclosures(self, bits: int) -> tuple[list[int], list[int]]:
        """Enclose 2**bits * P(|X| >= k), k = 1, 2, ..., until the lower end of a weight is 0."""
        unit = 1 << bits
        # With w(j) = exp(-j^2 / (2 s)) and A(k) the sum of w(j) over j >= k, the probability is 2
        # A(k) / (1 + 2 A(1)).
        ends = zip(*self._weights(bits), strict=True)
        low, high = ([*accumulate(reversed(weights))][::-1] for weights in ends)
        low_total, high_total = unit + 2 * low[0], unit + 2 * high[0]
        return (
            [(2 * a << bits) // high_total for a in low],
            [-(-(2 * a << bits) // low_total) for a in high],
        )

    def _weights(self, bits: int) -> Iterator[tuple[int, int]]:
        """Enclose 2**bits * w(j), j = 1, 2, ...; the last has all later weights in its upper end.

        P4. The ratio w(j + 1) / w(j) is exp(-(2 j + 1) / (2 s)), and the ratio of two of these is
        exp(-1 / s). Low ends are rounded down and high ends up. Ratios fall, so all weights from
        one on add up to at most that weight over 1 minus its ratio.
        """
        unit = 1 << bits
        low, high = exp_enclosure(self.denominator, 2 * self.numerator, bits)
        low_step, high_step = exp_enclosure(self.denominator, self.numerator, bits)
        low_ratio, high_ratio = low * low_step >> bits, -(-high * high_step >> bits)
        while low:
            yield low, high
            low, high = low * low_ratio >> bits, -(-high * high_ratio >> bits)
            low_ratio = low_ratio * low_step >> bits
            high_ratio = -(-high_ratio * high_step >> bits)
        yield 0, -(-(high << bits) // (unit - high_ratio))
