"""Exact exponential mechanism over integer candidates whose scores are constant on intervals.

Many groups at once. A candidate is proposed with an integer weight, an upper bound of its exact
weight, and accepted with the exact ratio of the two, so the law is exact for any scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.base import Uniform
from psd.mechanisms.bernoulli import bernoulli_exp
from psd.mechanisms.certified_thresholds import exp_enclosure
from psd.mechanisms.random_words import random_words, uniform_below
from psd.privacy.loss import NANO

# Proposal weights have this many bits, minus the bits of the number of candidates of a group.
_BITS = 62
# The largest product of rate and gap; scores that are further below the best count as this far.
_DEEPEST = 64
# Rates epsilon / (2 sensitivity) are rounded down to multiples of 2^-50.
_RATE_BITS = 50
_WORD_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Intervals of integers with one score each, in groups."""

    # (m,) int64; group of each interval, ascending; every group from 0 on has a candidate.
    group: Integers
    first: Integers  # (m,) int64; first candidate of each interval
    length: Integers  # (m,) int64; candidates in each interval, 0 or more
    score: Integers  # (m,) int64, private; score of all candidates of the interval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExponentialMechanism:
    """One candidate of each group, with weights exp(epsilon score / (2 sensitivity)).

    P1. The selection of a group is epsilon-private if one unit of privacy changes no score of it by
    more than the sensitivity; see `exponential` for the exact law and its proof.
    """

    candidates: Candidates  # private scores
    epsilon: Integers  # (g,) int64; nano-epsilon of each group's selection, above 0
    sensitivity: Integers  # (g,) int64; largest change of a score of the group by one unit, above 0

    @staticmethod
    def neighbours() -> tuple[ExponentialMechanism, ExponentialMechanism]:
        """Two selections, and the same with one more unit, which changes scores of the first."""
        score = np.array([0, -1, -4, 2, 2])
        candidates = Candidates(
            group=np.array([0, 0, 0, 1, 1]),
            first=np.array([0, 1, 3, 0, 4]),
            length=np.array([1, 2, 1, 3, 1]),
            score=score,
        )
        first = ExponentialMechanism(
            candidates=candidates, epsilon=np.array([NANO, NANO]), sensitivity=np.array([2, 1])
        )
        moved = replace(candidates, score=score + np.array([-2, 2, 1, 0, 0]))
        return first, replace(first, candidates=moved)

    @property
    def cost(self) -> Integers:
        """Nano-epsilon of each selection."""
        return self.epsilon

    @property
    def public(self) -> tuple[Any, ...]:
        """Epsilons and sensitivities."""
        return ("selection", self.epsilon, self.sensitivity)

    def sample(self) -> Integers:
        """Select one candidate of each group."""
        if len(self.epsilon) == 0:
            return np.empty(0, np.int64)
        return exponential(self.candidates, self.epsilon, self.sensitivity)

    def log_probability(self, answer: Integers) -> NDArray[np.float64]:
        """Compute the log-probability of the answer of each group; -inf for another number."""
        # From epsilons and sensitivities, independently of the integers that `sample` uses, so an
        # audit can compare the two.
        group, length = self.candidates.group, self.candidates.length
        # Best score of each group; an empty interval does not count.
        best = np.full(len(self.epsilon), np.iinfo(np.int64).min)
        np.maximum.at(best, group[length > 0], self.candidates.score[length > 0])
        rate = self.epsilon / (2.0 * NANO * self.sensitivity)
        deepest = np.maximum(np.floor(_DEEPEST / rate), 1)[group]
        gap = np.where(length > 0, best[group] - self.candidates.score, 0)
        exponent = -rate[group] * np.minimum(gap, deepest)
        total = np.bincount(group, length * np.exp(exponent), len(rate))
        # Log-weight of the answer, less the log of the sum of its group.
        offset = answer[group] - self.candidates.first
        selected = (offset >= 0) & (offset < length)
        of_answer = np.full(len(rate), -np.inf)
        of_answer[group[selected]] = exponent[selected]
        return of_answer - np.log(total)

    def approximate(self, uniform: Uniform) -> Integers:
        """One candidate per group: the largest of the log-weights plus Gumbel noise."""
        candidates, number = self.candidates, len(self.epsilon)
        group = candidates.group
        rate = (self.epsilon / (2.0 * NANO * self.sensitivity))[group]
        weight = rate * candidates.score + np.log(np.maximum(candidates.length, 1e-300))
        # The largest of log-weight plus Gumbel noise has the law; sorted by group, it is the last.
        keys = weight - np.log(-np.log(uniform(len(group))))
        order = np.lexsort((keys, group))
        last = order[np.searchsorted(group[order], np.arange(number), side="right") - 1]
        length = candidates.length[last]
        within = (uniform(number) * length).astype(np.int64)
        return candidates.first[last] + np.minimum(within, length - 1)


mechanism = ExponentialMechanism


def exponential(candidates: Candidates, epsilon: Integers, sensitivity: Integers) -> Integers:
    """Select one candidate per group by the exponential mechanism.

    epsilon, sensitivity: (g,) int64, of each group, above 0, public; returns (g,) int64.

    P2. P(c) is proportional to exp(-a * gap(c)) exactly. The gap is the distance to the best score
    of the group, cut at the integer where a * gap passes 64 (but not below 1), and a is the rate
    epsilon / (2 * sensitivity), at most 64 and rounded down to a multiple of 2**-50.

    P3. Only integers decide an outcome; every candidate of a group has a positive probability.

    Privacy: a score cut at a fixed depth below the best keeps its sensitivity, since the maximum of
    two functions that change by at most s changes by at most s. So this is the exponential
    mechanism of a score of the same sensitivity [1]_. A rate rounded down only reduces the loss.

    Law: write a * gap = t + r with an integer t and r in [0, 1). A candidate is proposed with the
    integer weight w(t), at least 2**b exp(-t), and accepted with probability 2**b exp(-t) / w(t) *
    exp(-r): the product is 2**b exp(-a gap). The first factor is a coin of certified thresholds
    (`_coin_floor`), the second a coin of `bernoulli_exp`.

    .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, theorem 6.
    """
    if (candidates.length < 0).any():
        raise ValueError("an interval of candidates has a negative length")
    depth, rest, starts = _depths(candidates, epsilon, sensitivity)
    bits = _BITS - int(np.add.reduceat(candidates.length, starts).max()).bit_length()
    weight = _weights(bits)[depth]
    # Running totals of weights: a group has those from its start to its stop.
    total = np.cumsum((candidates.length * weight).view(np.uint64))
    before = total - (candidates.length * weight).view(np.uint64)
    stops = np.append(starts[1:], len(total))
    chosen = np.empty(len(starts), np.int64)
    pending = np.arange(len(starts))
    # A proposal is accepted with a probability of at least about exp(-1) in groups of up to 2**30
    # candidates, and 2**-10 in one of 2**36.
    # Each round proposes a candidate for every group that has none yet.
    while pending.size:
        index, offset = _proposed(total, before, starts[pending], stops[pending])
        accepted = _coins(depth[index], bits)
        accepted &= bernoulli_exp(rest[index], np.full(index.size, 1 << _RATE_BITS))
        # Candidates of an interval have one weight each, so the offset tells which of them it is.
        line = candidates.first[index] + offset // weight[index]
        chosen[pending[accepted]] = line[accepted]
        pending = pending[~accepted]
    return chosen


def _depths(
    candidates: Candidates, epsilon: Integers, sensitivity: Integers
) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """Integer part and 2**50-ths of rate times gap, and the index where each group starts."""
    starts = np.searchsorted(candidates.group, np.arange(len(epsilon)))
    # An empty interval also has a score, which must not count as the best.
    score = np.where(candidates.length > 0, candidates.score, np.iinfo(np.int64).min)
    best = np.maximum.reduceat(score, starts)[candidates.group]
    gap = np.where(candidates.length > 0, best - candidates.score, 0)
    rate = _rates(epsilon, sensitivity)
    # Gaps are cut where rate times gap passes the deepest: P2 of `exponential`.
    deepest = np.maximum((_DEEPEST << _RATE_BITS) // np.maximum(rate, 1), 1)
    depth = rate[candidates.group] * np.minimum(gap, deepest[candidates.group])
    return depth >> _RATE_BITS, depth & ((1 << _RATE_BITS) - 1), starts


def _rates(epsilon: Integers, sensitivity: Integers) -> Integers:
    """floor(2**50 epsilon / (2 sensitivity)), computed once per distinct pair."""
    # A number for each pair of a loss and a bound; far faster than distinct rows.
    bounds, of_bound = np.unique(sensitivity, return_inverse=True)
    pair = np.unique(epsilon, return_inverse=True)[1] * len(bounds) + of_bound
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    rates = [(int(epsilon[at]) << _RATE_BITS) // (2 * NANO * int(sensitivity[at])) for at in first]
    rates = [min(rate, _DEEPEST << _RATE_BITS) for rate in rates]
    return np.array(rates, np.int64)[which]


def _proposed(
    total: NDArray[np.uint64],
    before: NDArray[np.uint64],
    starts: NDArray[np.intp],
    stops: NDArray[np.intp],
) -> tuple[NDArray[np.intp], Integers]:
    """Draw a point below the weight of each group; return its interval and its offset in that."""
    # Running totals wrap modulo 2**64; differences within a group do not.
    base = before[starts]
    point = uniform_below(total[stops - 1] - base).view(np.uint64)
    low, high = starts.copy(), stops - 1
    # Bisection in all groups at once.
    while (low < high).any():
        middle = (low + high) // 2
        beyond = total[middle] - base <= point
        low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
    return low, (point - (before[low] - base)).view(np.int64)


@lru_cache(maxsize=64)
def _weights(bits: int) -> Integers:
    """Upper bounds of 2**bits exp(-t) for t = 0, 1, ..., 64."""
    bounds = [-(-exp_enclosure(t, 1, 2 * bits)[1] >> bits) for t in range(1, _DEEPEST + 1)]
    return np.array([1 << bits, *bounds], np.int64)


@lru_cache(maxsize=256)
def _coin_floor(depth: int, bits: int, precision: int) -> int:
    """floor(2**precision * p) for p = 2**bits exp(-depth) / w(depth), by a certified enclosure."""
    weight, guard = int(_weights(bits)[depth]), 64
    while True:
        low, high = exp_enclosure(depth, 1, bits + precision + guard)
        if low // (weight << guard) == high // (weight << guard):
            return low // (weight << guard)
        guard *= 2


def _coins(depth: Integers, bits: int) -> NDArray[np.bool_]:
    """Coins of probability 2**bits exp(-depth) / w(depth), which is 1 at depth 0."""
    floors = np.array(
        [0, *(_coin_floor(t, bits, _WORD_BITS) for t in range(1, _DEEPEST + 1))], np.uint64
    )
    # A word below the floor is a success for certain; an equal one is settled exactly.
    words = random_words(depth.size)
    coins: NDArray[np.bool_] = (words < floors[depth]) | (depth == 0)
    for tie in np.flatnonzero((words == floors[depth]) & (depth > 0)):
        coins[tie] = _lies_below(int(words[tie]), int(depth[tie]), bits)
    return coins


def _lies_below(prefix: int, depth: int, bits: int) -> bool:
    """Whether a uniform number with this prefix is below p; bits are read until they differ."""
    precision = _WORD_BITS
    while prefix == (floor := _coin_floor(depth, bits, precision)):
        prefix, precision = prefix << 64 | int(random_words(1)[0]), precision + 64
    return prefix < floor
