"""One of a public list of candidates, by permute-and-flip over exact integer scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.base import Uniform
from psd.mechanisms.bernoulli import bernoulli_exp_of_parts
from psd.mechanisms.choice_laws import permute_and_flip_log_probability
from psd.mechanisms.random_words import uniform_below
from psd.privacy.loss import NANO

__all__ = ["PermuteAndFlip"]

_MAX_INTEGER = 2**63 - 1
# Rate times gap counts as this at most. That is a cut of scores at a depth below the best, which
# moves by no more than the scores do, and in their direction.
_DEEPEST = 2**62


def choice_rate(epsilon: int, sensitivity: int, is_monotone: bool) -> tuple[int, int]:
    """Rate by which the weight exp(rate score) grows with the score, in lowest terms."""
    # epsilon / sensitivity if one unit more lowers no score (monotone), else half of it.
    denominator = sensitivity * NANO * (1 if is_monotone else 2)
    common = math.gcd(epsilon, denominator)
    return epsilon // common, denominator // common


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PermuteAndFlip:
    """The first candidate, in random order, whose coin of probability exp(-rate gap) is true.

    The gap is the distance of a score to the best one; the rate is that of `choice_rate`.

    P1. The choice is epsilon-private under adding or removing one unit, and under every change that
    moves no score by more than the sensitivity and, if the scores are monotone, all of them in one
    direction (a bid that is raised or lowered). A unit that is replaced by any other costs at most
    twice as much.

    P2. The law is exact: the rate is a fraction of integers, rate times gap is cut at 2**62 alone,
    and only integers decide. Every candidate has a positive probability; ties are broken by chance.

    Law: all coins are independent of the order, so the first true one in random order is a
    uniformly random one of the true coins. With p_s = exp(-rate gap_s), P(i) = p_i * integral over
    t from 0 to 1 of prod (1 - p_s t) over s other than i, where t is the place of i in the order.

    Proof. P(i) depends on differences of scores only. (1) Let the score of i be x above the best
    other one, u = exp(-rate x), c_s = exp(-rate (best other - score_s)), and H(u) = integral from 0
    to u of prod (1 - c_s v) over v. By substitution P(i) = H(min(u, 1)) / u. H grows, so if i falls
    by a relative to all others, P(i) falls by a factor of at most exp(rate a), and it never rises.
    (2) P(i) never rises with the score of another candidate s: as long as s is not the best, only
    p_s grows. If s is the best, let w = exp(-rate best), then P(i) is proportional to the integral
    from 0 to w of (1 - v / w) prod (1 - b_o v), b_o constants, which falls with w. (3) Let one unit
    move the scores by d_s. Relative to i, others move by d_s - d_i: by at most the sensitivity D if
    all d_s lie in 0 to D, or all in -D to 0, and by at most 2 D otherwise. By (2) P(i) lies between
    its values when all others move by that much up or down, which by (1) differ from P(i) by
    factors of at most exp(rate D) or exp(2 rate D). Both are exp(epsilon) at the rates of
    `choice_rate`.

    The expected score is never below that of the exponential mechanism at the same rate, see [1]_,
    theorem 2, so bounds for that hold as well.

    .. [1] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
       selection", NeurIPS 2020, arXiv:2010.12603.
    """

    scores: Integers  # (m,) int64, private; score of each candidate, m >= 1
    epsilon: int  # nano-epsilon of the choice, above 0
    sensitivity: int  # largest change of any score by one unit of privacy, 1 to 2**32
    is_monotone: bool  # whether one unit more never lowers any score

    score_axes: ClassVar[int] = 1

    @staticmethod
    def neighbours() -> tuple[PermuteAndFlip, PermuteAndFlip]:
        """Return a choice among bids 1 to 3 as prices, and the same with one more bid of 2."""
        first = PermuteAndFlip(
            scores=np.array([2, 4, 3]), epsilon=NANO, sensitivity=2, is_monotone=True
        )
        return first, replace(first, scores=np.array([3, 6, 3]))

    @property
    def cost(self) -> Integers:
        """Nano-epsilon of the one choice, shape (1,)."""
        return np.array([self.epsilon], np.int64)

    @property
    def public(self) -> tuple[Any, ...]:
        """Number of candidates, epsilon, sensitivity, and whether scores are monotone."""
        return (
            *("permute-and-flip", len(self.scores)),
            *(self.epsilon, self.sensitivity, self.is_monotone),
        )

    def sample(self) -> Integers:
        """Flip one coin per candidate, and select one of those with a true coin, shape (1,)."""
        # A uniform one of the true coins is the first true one of a random order; that of the best
        # score is always true, so there is one.
        true = np.flatnonzero(bernoulli_exp_of_parts(*self._exponents()))
        return true[uniform_below(np.array([true.size]))].astype(np.int64)

    def log_probability(self, answer: Integers) -> NDArray[np.float64]:
        """Compute the log-probability of the chosen candidate, shape (1,); -inf for another."""
        chosen = int(answer[0])
        if not 0 <= chosen < len(self.scores):
            return np.array([-np.inf])
        numerator, denominator = choice_rate(self.epsilon, self.sensitivity, self.is_monotone)
        exponents = self._gaps().astype(np.float64) * (numerator / denominator)
        return np.array([permute_and_flip_log_probability(exponents, chosen)])

    def approximate(self, uniform: Uniform) -> Integers:
        """Largest score plus exponential noise, which has the law of permute-and-flip."""
        numerator, denominator = choice_rate(self.epsilon, self.sensitivity, self.is_monotone)
        # Exponential noise, by floats: for samplers with a seed alone.
        scores = self.scores * (numerator / denominator)
        return np.array([np.argmax(scores - np.log(uniform(len(scores))))])

    def _gaps(self) -> NDArray[np.uint64]:
        """Distances to the best score; differences of any 64-bit integers fit without a sign."""
        # Differences modulo 2^64: a score below zero wraps, and the difference wraps back.
        unsigned = self.scores.astype(np.int64, copy=False).view(np.uint64)
        gaps: NDArray[np.uint64] = unsigned[self.scores.argmax()] - unsigned
        return gaps

    def _exponents(self) -> tuple[Integers, Integers, Integers]:
        """Integer part, rest and denominator of rate times gap of each candidate."""
        numerator, denominator = choice_rate(self.epsilon, self.sensitivity, self.is_monotone)
        gaps: NDArray[Any] = self._gaps()
        if int(gaps.max()) * numerator > _MAX_INTEGER:
            gaps = gaps.astype(object)  # integers of any size
        else:
            gaps = gaps.view(np.int64)
        products = gaps * numerator
        integer = np.minimum(products // denominator, _DEEPEST).astype(np.int64)
        return integer, (products % denominator).astype(np.int64), np.full(len(gaps), denominator)


mechanism = PermuteAndFlip
