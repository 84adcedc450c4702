"""Weights enclosed between integers and a stated error, at any precision, and draws among them.

No random number is drawn here but by `draw_branch`, and none is rounded to nearest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.certified_thresholds import exp_enclosure
from psd.mechanisms.random_words import random_words

FAST_BITS = 60
"""Precision at which products are of 64-bit words; at others they are of integers of any size."""

_CHUNK_BITS = 10
_CHUNK = 1 << _CHUNK_BITS
_STEPS = range(1, _CHUNK)
_GUARD_BITS = 32
_HALF = 30
_LOW = (1 << _HALF) - 1


class ExponentialTable:
    """Integers w with w <= 2**bits exp(-rate gap) < w + error, for gaps 0, 1, 2, ...

    P1. The enclosure holds. The i-th table has the weights of j 2**(10 i), j below 1,024, so a
    weight is the product of one entry of each. Let a <= A < a + e and b <= B < b + f with A and B
    at most 2**bits. Then floor(a b / 2**bits) <= A B / 2**bits < a b / 2**bits + e + f + e f /
    2**bits, which is below the floor plus e + f + 2, since e f is below 2**bits. Gaps beyond the
    tables have a weight below exp(-bits) 2**bits, which is below 1: between 0 and the error.
    """

    def __init__(self, numerator: int, denominator: int, bits: int) -> None:
        self.bits = bits
        self._factors: list[list[int]] = []
        self.error = -2
        while not self._factors or numerator * self._reach < bits * denominator:
            # One more table: factors of the next ten bits of the gap, rounded down.
            step = numerator * self._reach
            enclosures = [exp_enclosure(step * j, denominator, bits + _GUARD_BITS) for j in _STEPS]
            lows = [low >> _GUARD_BITS for low, _ in enclosures]
            highs = [(high >> _GUARD_BITS) + 1 for _, high in enclosures]
            self._factors.append([1 << bits, *lows])
            self.error += 2 + max(high - low for low, high in zip(lows, highs, strict=True))
        # Factors as words, or as integers of any size.
        dtype = np.uint64 if bits == FAST_BITS else object
        self._arrays = [np.array(factor, dtype) for factor in self._factors]

    @property
    def _reach(self) -> int:
        """First gap that the tables so far do not cover."""
        return 1 << _CHUNK_BITS * len(self._factors)

    def weight(self, gap: int) -> int:
        """Return w of one gap."""
        if gap >= self._reach:
            return 0
        weight = 1 << self.bits
        for factor in self._factors:
            weight = weight * factor[gap % _CHUNK] >> self.bits
            gap //= _CHUNK
        return weight

    def weights(self, gaps: Integers) -> NDArray[Any]:
        """Return w of each gap, of the shape of the gaps; unsigned words if bits is 60."""
        covered = np.minimum(gaps, min(self._reach, 2**63) - 1)
        # One table for each ten bits of the gap; the weight is the product of their entries.
        weights: NDArray[Any] = self._arrays[0][covered & (_CHUNK - 1)]
        for array in self._arrays[1:]:
            covered = covered >> _CHUNK_BITS
            weights = self._product(weights, array[covered & (_CHUNK - 1)])
        if self._reach < 2**63:
            weights[gaps >= self._reach] = 0
        return weights

    def sums(self, gaps: Integers) -> list[int]:
        """Sum w over the rows of gaps, shape (n, m), as integers of any size."""
        weights = self.weights(gaps)
        if self.bits != FAST_BITS:
            return [int(total) for total in weights.sum(axis=1)]
        # The halves of 60-bit words are summed apart, so that no sum wraps.
        high = (weights >> np.uint64(_HALF)).sum(axis=1).tolist()
        low = (weights & np.uint64(_LOW)).sum(axis=1).tolist()
        return [(h << _HALF) + rest for h, rest in zip(high, low, strict=True)]

    def _product(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Compute floor(a b / 2**bits); halves of words, since a b has up to 120 bits."""
        product: NDArray[Any]
        if self.bits != FAST_BITS:
            product = a * b >> self.bits
            return product
        half, low = np.uint64(_HALF), np.uint64(_LOW)
        a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
        product = a1 * b1 + ((a1 * b0 + a0 * b1 + (a0 * b0 >> half)) >> half)
        return product


@lru_cache(maxsize=8)
def exponential_table(numerator: int, denominator: int, bits: int) -> ExponentialTable:
    """Return the table of a public rate and precision, made once."""
    return ExponentialTable(numerator, denominator, bits)


Enclosures = list[tuple[int, int]]
"""Weights in one unit: integers not above, and not below them."""

FIRST_PRECISION = FAST_BITS
_WORD_BITS = 64


def draw_branch(enclosures: Callable[[int], Enclosures]) -> int:
    """Draw a branch with probability proportional to its weight, exactly; return its number.

    P2. The law is exact, by inversion of one uniform real U in 0 to 1, of which only the first bits
    are drawn: branch c is the one with F(c - 1) <= U < F(c), F(c) being the share of the branches
    up to c. With sums l and h of the lower and upper ends up to c, and l' and h' of those behind
    it, l / (l + h') <= F(c) <= h / (h + l'). The branch is decided if these leave no doubt for all
    U with the bits so far; else the precision is doubled and as many bits are drawn. Every weight
    is above 0 and never taken for 0, and enclosures at a higher precision are closer in relation to
    the sum of all, so the loop ends.
    """
    prefix, bits, precision = 0, 0, FIRST_PRECISION
    while True:
        weights = enclosures(precision)
        if len(weights) == 1:
            return 0
        while bits < precision:
            prefix, bits = prefix << _WORD_BITS | int(random_words(1)[0]), bits + _WORD_BITS
        branch = decided_branch(weights, prefix, bits)
        if branch is not None:
            return branch
        precision *= 2


def decided_branch(weights: Enclosures, prefix: int, bits: int) -> int | None:
    """Find the branch of all numbers that start with a prefix of bits; None if undecided."""
    low = list(accumulate(weight for weight, _ in weights))
    high = list(accumulate(weight for _, weight in weights))

    # Whether all numbers of the prefix lie below F(c), by its lower bound.
    def ends_before(c: int) -> bool:
        return (prefix + 1) * (low[c] + high[-1] - high[c]) <= low[c] << bits

    c = bisect_left(range(len(weights) - 1), True, key=ends_before)
    before = c - 1
    if c and high[before] << bits > prefix * (high[before] + low[-1] - low[before]):
        return None
    return c
