"""Weights of all maps of zones and prices, summed by dynamic programming between integers.

This module draws no random numbers and never rounds to nearest. A sum is a pair of integers that
enclose it, relative to the weight of its best map, so that no sum is taken for 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psd._util.arrays import Integers
from psd.mechanisms.enclosed_branches import Enclosures
from psd.mechanisms.exponential_tables import ExponentialTable, exponential_table
from psd.mechanisms.zone_layouts import Layout, Span, State
from psd.mechanisms.zone_maps import sums_over_maps

__all__ = ["MapWeights", "Total"]

# Scores of zones that are compared at once, so that a table stays in the cache of a processor.
_CHUNK = 2**17


@dataclass(frozen=True, slots=True)
class Total:
    """Sum of weights exp(rate (score - best)), in units of 2**-bits, between two integers."""

    best: int
    low: int
    high: int


class MapWeights:
    """Sums of weights exp(rate score) over maps, at one precision.

    Parameters
    ----------
    scores : ndarray, shape (bins, prices), int64
        Scores add up over the bins of a zone and over the zones of a map. **Private.**
    layout : Layout
        Which maps there are. **Public.**
    zones : tuple of int
        Numbers of zones, ascending. **Public.**
    rate : tuple of int
        Numerator and denominator. **Public.**
    precision : int
        Bits behind the point of the sum of a zone, which is at least 1. **Public.**

    Notes
    -----
    A zone's sum over prices, relative to its best price, is at least 1. So is that of maps,
    relative to the best map, and it is at most the number of maps, n. Weights exp(-rate gap) that
    maps are multiplied by have precision + bits(n) bits, so that sums are known to about
    2**-precision of themselves.
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
        self._totals = self._sums()

    def numbers(self) -> Enclosures:
        """Weights of the numbers of zones; each number has the same base measure, as all its maps.

        So the sum over the maps of a number is divided by how many they are.
        """
        common = math.lcm(*self._maps.values())
        totals = [self._totals((k, 0, self._layout.bins)) for k in self._zones]
        shares = [common // self._maps[k] for k in self._zones]
        return [
            (low * share, high * share)
            for (low, high), share in zip(self._relative(totals), shares, strict=True)
        ]

    def pairs(self, state: State) -> Enclosures:
        """Weights of the pairs of smaller states, in the order of the layout."""
        return self._relative([self._times(*pair) for pair in self._parts(state)])

    def prices(self, zone: Span) -> Enclosures:
        """Weights of the prices of a zone."""
        table = self._table(self._precision)
        row = self._rows(np.array([zone]))
        weights = table.weights(row.max() - row)[0].tolist()
        return [(int(weight), int(weight) + table.error) for weight in weights]

    def _sums(self) -> Callable[[State], Total]:
        """Sums of all states, each made when it is first used."""
        zones = self._zone_totals
        return sums_over_maps(self._layout, zones.__getitem__, self._times, self._plus)

    @cached_property
    def _zone_totals(self) -> dict[Span, Total]:
        """Sums over the prices of each possible zone."""
        spans = self._layout.zones()
        rows = max(1, _CHUNK // self._below.shape[1])
        parts = [spans[start : start + rows] for start in range(0, len(spans), rows)]
        return {span: total for part in parts for span, total in self._totals_of(part)}

    def _totals_of(self, spans: Integers) -> list[tuple[Span, Total]]:
        """Sums over the prices of some zones."""
        table, scores = self._table(self._precision), self._rows(spans)
        best = scores.max(axis=1)
        lows = table.sums(best[:, None] - scores)
        shift, error = self._bits - self._precision, scores.shape[1] * table.error
        return [
            ((first, stop), Total(top, low << shift, low + error << shift))
            for (first, stop), top, low in zip(spans.tolist(), best.tolist(), lows, strict=True)
        ]

    def _rows(self, spans: Integers) -> Integers:
        """Scores of zones, shape (n, prices)."""
        rows: Integers = self._below[spans[:, 1]] - self._below[spans[:, 0]]
        return rows

    def _table(self, bits: int) -> ExponentialTable:
        return exponential_table(*self._rate, bits)

    def _parts(self, state: State) -> list[tuple[Total, Total]]:
        """Sums of the pairs of a state."""
        return [(self._totals(a), self._totals(b)) for a, b in self._layout.pairs(state)]

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
