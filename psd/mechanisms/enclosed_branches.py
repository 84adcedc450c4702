"""Exact draws among weights that are only known to lie between integers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate

from psd.mechanisms.exponential_tables import FAST_BITS
from psd.mechanisms.random_words import random_words

__all__ = ["FIRST_PRECISION", "Enclosures", "draw_branch"]

Enclosures = list[tuple[int, int]]
"""Weights in one unit: integers not above, and not below them."""

FIRST_PRECISION = FAST_BITS
_WORD_BITS = 64


def draw_branch(enclosures: Callable[[int], Enclosures]) -> int:
    """Draw a branch with probability proportional to its weight, exactly; return its number.

    P1. The law is exact: by inversion of one uniform real number U in 0 to 1, of which only the
    first bits are drawn: branch c is the one with F(c - 1) <= U < F(c), F(c) being the share of the
    branches up to c. The shares lie between fractions that follow from the enclosures: with sums l
    and h of the lower and upper ends up to c, and l' and h' of those behind it, l / (l + h') <=
    F(c) <= h / (h + l'). The branch is decided if these fractions leave no doubt for all U with the
    bits so far. If they do not, the precision is doubled and as many bits are drawn. Every weight
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

    def ends_before(c: int) -> bool:
        return (prefix + 1) * (low[c] + high[-1] - high[c]) <= low[c] << bits

    c = bisect_left(range(len(weights) - 1), True, key=ends_before)
    before = c - 1
    if c and high[before] << bits > prefix * (high[before] + low[-1] - low[before]):
        return None
    return c
