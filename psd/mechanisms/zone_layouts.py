"""Public layouts of zones: which maps there are, how they are made of smaller ones, sums over all.

A map cuts the bins 0 to n - 1 of a layout into zones of consecutive bins. Layouts are public: they
depend on no record.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers, morton_codes
from psd.errors import ParameterError

__all__ = [
    "LAYOUTS",
    "MAX_ZONES",
    "HalvingTree",
    "Layout",
    "Runs",
    "Span",
    "State",
    "check_maps",
    "is_map",
    "leaf_numbers",
    "spans_of",
    "sums_over_maps",
    "zone_layout",
]

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
    if name not in LAYOUTS:
        raise ParameterError(
            f"layout must be one of {', '.join(LAYOUTS)}, got {name[:80]!r}", name="layout"
        )
    if bins < 1 or (name == "halving-tree" and bins & (bins - 1)):
        raise ParameterError(
            f"bins must be at least 1, and a power of two for a halving tree, got {bins}",
            name="bins",
            value=bins,
        )
    return LAYOUTS[name](bins)


def leaf_numbers(columns: Integers, rows: Integers, depth: int) -> Integers:
    """Bins of cells in a halving tree that cuts x first, then y, and so on in turn.

    columns, rows: (n,) int64, cells of a grid of 2**depth x 2**depth; returns (n,) int64.
    """
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
