"""What public numbers say about a choice before it is made: shortfall, and gain of liars."""

from __future__ import annotations

import math

from psd.errors import ParameterError
from psd.mechanisms.choice_laws import Layout

LIKELY = 3.0
"""A shortfall exceeds that of the mean by this much with probability exp(-3), below 0.05."""


def shortfall(scale: float, log_candidates: float, beyond: float = 0.0) -> float:
    """Bound of how far the score of a choice lies below the best score, in the unit of scores.

    P1. It follows from public numbers alone: `scale` is 1 / rate, and `log_candidates` the log of
    their number, or -log of the base weight of one. With `beyond` 0 it bounds the mean; with a
    positive t, the choice falls short by the result or more with probability exp(-t) at most.

    Let mu be the base measure, w(o) = mu(o) exp(rate score(o)), and o* a candidate. By Gibbs'
    inequality the log of the sum of all w is rate E[score] plus an entropy relative to mu that is
    never above 0, and it is at least log w(o*). So E[score] >= score(o*) - log(1 / mu(o*)) / rate.
    Candidates whose scores lie (log(1 / mu(o*)) + t) / rate below that of o* have together at most
    exp(-t) of the weight of o*, since mu adds up to 1. Permute-and-flip is never worse than the
    exponential mechanism.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007,
       theorem 8, for a bound of the same kind.
    .. [2] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
       selection", NeurIPS 2020, arXiv:2010.12603, theorem 2.
    """
    return scale * (log_candidates + beyond)


def base_weight(layout: Layout, zones: int, numbers: int, prices: int) -> float:
    """Log of 1 / base measure of a map: numbers of zones share it, and so do the maps of each."""
    return math.log(numbers) + math.log(layout.count(zones)) + zones * math.log(prices)


def map_shortfall(
    scale: float, layout: Layout, zones: int, numbers: int, prices: int, beyond: float = 0.0
) -> float:
    """Bound of how far the score of a map lies below the best map of one number of zones."""
    # It holds for each number of zones that is allowed, so more of them cost a log only.
    return shortfall(scale, base_weight(layout, zones, numbers, prices), beyond)


def liar_gain(epsilon: float, *, liars: int = 1, rounds: int = 1) -> float:
    """Bound of what units gain together who state a falsehood about themselves, as a share.

    P2. It is exp(liars rounds epsilon) - 1 of the largest utility that they have of any outcome. A
    lie is a change that costs epsilon once, such as another bid in the same place; one that changes
    the place, or several records, counts as two liars. A change of cost c multiplies no probability
    by more than e^c, so an expected utility rises by at most e^c - 1 of itself. Where no utility is
    below 0, it also rises by at most the largest one times the total variation, which is at most
    tanh(c / 2). At c = 2 x for x = liars rounds epsilon this is tanh(x), below e^x - 1: the bound
    holds for lies that count as two as well.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007,
       section 2.2.
    """
    if liars < 1 or rounds < 1:
        raise ParameterError(f"liars and rounds must be at least 1, got {liars} and {rounds}")
    exponent = liars * rounds * epsilon
    return math.expm1(exponent) if exponent < _LARGEST else math.inf


_LARGEST = 700.0
