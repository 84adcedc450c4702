"""Laws of private choices, of a list and of maps, and draws by floats: for audits and tests.

They decide no draw of a release. With scores of true data, results are PRIVATE. A map cuts bins 0
to n - 1 of a public layout into zones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Floats, Integers, morton_codes
from psd._util.instances import check_choice
from psd.errors import ParameterError
from psd.mechanisms.base import Uniform

__all__ = ["Layout", "check_maps", "leaf_numbers", "spans_of", "zone_layout"]


Value = TypeVar("Value")

Span = tuple[int, int]
"""Zone: its first bin, and the one after its last."""

State = tuple[int, int, int]
"""All maps of the bins of a span with a number of zones: number, first bin, bin after the last."""

MAX_ZONES = 100
"""Largest number of zones of a map."""

MAX_TABLE = 2**30
"""Largest product of possible zones and prices, a draw of which takes about two minutes."""


class Layout(Protocol):
    """The zones that a map may have, and how maps are made of smaller maps."""

    @property
    def bins(self) -> int:
        """Number of bins."""

    @property
    def zone_count(self) -> int:
        """Number of possible zones, z."""

    def zones(self) -> NDArray[np.int64]:
        """Spans of all possible zones, shape (z, 2)."""

    def pairs(self, state: State) -> list[tuple[State, State]]:
        """Divisions of the maps of a state with at least two zones; each map is in one of them."""

    def count(self, zones: int) -> int:
        """Number of maps with a number of zones."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Zones are runs of bins in a public order: binom(bins - 1, k - 1) maps of k zones."""

    bins: int

    @property
    def zone_count(self) -> int:
        """Number of runs."""
        return self.bins * (self.bins + 1) // 2

    def zones(self) -> NDArray[np.int64]:
        """Spans of all runs."""
        first, stop = np.triu_indices(self.bins)
        return np.stack([first, stop + 1], axis=1)

    def pairs(self, state: State) -> list[tuple[State, State]]:
        """Divide by the first bin of the last zone."""
        k, first, stop = state
        cuts = range(first + k - 1, stop)
        return [((k - 1, first, cut), (1, cut, stop)) for cut in cuts]

    def count(self, zones: int) -> int:
        """Number of maps with a number of zones."""
        return math.comb(self.bins - 1, zones - 1) if zones >= 1 else 0


@dataclass(frozen=True, slots=True)
class HalvingTree:
    """Zones are the leaves of a pruned tree that halves the bins; they are a power of two."""

    bins: int

    @property
    def zone_count(self) -> int:
        """Number of nodes."""
        return 2 * self.bins - 1

    def zones(self) -> NDArray[np.int64]:
        """Spans of all nodes."""
        sizes = [2**level for level in range(self.bins.bit_length())]
        firsts = [np.arange(0, self.bins, size) for size in sizes]
        return np.concatenate(
            [np.stack([f, f + n], axis=1) for f, n in zip(firsts, sizes, strict=True)]
        )

    def pairs(self, state: State) -> list[tuple[State, State]]:
        """Divide by the number of zones in the first half."""
        k, first, stop = state
        half = (stop - first) // 2
        middle = first + half
        numbers = range(max(1, k - half), min(half, k - 1) + 1)
        return [((i, first, middle), (k - i, middle, stop)) for i in numbers]

    def count(self, zones: int) -> int:
        """Number of maps with a number of zones; all nodes of a level have as many."""
        counts = [0, 1] + [0] * zones
        for _ in range(self.bins.bit_length() - 1):
            pairs = [sum(counts[i] * counts[k - i] for i in range(1, k)) for k in range(zones + 1)]
            counts = [pair + (k == 1) for k, pair in enumerate(pairs)]
        return counts[zones]


LAYOUTS: dict[str, type[Runs] | type[HalvingTree]] = {"runs": Runs, "halving-tree": HalvingTree}


def zone_layout(name: str, bins: int) -> Layout:
    """Return the layout of a name."""
    check_choice("layout", name, LAYOUTS)
    if bins < 1 or (name == "halving-tree" and bins & (bins - 1)):
        raise ParameterError(
            f"bins must be at least 1, and a power of two for a halving tree, got {bins}",
            name="bins",
            value=bins,
        )
    return LAYOUTS[name](bins)


def leaf_numbers(columns: Integers, rows: Integers, depth: int) -> Integers:
    """Bins, (n,), of grid cells in a halving tree of 2**depth a side that cuts x first, then y."""
    if len(columns) and not 0 <= min(columns.min(), rows.min()) <= max(
        columns.max(), rows.max()
    ) < (1 << depth):
        raise ParameterError(f"cells must be in a grid of {1 << depth} x {1 << depth}")
    # Nodes of the tree are runs of these numbers.
    return morton_codes(rows, columns)


def check_maps(layout: Layout, zones: Sequence[int], prices: int) -> None:
    """Refuse numbers of zones that no map has, and layouts with too many zones and prices."""
    limit = min(MAX_ZONES, layout.bins)
    numbers = list(zones)
    if not numbers or numbers[0] < 1 or numbers[-1] > limit or numbers != sorted(set(numbers)):
        raise ParameterError(
            f"zones must be ascending numbers from 1 to {limit}, the number of cells or regions "
            f"but at most {MAX_ZONES}, got {', '.join(map(str, numbers))[:80] or 'none'}",
            name="zones",
            value=tuple(numbers),
        )
    if layout.zone_count * prices > MAX_TABLE:
        raise ParameterError(
            f"prices must be at most {MAX_TABLE // layout.zone_count:,} for {layout.bins:,} cells "
            f"or regions in this layout, got {prices:,}; take larger steps, or fewer cells",
            name="prices",
            value=prices,
        )


def sums_over_maps(
    layout: Layout,
    zone: Callable[[Span], Value],
    times: Callable[[Value, Value], Value],
    plus: Callable[[list[Value]], Value],
) -> Callable[[State], Value]:
    """Return a function that sums a product of values of zones over all maps of a state."""
    # Stored, so each is computed once.
    sums: dict[State, Value] = {}

    def sum_of(state: State) -> Value:
        if state not in sums:
            parts = layout.pairs(state)
            sums[state] = (
                zone(state[1:])
                if state[0] == 1
                else plus([times(sum_of(a), sum_of(b)) for a, b in parts])
            )
        return sums[state]

    return sum_of


def is_map(layout: Layout, zones: Integers) -> bool:
    """Whether numbers of zones, one for each bin, are those of a map, numbered in its order."""
    if len(zones) != layout.bins or zones[0] != 0 or not np.isin(np.diff(zones), (0, 1)).all():
        return False
    possible = {(int(first), int(stop)) for first, stop in layout.zones()}
    return all(span in possible for span in spans_of(zones))


def spans_of(zones: Integers) -> Iterator[Span]:
    """Spans of the zones of a map, from the number of the zone of each bin."""
    starts = [0, *(np.flatnonzero(np.diff(zones)) + 1).tolist(), len(zones)]
    return itertools.pairwise(starts)


# Points of Gauss-Legendre quadrature on each panel, see `_panels`.
_POINTS = 40
_LAST_END = 0.75
# Candidates whose factors are multiplied at once, so that a table has some megabytes.
_CHUNK = 2**14
# The same for scores of zones at prices.
_SCORES_CHUNK = 2**20


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probabilities by permute-and-flip, (m,), to 12 digits; exponents: rate times gap."""
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
    # Quadrature on panels that double in width.
    total = float(coins.sum())
    ends = np.append(0.0, 2.0 ** np.arange(8) / total)
    # A panel that is too narrow would have points that are rounded to 1.
    ends = np.append(ends[ends < _LAST_END], min(1.0, 2.0**7 / total))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    width = np.diff(ends)[:, None] / 2
    points, weights = ((points + 1) * width + ends[:-1, None]).ravel(), (weights * width).ravel()
    logs = np.zeros(len(points))
    for start in range(0, len(coins), _CHUNK):
        logs += np.log1p(-coins[start : start + _CHUNK] * points[:, None]).sum(axis=1)
    return points, weights, logs


@dataclass(frozen=True, slots=True)
class MapLaw:
    """Maps of one number of zones, with weights exp(rate score)."""

    log_sum: float  # ln Z, Z the sum of all weights
    expected_score: float  # mean score


def map_law(scores: Integers, layout: Layout, zones: int, rate: float) -> MapLaw:
    """Law of the maps of one number of zones and their prices; scores: (bins, prices), private."""
    return _laws(scores, layout, [zones], rate)[0]


def _laws(scores: Integers, layout: Layout, zones: Sequence[int], rate: float) -> list[MapLaw]:
    """Laws of several numbers of zones; maps of several zones join one of each part."""

    def join(a: MapLaw, b: MapLaw) -> MapLaw:
        return MapLaw(a.log_sum + b.log_sum, a.expected_score + b.expected_score)

    laws = sums_over_maps(layout, _zone_laws(scores, layout, rate).__getitem__, join, _mix)
    return [laws((k, 0, layout.bins)) for k in zones]


def map_log_probability(
    scores: Integers, layout: Layout, zones: Sequence[int], rate: float, answer: Integers
) -> float:
    """Log-probability of a map, (bins, 2): zone and price of each bin; scores: private."""
    score = _score(scores, layout, zones, answer)
    if score is None:
        return -math.inf
    prices = scores.shape[1]
    # Each number of zones has the same base measure.
    measures = [-math.log(layout.count(k)) - k * math.log(prices) for k in zones]
    laws = _laws(scores, layout, zones, rate)
    # Logs of the sums of weights of each number of zones, with its base measure.
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
    # All bins of a zone have one price.
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
        # Scores of zones at each price: differences of running sums over bins, (zones, prices).
        table = below[part[:, 1]] - below[part[:, 0]]
        best = table.max(axis=1)
        # Less the best score, so that no exponential overflows.
        weights = np.exp(-rate * (best[:, None] - table))
        sums = weights.sum(axis=1)
        logs, means = rate * best + np.log(sums), (weights * table).sum(axis=1) / sums
        for (first, stop), log, mean in zip(part.tolist(), logs, means, strict=True):
            laws[first, stop] = MapLaw(float(log), float(mean))
    return laws


def _mix(laws: list[MapLaw]) -> MapLaw:
    """Law of maps that are of one of several laws."""
    # Relative to the largest, so that no exponential overflows.
    top = max(law.log_sum for law in laws)
    weights = [math.exp(law.log_sum - top) for law in laws]
    total = math.fsum(weights)
    scores = (w * law.expected_score for w, law in zip(weights, laws, strict=True))
    return MapLaw(top + math.log(total), math.fsum(scores) / total)


def laplace_noise(scale: Floats, uniform: Uniform) -> Integers:
    """Difference of two geometric numbers, for each scale."""
    first, second = uniform(2 * len(scale)).reshape(2, -1)
    parts = [np.floor(-np.log(each) * scale).astype(np.int64) for each in (first, second)]
    return parts[0] - parts[1]


def index_by_logs(logs: ArrayLike, uniform: Uniform) -> int:
    """Index with a probability in proportion to the exponential of its number."""
    numbers = np.asarray(logs, np.float64)
    return int(np.argmax(numbers - np.log(-np.log(uniform(len(numbers))))))


def log_sum(logs: ArrayLike) -> float:
    """Logarithm of the sum of exponentials."""
    return float(np.logaddexp.reduce(np.asarray(logs)))
