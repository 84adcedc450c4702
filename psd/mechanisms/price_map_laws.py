"""Law of maps of zones and prices, for audits, tests and tables. It decides no draw.

With results that follow from true scores, these are PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Integers
from psd.mechanisms.zone_layouts import Layout, Span
from psd.mechanisms.zone_maps import is_map, spans_of, sums_over_maps

__all__ = ["MapLaw", "map_law", "map_log_probability"]

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class MapLaw:
    """Maps of one number of zones, with weights exp(rate score).

    Parameters
    ----------
    log_sum : float
        Log of the sum of all weights, ln Z.
    expected_score : float
        Mean score.
    """

    log_sum: float
    expected_score: float


def map_law(scores: Integers, layout: Layout, zones: int, rate: float) -> MapLaw:
    """Law of the maps of one number of zones and their prices.

    Parameters
    ----------
    scores : ndarray, shape (bins, prices), int64
        Score of each bin at each price. Private.
    layout : Layout
        Which maps there are.
    zones : int
        Number of zones, 1 to the number of bins.
    rate : float
        Positive.

    Returns
    -------
    MapLaw
        Private, as the scores.

    Examples
    --------
    Two bins in one zone, prices with scores 0 and 2:

    >>> from psd.mechanisms.zone_layouts import Runs
    >>> law = map_law(np.array([[0, 1], [0, 1]]), Runs(2), 1, 0.5)
    >>> round(law.log_sum, 6), round(law.expected_score, 6)
    (1.313262, 1.462117)
    """
    return _laws(scores, layout, [zones], rate)[0]


def _laws(scores: Integers, layout: Layout, zones: Sequence[int], rate: float) -> list[MapLaw]:
    """Laws of several numbers of zones."""
    laws = sums_over_maps(layout, _zone_laws(scores, layout, rate).__getitem__, _joined, _mixed)
    return [laws((k, 0, layout.bins)) for k in zones]


def map_log_probability(
    scores: Integers, layout: Layout, zones: Sequence[int], rate: float, answer: Integers
) -> float:
    """Log-probability of a map, where each number of zones has the same base measure.

    Parameters
    ----------
    scores : ndarray, shape (bins, prices), int64
        Score of each bin at each price. Private.
    layout : Layout
        Which maps there are.
    zones : sequence of int
        Numbers of zones that a map may have.
    rate : float
        Positive.
    answer : ndarray, shape (bins, 2), int64
        Numbers of zone and price of each bin.

    Returns
    -------
    float
        -inf if it is no map of the layout, or has another number of zones.
    """
    score = _score(scores, layout, zones, answer)
    if score is None:
        return -math.inf
    prices = scores.shape[1]
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
    spans, rows = layout.zones(), max(1, _CHUNK // scores.shape[1])
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
