"""Counters of running totals: what is published, its variance, and totals of cells. Private.

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

With ``slices`` the totals are sums of the noisy counts of the slices and cost nothing. With
``tree`` and ``toeplitz`` half of epsilon is for the totals: the noise is drawn on blocks of steps,
or on sums with weights, before anything is added up, and all that follows reads noisy counts only.

P1. Totals cost at most the loss that is for them. Proof. Let a unit lie in one step, with at most k
records. ``tree``: the unit is in the tally of the one block of each level that holds its step, so
in at most h = `tree_levels` of the blocks, and each of them is released with epsilon / h for a unit
of k records; the losses add up to epsilon. ``toeplitz``: step t releases the counts of sum_s C_ts
x_s. The unit changes x of one step s, by n_c <= k in cell c, and the numbers of cell c by C_ts n_c
over all t; noise of sigma_c^2 = S^2 k^2 / (2 rho_c), S^2 the squared norm of the largest column of
C, costs sum_t (C_ts n_c)^2 / (2 sigma_c^2) <= (n_c / k)^2 rho_c in rho. So the T releases cost what
one release of the unit's records costs by the proof of `psd.curator.curator.Curator`: at most rho.
The tally of step t is a function of the records of steps up to t; that later records may depend on
earlier answers changes nothing, since a unit's records are the same in both data sets but for
itself, and the matrix is fixed.

.. [1] Li, Miklau, Hay, McGregor, Rastogi. "The Matrix Mechanism." VLDB Journal 2015.
.. [2] Honaker. "Efficient Use of Differentially Private Binary Trees." TPDP 2015.
.. [3] Fichtenberger, Henzinger, Upadhyay. "Constant Matters: Fine-grained Error Bound on
   Differentially Private Continual Observation." ICML 2023, arXiv:2202.11205.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from psd._util.arrays import Floats
from psd.apps.streams.state import add_blocks, empty_tally, numbers_of, packed, tally_of
from psd.space.box_tree import Tree

if TYPE_CHECKING:
    from psd.apps.streams.state import Block
    from psd.ingest.tally import Tally


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


Draw = Callable[["Tally"], Tree]
"""Draws the counts of a tally, with the part of the budget that a counter gives each draw."""

_DENOMINATOR = 10**12

# Tallies that are added at once.
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Total:
    """Running total after a step, and what the next steps need. Private."""

    drawn: Tree  # cells, and the loss that was paid for each count
    numbers: Floats  # (n,) float64; estimate of each node
    factor: Fraction  # variance of a number over that of a count which this loss paid for alone
    # Private; what the next steps need.
    blocks: Mapping[tuple[int, int], Block] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Total: private>"

    def tree(self, squared_sensitivity: int) -> Tree:
        """Cells with the totals, rounded to whole numbers, and the noise of these."""
        noise = replace(
            self.drawn.noise,
            squared_sensitivity=squared_sensitivity,
            factor=self.factor.limit_denominator(_DENOMINATOR),
        )
        return replace(self.drawn, count=np.rint(self.numbers).astype(np.int64), noise=noise)


def sum_of_slices(drawn: Tree, earlier: Sequence[Tree], number: int) -> Total:
    """Running total as the sum of noisy slices: of the last, and the total before it. Public."""
    counts = np.sum([drawn.count, *(tree.count for tree in earlier)], axis=0)
    return Total(drawn=drawn, numbers=counts.astype(np.float64), factor=Fraction(number))


def next_total(
    counter: Counter,
    steps: range,
    tally: Tally,
    blocks: Mapping[tuple[int, int], Block],
    draw: Draw,
    *,
    number: int,
) -> Total:
    """Draw what a counter needs for a step, and for those that were left out before it.

    Private: the tally of the last step, and the blocks of the earlier ones.
    """
    blocks, weights = dict(blocks), toeplitz_weights(number) if counter == "toeplitz" else ()
    for step in steps:
        exact = tally if step == steps[-1] else empty_tally(tally.contributions)
        drawn = (
            _advance_tree(step, exact, blocks, draw)
            if counter == "tree"
            else _advance_toeplitz(weights, step, exact, blocks, draw)
        )
    if counter == "tree":
        # The total is the sum of the blocks that fill the steps.
        filling = blocks_of(steps[-1] + 1)
        return Total(
            drawn=drawn,
            numbers=np.sum([numbers_of(blocks[at]) for at in filling], axis=0),
            factor=sum((block_variance(level) for level, _ in filling), Fraction(0)),
            blocks={at: blocks[at] for at in filling},
        )
    # The total is the last row of B times what was published.
    row = toeplitz_row(number)[: steps[-1] + 1]
    numbers = np.zeros(len(drawn))
    for step, weight in enumerate(row[::-1].tolist()):
        numbers += weight * numbers_of(blocks[0, step])
    return Total(
        drawn=drawn,
        numbers=numbers,
        factor=Fraction(float(row @ row)) * toeplitz_squared_sensitivity(number),
        blocks={(0, step): blocks[0, step] for step in steps},
    )


def _advance_tree(
    step: int, tally: Tally, blocks: dict[tuple[int, int], Block], draw: Draw
) -> Tree:
    """Draw the blocks that end with a step, the smallest first; join each with its halves."""
    drawn, exact = draw(tally), tally
    blocks[0, step] = packed(exact, drawn.count.astype(np.float64))
    for level in blocks_closed(step)[1:]:
        halves = blocks.pop((level - 1, step - 2 ** (level - 1))), blocks.pop((level - 1, step))
        first = tally_of(halves[0], tally.contributions)
        exact = add_blocks([first, exact], [1, 1], tally.contributions)
        drawn = draw(exact)
        # The block's own count and the sum of its halves, by their variances.
        weight, below = 2 * block_variance(level - 1), numbers_of(halves[0]) + numbers_of(halves[1])
        numbers = (float(weight) * drawn.count + below) / float(weight + 1)
        blocks[level, step] = packed(exact, numbers)
    return drawn


def _advance_toeplitz(
    weights: tuple[int, ...],
    step: int,
    tally: Tally,
    blocks: dict[tuple[int, int], Block],
    draw: Draw,
) -> Tree:
    """Draw the sum of all steps so far, each times its weight."""
    largest = UNIT_WEIGHT * tally.contributions
    summed = add_blocks([tally], [weights[0]], largest)
    for start in range(0, step, _BATCH):
        part = range(start, min(start + _BATCH, step))
        tallies = [tally_of(blocks[0, earlier], largest) for earlier in part]
        factors = [weights[step - earlier] for earlier in part]
        summed = add_blocks([summed, *tallies], [1, *factors], largest)
    drawn = draw(summed)
    blocks[0, step] = packed(tally, drawn.count)
    return drawn
