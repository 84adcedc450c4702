"""Sums over all maps of a layout of zones, by dynamic programming, and checks of a map."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from psd._util.arrays import Integers
from psd.mechanisms.zone_layouts import Layout, Span, State

__all__ = ["is_map", "spans_of", "sums_over_maps"]

Value = TypeVar("Value")


def sums_over_maps(
    layout: Layout,
    zone: Callable[[Span], Value],
    times: Callable[[Value, Value], Value],
    plus: Callable[[list[Value]], Value],
) -> Callable[[State], Value]:
    """Sum a product of values of zones over all maps of a state.

    Parameters
    ----------
    layout : Layout
        Which maps there are.
    zone : callable
        Value of a zone.
    times, plus : callable
        Product of two values, and sum of a list of values.

    Returns
    -------
    callable
        Sum of a state; sums are stored, so each is computed once.

    Examples
    --------
    >>> from psd.mechanisms.zone_layouts import Runs
    >>> maps = sums_over_maps(Runs(5), lambda span: 1, lambda a, b: a * b, sum)
    >>> maps((3, 0, 5))
    6
    """
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
    """Whether numbers of zones, one for each bin, are those of a map, numbered in its order.

    Examples
    --------
    >>> from psd.mechanisms.zone_layouts import HalvingTree
    >>> is_map(HalvingTree(4), np.array([0, 0, 1, 2]))
    True
    >>> is_map(HalvingTree(4), np.array([0, 1, 1, 2]))
    False
    """
    if len(zones) != layout.bins or zones[0] != 0 or not np.isin(np.diff(zones), (0, 1)).all():
        return False
    possible = {(int(first), int(stop)) for first, stop in layout.zones()}
    return all(span in possible for span in spans_of(zones))


def spans_of(zones: Integers) -> Iterator[Span]:
    """Spans of the zones of a map, from the number of the zone of each bin.

    Examples
    --------
    >>> list(spans_of(np.array([0, 0, 1, 2])))
    [(0, 2), (2, 3), (3, 4)]
    """
    starts = [0, *(np.flatnonzero(np.diff(zones)) + 1).tolist(), len(zones)]
    return itertools.pairwise(starts)
