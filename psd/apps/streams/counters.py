"""Counters of running totals: what is published, and the variance of each total. Public numbers.

The total after step t is the sum of the counts of steps 1 to t. With A the lower triangle of ones
and A = B C, a counter publishes C x plus independent noise and computes B (C x + noise); the
variance of total t is the variance of the noise times the squared norm of row t of B [1]_.

``slices`` is C = 1: noise on every step, totals are sums. ``tree`` has noise on the blocks of steps
of a binary tree; the estimate of a block joins its own count with those of its two halves, with
weights by variance [2]_, and a total is the sum of the blocks that fill it. ``toeplitz`` is the
square root of A in whole numbers: C is the lower triangle of round(2^20 c_j), with c_0 = 1 and
c_j = c_(j-1) (2j - 1) / (2j) [3]_.

One unit lies in one step. It changes one column of C: the squared sensitivity is the largest
squared norm of a column, that of the first one. A unit that lies in several steps changes several
columns, and their norms add up; so totals of a user with records in several slices are sums.

References
----------
.. [1] Li, Miklau, Hay, McGregor, Rastogi. "The Matrix Mechanism." VLDB Journal 2015.
.. [2] Honaker. "Efficient Use of Differentially Private Binary Trees." TPDP 2015.
.. [3] Fichtenberger, Henzinger, Upadhyay. "Constant Matters: Fine-grained Error Bound on
   Differentially Private Continual Observation." ICML 2023, arXiv:2202.11205.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from psd._util.arrays import Floats

__all__ = [
    "COUNTERS",
    "UNIT_WEIGHT",
    "Counter",
    "block_variance",
    "blocks_closed",
    "blocks_of",
    "toeplitz_row",
    "toeplitz_squared_sensitivity",
    "toeplitz_weights",
    "tree_levels",
    "variance_factors",
]

Counter = Literal["slices", "tree", "toeplitz"]
"""Names of counters."""

COUNTERS: Final[tuple[Counter, ...]] = ("slices", "tree", "toeplitz")

UNIT_WEIGHT: Final = 2**20
"""The number that stands for 1 in the matrix of the counter ``toeplitz``."""


@lru_cache(maxsize=8)
def toeplitz_weights(steps: int) -> tuple[int, ...]:
    """First column of C: round(2^20 c_j), by exact arithmetic."""
    weights, binomial = [], 1  # c_j is the binomial coefficient (2j over j), over 4^j
    for j in range(steps):
        weights.append((2 * UNIT_WEIGHT * binomial + 4**j) // (2 * 4**j))
        binomial = binomial * 2 * (2 * j + 1) // (j + 1)
    return tuple(weights)


def toeplitz_squared_sensitivity(steps: int) -> int:
    """Squared norm of the first column of C, the largest one, of all its entries."""
    return sum(weight**2 for weight in toeplitz_weights(steps))


@lru_cache(maxsize=8)
def toeplitz_row(steps: int) -> Floats:
    """First column of B = A C^-1, by substitution; the last row read backwards. shape (steps,)."""
    weights = np.array(toeplitz_weights(steps), np.float64)
    inverse = np.zeros(steps)
    inverse[0] = 1 / weights[0]
    for j in range(1, steps):
        inverse[j] = -(weights[1 : j + 1] @ inverse[j - 1 :: -1]) / weights[0]
    row = np.cumsum(inverse)
    row.setflags(write=False)
    return row


def tree_levels(steps: int) -> int:
    """Number of blocks that a step lies in: the largest block is a power of 2 of the steps."""
    return steps.bit_length()


def blocks_closed(step: int) -> range:
    """Levels of the blocks that end with a step, counted from 0; a block has 2^level steps."""
    end = step + 1
    return range((end & -end).bit_length())


def blocks_of(steps: int) -> list[tuple[int, int]]:
    """Level and last step of the blocks that fill the first steps, the largest first."""
    blocks, end = [], 0
    for level in reversed(range(steps.bit_length())):
        if steps >> level & 1:
            end += 2**level
            blocks.append((level, end - 1))
    return blocks


def block_variance(level: int) -> Fraction:
    """Variance of the estimate of a block, over that of its noise.

    P1. It is 2^l / (2^(l+1) - 1). v_0 = 1. The sum of two halves has variance 2 v. With weights by
    variance the estimate has 1 / (1 + 1 / (2 v)), which takes 2^l / (2^(l+1) - 1) to the value for
    l + 1.
    """
    return Fraction(2**level, 2 ** (level + 1) - 1)


def variance_factors(counter: Counter, steps: int) -> list[Fraction]:
    """Variance of each total over that of the noise of a slice, a block or an entry of C x."""
    if counter == "slices":
        return [Fraction(number) for number in range(1, steps + 1)]
    if counter == "tree":
        return [
            sum((block_variance(level) for level, _ in blocks_of(number)), Fraction(0))
            for number in range(1, steps + 1)
        ]
    squares = np.cumsum(toeplitz_row(steps) ** 2)
    return [Fraction(value) for value in squares.tolist()]
