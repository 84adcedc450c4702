"""Zones with one price each: the exponential mechanism over all maps of a public layout.

Weights are summed by dynamic programming as pairs of integers that enclose them, relative to the
best map, so that none is taken for 0; nothing is random or rounded to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.base import Uniform
from psd.mechanisms.choice_laws import (
    Layout,
    Span,
    State,
    index_by_logs,
    log_sum,
    map_log_probability,
    sums_over_maps,
    zone_layout,
)
from psd.mechanisms.exponential_tables import (
    Enclosures,
    ExponentialTable,
    draw_branch,
    exponential_table,
)
from psd.mechanisms.permute_and_flip import choice_rate
from psd.privacy.loss import NANO

__all__ = ["PriceMaps"]

# Scores of zones that are compared at once, so that a table stays in the cache of a processor.
_CHUNK = 2**17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PriceMaps:
    """One map of zones with prices, with weights exp(rate score) over a public base measure.

    The score of a map is the sum over its zones of the scores of their bins at the price of the
    zone. The base measure is 1 / K for each of K numbers of zones, spread evenly over the maps and
    prices of that number. The rate is that of `psd.mechanisms.permute_and_flip.choice_rate`.

    P1. The map is epsilon-private under adding or removing one unit, and under every change that
    moves the score of no map by more than the sensitivity and, if the scores are monotone, all of
    them in one direction (a bid that is raised or lowered in its place). A unit that is replaced by
    any other, or a bid that also changes its place, costs at most twice as much.

    P2. The law is exact: the rate is a fraction of integers, every weight lies between integers,
    and bits of a uniform number are drawn, at more and more precision, until a branch is decided.
    Every map has a positive probability.

    Proof. Let one unit move the score of map o by d(o), and w(o) be its weight. If all d(o) lie in
    0 to D, or all in -D to 0, then w(o) and the sum of all weights are multiplied by factors that
    lie both in 1 to exp(rate D), or both in exp(-rate D) to 1, so w(o) / sum changes by a factor
    from exp(-rate D) to exp(rate D), which is exp(epsilon) at the rate of monotone scores. In
    general both factors lie in exp(-rate D) to exp(rate D), hence half the rate. The base measure
    is public. [1]_

    Law: all maps of k zones are in one of the pairs of `psd.mechanisms.choice_laws.Layout.pairs`,
    and weights of joined maps are products, so that sums over all maps follow by dynamic
    programming. A number of zones is drawn by its share, then a pair, zone by zone, and a price for
    each zone.

    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007, theorem 6
       and section 4.2 (attribute auctions).
    """

    scores: Integers  # (bins, prices) int64, private; score of each bin at each price
    zones: tuple[int, ...]  # numbers of zones that a map may have, ascending
    layout: str  # "runs" of the bins in order, or leaves of a pruned "halving-tree" over them
    epsilon: int  # nano-epsilon of the choice, above 0
    sensitivity: int  # largest change of the score of any map by one unit of privacy, 1 to 2**32
    is_monotone: bool  # whether one unit more never lowers the score of any map

    score_axes: ClassVar[int] = 2

    @staticmethod
    def neighbours() -> tuple[PriceMaps, PriceMaps]:
        """Return maps of up to two zones over three bins, and the same with a bid of 2 more."""
        scores = np.array([[1, 2], [1, 0], [0, 0]])
        first = PriceMaps(
            scores=scores,
            zones=(1, 2),
            layout="runs",
            epsilon=NANO,
            sensitivity=2,
            is_monotone=True,
        )
        return first, replace(first, scores=scores + np.array([[0, 0], [0, 0], [1, 2]]))

    @property
    def cost(self) -> Integers:
        """Nano-epsilon of the one map, shape (1,)."""
        return np.array([self.epsilon], np.int64)

    @property
    def public(self) -> tuple[Any, ...]:
        """All arguments but the scores, of which the shape is public."""
        return (
            *("price-maps", self.scores.shape, self.zones, self.layout),
            *(self.epsilon, self.sensitivity, self.is_monotone),
        )

    def sample(self) -> Integers:
        """Draw a map: numbers of zone and price of each bin, shape (1, bins, 2)."""
        drawing = _Drawing(self)
        chosen = np.empty((1, *self.scores.shape[:1], 2), np.int64)
        for zone, (first, stop) in enumerate(drawing.zones()):
            chosen[0, first:stop] = zone, drawing.price((first, stop))
        return chosen

    def log_probability(self, answer: Integers) -> NDArray[np.float64]:
        """Compute the log-probability of the map, shape (1,); -inf for other answers."""
        numerator, denominator = choice_rate(self.epsilon, self.sensitivity, self.is_monotone)
        rate = numerator / denominator
        layout = zone_layout(self.layout, len(self.scores))
        return np.array([map_log_probability(self.scores, layout, self.zones, rate, answer[0])])

    def approximate(self, uniform: Uniform) -> Integers:
        """Draw numbers of zones, pairs and prices by sums in floats."""
        layout = zone_layout(self.layout, len(self.scores))
        rate = choice_rate(self.epsilon, self.sensitivity, self.is_monotone)
        # Running sums of scores over bins, times the rate: a zone is a difference of two rows.
        below = np.cumsum(np.pad(self.scores, ((1, 0), (0, 0))), axis=0) * (rate[0] / rate[1])
        sums = sums_over_maps(
            layout, lambda zone: log_sum(below[zone[1]] - below[zone[0]]), add, log_sum
        )

        # A number of zones, each with the same base measure.
        many, prices = (0, layout.bins), self.scores.shape[1]
        maps = [math.log(layout.count(k)) + k * math.log(prices) for k in self.zones]
        logs = [sums((k, *many)) - log for k, log in zip(self.zones, maps, strict=True)]
        pending = [(self.zones[index_by_logs(logs, uniform)], *many)]

        # Pairs of smaller maps until each is one zone, whose price is drawn at once.
        chosen = np.empty((0, 2), np.int64)
        while pending:
            number, first, stop = state = pending.pop()
            if number == 1:
                zone = chosen[-1, 0] + 1 if len(chosen) else 0
                price = index_by_logs(below[stop] - below[first], uniform)
                chosen = np.concatenate([chosen, np.tile([zone, price], (stop - first, 1))])
                continue
            pairs = layout.pairs(state)
            left, right = pairs[index_by_logs([sums(a) + sums(b) for a, b in pairs], uniform)]
            pending += [right, left]
        return chosen[None]


class _Drawing:
    """One draw: sums of weights at the precisions that it needs."""

    def __init__(self, maps: PriceMaps) -> None:
        self._layout: Layout = zone_layout(maps.layout, len(maps.scores))
        self._numbers = maps.zones
        rate = choice_rate(maps.epsilon, maps.sensitivity, maps.is_monotone)
        self._make = partial(MapWeights, maps.scores, self._layout, maps.zones, rate)
        self._weights: dict[int, MapWeights] = {}

    def zones(self) -> list[Span]:
        """Draw a number of zones, then the zones, from the first bin to the last."""
        number = self._numbers[self._draw(MapWeights.numbers)]
        pending, spans = [(number, 0, self._layout.bins)], []
        while pending:
            state = pending.pop()
            if state[0] == 1:
                spans.append(state[1:])
            else:
                first, second = self._layout.pairs(state)[self._draw_pair(state)]
                pending += [second, first]
        return spans

    def price(self, zone: Span) -> int:
        """Draw the number of the price of a zone."""
        return self._draw(lambda weights: weights.prices(zone))

    def _draw_pair(self, state: State) -> int:
        return self._draw(lambda weights: weights.pairs(state))

    def _draw(self, enclosures: Callable[[MapWeights], Enclosures]) -> int:
        """Draw a branch by its weights; sums at a precision are made once."""

        def enclose(precision: int) -> Enclosures:
            if precision not in self._weights:
                self._weights[precision] = self._make(precision)
            return enclosures(self._weights[precision])

        return draw_branch(enclose)


@dataclass(frozen=True, slots=True)
class Total:
    """Sum of weights exp(rate (score - best)), in units of 2**-bits, between two integers."""

    best: int
    low: int
    high: int


class MapWeights:
    """Sums of weights exp(rate score) over maps, at one precision.

    scores: (bins, prices) int64, private; all else public.

    P3. Sums are known to about 2**-precision of themselves. A zone's sum over prices, relative to
    its best price, is at least 1. So is that of maps, relative to the best map, and it is at most
    their number n. Weights exp(-rate gap) that multiply maps have precision + bits(n) bits.
    """

    def __init__(
        self,
        scores: Integers,
        layout: Layout,
        zones: tuple[int, ...],
        rate: tuple[int, int],
        precision: int,
    ) -> None:
        self._layout, self._zones, self._rate, self._precision = layout, zones, rate, precision
        self._below = np.concatenate([np.zeros_like(scores[:1]), np.cumsum(scores, axis=0)])
        self._maps = {k: layout.count(k) * scores.shape[1] ** k for k in zones}
        self._bits = precision + max(self._maps.values()).bit_length()
        # Sums of all states, each made when it is first used.
        of_zone = self._zone_totals().__getitem__
        self._totals = sums_over_maps(layout, of_zone, self._times, self._plus)

    def numbers(self) -> Enclosures:
        """Weights of the numbers of zones; each has the same base measure, as all its maps."""
        # So the sum over the maps of a number is divided by how many they are.
        common = math.lcm(*self._maps.values())
        totals = [self._totals((k, 0, self._layout.bins)) for k in self._zones]
        shares = [common // self._maps[k] for k in self._zones]
        return [
            (low * share, high * share)
            for (low, high), share in zip(self._relative(totals), shares, strict=True)
        ]

    def pairs(self, state: State) -> Enclosures:
        """Weights of the pairs of smaller states, in the order of the layout."""
        pairs = self._layout.pairs(state)
        return self._relative([self._times(self._totals(a), self._totals(b)) for a, b in pairs])

    def prices(self, zone: Span) -> Enclosures:
        """Weights of the prices of a zone."""
        table = self._table(self._precision)
        # Weights of one zone, relative to its best price.
        row = self._rows(np.array([zone]))
        weights = table.weights(row.max() - row)[0].tolist()
        return [(int(weight), int(weight) + table.error) for weight in weights]

    def _zone_totals(self) -> dict[Span, Total]:
        """Sums over the prices of each possible zone."""
        table, prices = self._table(self._precision), self._below.shape[1]
        shift, error = self._bits - self._precision, prices * table.error
        spans, rows = self._layout.zones(), max(1, _CHUNK // prices)
        totals = {}
        for start in range(0, len(spans), rows):
            part = spans[start : start + rows]
            scores = self._rows(part)  # (rows, prices)
            best = scores.max(axis=1)
            lows = table.sums(best[:, None] - scores)
            for (first, stop), top, low in zip(part.tolist(), best.tolist(), lows, strict=True):
                totals[first, stop] = Total(top, low << shift, low + error << shift)
        return totals

    def _rows(self, spans: Integers) -> Integers:
        """Scores of zones, shape (n, prices)."""
        rows: Integers = self._below[spans[:, 1]] - self._below[spans[:, 0]]
        return rows

    def _table(self, bits: int) -> ExponentialTable:
        return exponential_table(*self._rate, bits)

    def _times(self, a: Total, b: Total) -> Total:
        """Enclose the sum over all maps that join one of each."""
        low, high = a.low * b.low >> self._bits, -(-a.high * b.high >> self._bits)
        return Total(a.best + b.best, low, high)

    def _plus(self, totals: list[Total]) -> Total:
        """Enclose the sum of sums, relative to the best map of all."""
        weighted = self._relative(totals)
        low, high = (sum(ends) for ends in zip(*weighted, strict=True))
        return Total(max(t.best for t in totals), low >> self._bits, -(-high >> self._bits))

    def _relative(self, totals: list[Total]) -> Enclosures:
        """Sums relative to the best map of all, in units of 2**-bits of their own."""
        table, unit = self._table(self._bits), 1 << self._bits
        best = max(total.best for total in totals)
        ends = []
        for total in totals:
            weight = table.weight(best - total.best)
            upper = min(weight + table.error, unit)
            ends.append((total.low * weight, total.high * upper))
        return ends


mechanism = PriceMaps
