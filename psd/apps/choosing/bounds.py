"""What public numbers say about a choice before it is made: shortfall, and gain of liars."""

from __future__ import annotations

import math

from psd.errors import ParameterError
from psd.mechanisms.zone_layouts import Layout

__all__ = ["LIKELY", "base_weight", "liar_gain", "map_shortfall", "shortfall"]

LIKELY = 3.0
"""A shortfall exceeds that of the mean by this much with probability exp(-3), below 0.05."""


def shortfall(scale: float, log_candidates: float, beyond: float = 0.0) -> float:
    """Bound of how far the score of a choice lies below the best score.

    Guarantees
    ----------
    - It follows from public numbers alone.

    Parameters
    ----------
    scale : float
        1 / rate: sensitivity / epsilon for monotone scores, twice that for others. It has the unit
        of the scores.
    log_candidates : float
        Log of the number of candidates, or -log of the base weight of a candidate.
    beyond : float
        0 for a bound of the mean. With a positive t, the choice falls short by the result or more
        with probability exp(-t) at most.

    Returns
    -------
    float
        In the unit of the scores.

    Notes
    -----
    Let mu be the base measure, w(o) = mu(o) exp(rate score(o)), and o* a candidate. By Gibbs'
    inequality the log of the sum of all w is rate E[score] plus an entropy relative to mu that is
    never above 0, and it is at least log w(o*). So E[score] >= score(o*) - log(1 / mu(o*)) / rate.
    Candidates whose scores lie (log(1 / mu(o*)) + t) / rate below that of o* have together at
    most exp(-t) of the weight of o*, since mu adds up to 1. Permute-and-flip is never worse than
    the exponential mechanism.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007,
       theorem 8, for a bound of the same kind.
    .. [2] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
       selection", NeurIPS 2020, arXiv:2010.12603, theorem 2.

    Examples
    --------
    One of 100 prices at epsilon 1, in units of the highest price:

    >>> round(shortfall(1, math.log(100)), 2), round(shortfall(1, math.log(100), LIKELY), 2)
    (4.61, 7.61)
    """
    return scale * (log_candidates + beyond)


def base_weight(layout: Layout, zones: int, numbers: int, prices: int) -> float:
    """Log of 1 / base measure of a map of zones with prices.

    Each of some numbers of zones has the same measure, spread evenly over its maps and prices.

    Parameters
    ----------
    layout : Layout
        Which maps there are.
    zones : int
        Number of zones of the map, which the layout allows.
    numbers : int
        How many numbers of zones are allowed, K of 1..K.
    prices : int
        Number of prices.

    Returns
    -------
    float

    Examples
    --------
    Four runs of twelve regions, one of six numbers of zones, 100 prices:

    >>> from psd.mechanisms.zone_layouts import Runs
    >>> round(base_weight(Runs(12), 4, 6, 100), 2)
    25.32
    """
    return math.log(numbers) + math.log(layout.count(zones)) + zones * math.log(prices)


def map_shortfall(
    scale: float, layout: Layout, zones: int, numbers: int, prices: int, beyond: float = 0.0
) -> float:
    """Bound of how far the score of a map lies below the best map of one number of zones.

    The bound holds for each number of zones that is allowed, so more of them cost a log only.

    Parameters
    ----------
    scale, beyond : float
        As in `shortfall`.
    layout, zones, numbers, prices
        As in `base_weight`.

    Returns
    -------
    float
        In the unit of the scores.

    Examples
    --------
    >>> from psd.mechanisms.zone_layouts import Runs
    >>> round(map_shortfall(1, Runs(12), 2, 1, 100), 2)
    11.61
    """
    return shortfall(scale, base_weight(layout, zones, numbers, prices), beyond)


def liar_gain(epsilon: float, *, liars: int = 1, rounds: int = 1) -> float:
    """Bound of what units gain together who state a falsehood about themselves.

    Parameters
    ----------
    epsilon : float
        Epsilon of one choice. A lie is a change that costs epsilon once, such as another bid in the
        same place; one that changes the place, or several records, counts as two liars.
    liars : int
        Number of units who act together.
    rounds : int
        Number of choices with this epsilon among the same units, of whom some may leave.

    Returns
    -------
    float
        As a share of the largest utility that they have of any outcome:
        exp(liars rounds epsilon) - 1; inf where that is beyond any number.

    Raises
    ------
    ParameterError
        If there is no liar or no round.

    Notes
    -----
    A change of cost c multiplies no probability by more than e^c, so an expected utility rises by
    at most e^c - 1 of itself. Where no utility is below 0, it also rises by at most the largest one
    times the total variation, which is at most tanh(c / 2). At c = 2 x for x = liars rounds epsilon
    this is tanh(x), below e^x - 1: the bound holds for lies that count as two as well.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007,
       section 2.2.

    Examples
    --------
    >>> round(liar_gain(0.1), 4), round(liar_gain(0.1, liars=3), 4)
    (0.1052, 0.3499)
    """
    if liars < 1 or rounds < 1:
        raise ParameterError(f"liars and rounds must be at least 1, got {liars} and {rounds}")
    exponent = liars * rounds * epsilon
    return math.expm1(exponent) if exponent < _LARGEST else math.inf


_LARGEST = 700.0
