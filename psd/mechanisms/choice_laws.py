"""Laws of private choices, of a list and of maps, for audits, tests and tables.

They decide no draw, so they are in floats; no file of an exact draw is. With scores of true data,
results are PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.mechanisms.zone_layouts import Layout, Span, is_map, spans_of, sums_over_maps

__all__ = [
    "MapLaw",
    "map_law",
    "map_log_probability",
    "permute_and_flip_log_probability",
    "permute_and_flip_probabilities",
]

# Points of Gauss-Legendre quadrature on each panel, see `_panels`.
_POINTS = 40
_LAST_END = 0.75
# Candidates whose factors are multiplied at once, so that a table has some megabytes.
_CHUNK = 2**14
# The same for scores of zones at prices.
_SCORES_CHUNK = 2**20


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probability of each candidate by permute-and-flip, (m,), to about 12 digits.

    exponents: (m,) float64, rate times gap, so 0 for the best.
    """
    coins = np.exp(-exponents)
    points, weights, logs = _product(coins)
    probabilities = np.zeros(len(coins))
    # With p_s = exp(-exponent_s), the probability of i is p_i times the integral over t from 0 to 1
    # of prod (1 - p_s t) over s other than i.
    for t, weight, log in zip(points, weights, logs, strict=True):
        probabilities += weight * np.exp(log - np.log1p(-coins * t)) * coins
    return probabilities


def permute_and_flip_log_probability(exponents: Floats, chosen: int) -> float:
    """Log-probability of one candidate of (m,) exponents, also of one below 1e-300."""
    coins = np.exp(-exponents)
    points, weights, logs = _product(coins)
    integral = (weights * np.exp(logs - np.log1p(-coins[chosen] * points))).sum()
    return float(np.log(integral) - exponents[chosen])


def _product(coins: Floats) -> tuple[Floats, Floats, Floats]:
    """Points in 0 to 1, their weights, and the log of the product of all 1 - coin t at each."""
    points, weights = _panels(float(coins.sum()))
    logs = np.zeros(len(points))
    for start in range(0, len(coins), _CHUNK):
        logs += np.log1p(-coins[start : start + _CHUNK] * points[:, None]).sum(axis=1)
    return points, weights, logs


def _panels(total: float) -> tuple[Floats, Floats]:
    """Points and weights of quadrature over 0 to 1, on panels that double in width.

    The integrand falls about as exp(-t sum p). Each panel is as wide as its distance from 0, in
    units of 1 / sum p; beyond 128 of them the integrand is below 1e-50.
    """
    ends = np.append(0.0, 2.0 ** np.arange(8) / total)
    # A panel that is too narrow would have points that are rounded to 1.
    ends = np.append(ends[ends < _LAST_END], min(1.0, 2.0**7 / total))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    width = np.diff(ends)[:, None] / 2
    return ((points + 1) * width + ends[:-1, None]).ravel(), (weights * width).ravel()


@dataclass(frozen=True, slots=True)
class MapLaw:
    """Maps of one number of zones, with weights exp(rate score)."""

    log_sum: float  # ln Z, Z the sum of all weights
    expected_score: float  # mean score


def map_law(scores: Integers, layout: Layout, zones: int, rate: float) -> MapLaw:
    """Law of the maps of one number of zones and their prices; scores: (bins, prices), private."""
    return _laws(scores, layout, [zones], rate)[0]


def _laws(scores: Integers, layout: Layout, zones: Sequence[int], rate: float) -> list[MapLaw]:
    """Laws of several numbers of zones."""
    laws = sums_over_maps(layout, _zone_laws(scores, layout, rate).__getitem__, _joined, _mixed)
    return [laws((k, 0, layout.bins)) for k in zones]


def map_log_probability(
    scores: Integers, layout: Layout, zones: Sequence[int], rate: float, answer: Integers
) -> float:
    """Log-probability of a map, (bins, 2) int64, zone and price of each bin; -inf for none.

    scores: (bins, prices) int64, private.
    """
    score = _score(scores, layout, zones, answer)
    if score is None:
        return -math.inf
    prices = scores.shape[1]
    # Each number of zones has the same base measure.
    measures = [-math.log(layout.count(k)) - k * math.log(prices) for k in zones]
    laws = _laws(scores, layout, zones, rate)
    sums = [law.log_sum + measure for law, measure in zip(laws, measures, strict=True)]
    number = list(zones).index(int(answer[-1, 0]) + 1)
    return rate * score + measures[number] - float(np.logaddexp.reduce(sums))


def _score(scores: Integers, layout: Layout, zones: Sequence[int], answer: Integers) -> int | None:
    """Score of a map; None for other answers."""
    zone, price = answer.T
    bins, prices = scores.shape
    if not (
        is_map(layout, zone) and zone[-1] + 1 in zones and ((price >= 0) & (price < prices)).all()
    ):
        return None
    if any(len(set(price[first:stop].tolist())) > 1 for first, stop in spans_of(zone)):
        return None
    return int(scores[np.arange(bins), price].sum())


def _zone_laws(scores: Integers, layout: Layout, rate: float) -> dict[Span, MapLaw]:
    """Laws of the prices of each possible zone."""
    below = np.concatenate([np.zeros_like(scores[:1]), np.cumsum(scores, axis=0)])
    spans, rows = layout.zones(), max(1, _SCORES_CHUNK // scores.shape[1])
    laws: dict[Span, MapLaw] = {}
    for start in range(0, len(spans), rows):
        part = spans[start : start + rows]
        table = below[part[:, 1]] - below[part[:, 0]]
        best = table.max(axis=1)
        weights = np.exp(-rate * (best[:, None] - table))
        sums = weights.sum(axis=1)
        logs, means = rate * best + np.log(sums), (weights * table).sum(axis=1) / sums
        for (first, stop), log, mean in zip(part.tolist(), logs, means, strict=True):
            laws[first, stop] = MapLaw(float(log), float(mean))
    return laws


def _joined(a: MapLaw, b: MapLaw) -> MapLaw:
    """Law of maps that join one of each."""
    return MapLaw(a.log_sum + b.log_sum, a.expected_score + b.expected_score)


def _mixed(laws: list[MapLaw]) -> MapLaw:
    """Law of maps that are of one of several laws."""
    top = max(law.log_sum for law in laws)
    weights = [math.exp(law.log_sum - top) for law in laws]
    total = math.fsum(weights)
    scores = (w * law.expected_score for w, law in zip(weights, laws, strict=True))
    return MapLaw(top + math.log(total), math.fsum(scores) / total)
