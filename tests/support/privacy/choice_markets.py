"""Small markets of bids, and the laws of choices among prices, bid by bid."""

import itertools
from functools import cache

import numpy as np

from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.mechanisms.price_maps import PriceMaps
from psd.privacy.loss import NANO

EPSILON = 7 * NANO // 10
E = EPSILON / NANO


def price_scores(bids, prices):
    """Price times number of bids at or above it."""
    return np.array([price * sum(bid >= price for bid in bids) for price in prices], np.int64)


@cache
def price_law(bids, prices):
    """Log-probability of each price, from the mechanism that draws it."""
    return law_of_scores(price_scores(bids, prices), max(prices))


def law_of_scores(scores, sensitivity, is_monotone=True):
    """Log-probability of each candidate."""
    how = {"epsilon": EPSILON, "sensitivity": sensitivity, "is_monotone": is_monotone}
    choice = PermuteAndFlip(scores=scores, **how)
    return np.array([choice.log_probability(np.array([i]))[0] for i in range(len(scores))])


@cache
def exponential_law(bids, prices):
    """Log-probabilities of the exponential mechanism at the rate of monotone scores."""
    one = np.zeros(len(prices), np.int64)
    score, first = 2 * price_scores(bids, prices), np.arange(len(prices))
    candidates = Candidates(group=one, first=first, length=one + 1, score=score)
    how = {"epsilon": np.array([EPSILON]), "sensitivity": np.array([max(prices)])}
    mechanism = ExponentialMechanism(candidates=candidates, **how)
    return np.array([mechanism.log_probability(np.array([i]))[0] for i in range(len(prices))])


@cache
def map_law_of(bidders, zones, answers):
    """Log-probability of each map of three bins, from the mechanism that draws it."""
    scores = np.zeros((3, 2), np.int64)
    for place, bid in bidders:
        scores[place] += [1 if bid >= 1 else 0, 2 if bid >= 2 else 0]
    return law_of_maps(scores, zones, answers, 2)


def law_of_maps(scores, zones, answers, sensitivity, is_monotone=True):
    how = {"epsilon": EPSILON, "sensitivity": sensitivity, "is_monotone": is_monotone}
    maps = PriceMaps(scores=scores, zones=zones, layout="runs", **how)
    return np.array([maps.log_probability(np.array([answer]))[0] for answer in answers])


def multisets(values, limit):
    """All multisets of up to a number of values."""
    for size in range(limit + 1):
        yield from itertools.combinations_with_replacement(sorted(values), size)


def changed(market, values, number):
    """Markets in which a number of units have other values."""
    for places in itertools.combinations(range(len(market)), number):
        for others in itertools.product(values, repeat=number):
            units = list(market)
            for place, other in zip(places, others, strict=True):
                units[place] = other
            yield tuple(sorted(units))


def worst(pairs, law):
    """Largest absolute log-ratio over pairs of markets, in units of epsilon."""
    ratios = (np.abs(law(a) - law(b)).max() for a, b in set(pairs) if a != b)
    return max(ratios) / E
