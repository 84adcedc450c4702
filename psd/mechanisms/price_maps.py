"""Zones with one price each: the exponential mechanism over all maps of a public layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.enclosed_branches import Enclosures, draw_branch
from psd.mechanisms.map_weights import MapWeights
from psd.mechanisms.permute_and_flip import choice_rate
from psd.mechanisms.price_map_laws import map_log_probability
from psd.mechanisms.zone_layouts import Layout, Span, State, zone_layout
from psd.privacy.epsilon import NANO

__all__ = ["PriceMaps", "mechanism"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PriceMaps:
    """One map of zones with prices, with weights exp(rate score) over a public base measure.

    The score of a map is the sum over its zones of the scores of their bins at the price of the
    zone. The base measure is 1 / K for each of K numbers of zones, spread evenly over the maps
    and prices of that number. The rate is that of `psd.mechanisms.permute_and_flip.choice_rate`.

    Guarantees
    ----------
    - The map is epsilon-private under adding or removing one unit, and under every change that
      moves the score of no map by more than the sensitivity and, if the scores are monotone, all
      of them in one direction (a bid that is raised or lowered in its place). A unit that is
      replaced by any other, or a bid that also changes its place, costs at most twice as much.
    - The law is exact: the rate is a fraction of integers, every weight lies between integers, and
      bits of a uniform number are drawn, at more and more precision, until a branch is decided.
      Every map has a positive probability.

    Parameters
    ----------
    scores : ndarray, shape (bins, prices), int64
        Score of each bin at each price. **Private.**
    zones : tuple of int
        Numbers of zones that a map may have, ascending; each at least 1 and at most the number of
        bins. **Public.**
    layout : str
        "runs" of the bins in their order, or the leaves of a pruned "halving-tree" over them; see
        `psd.mechanisms.zone_layouts`. **Public.**
    epsilon : int
        Nano-epsilon of the choice, above 0. **Public.**
    sensitivity : int
        Largest change of the score of any map by one unit of privacy, 1 to 2**32. **Public.**
    is_monotone : bool
        Whether one unit more never lowers the score of any map. **Public.**

    Notes
    -----
    Proof. Let one unit move the score of map o by d(o), and w(o) be its weight. If all d(o) lie in
    0 to D, or all in -D to 0, then w(o) and the sum of all weights are multiplied by factors that
    lie both in 1 to exp(rate D), or both in exp(-rate D) to 1, so w(o) / sum changes by a factor
    from exp(-rate D) to exp(rate D), which is exp(epsilon) at the rate of monotone scores. In
    general both factors lie in exp(-rate D) to exp(rate D), hence half the rate. The base measure
    is public. [1]_

    Law: all maps of k zones are in one of the pairs of `psd.mechanisms.zone_layouts.Layout.pairs`,
    and weights of joined maps are products, so that sums over all maps follow by dynamic
    programming. A number of zones is drawn by its share, then a pair, zone by zone, and a price for
    each zone.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007, theorem 6
       and section 4.2 (attribute auctions).
    """

    scores: Integers
    zones: tuple[int, ...]
    layout: str
    epsilon: int
    sensitivity: int
    is_monotone: bool

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
        """Draw a branch by its weights."""
        return draw_branch(lambda precision: enclosures(self._at(precision)))

    def _at(self, precision: int) -> MapWeights:
        """Sums at a precision, made once."""
        if precision not in self._weights:
            self._weights[precision] = self._make(precision)
        return self._weights[precision]


mechanism = PriceMaps
