"""Answers of areas in windows of slices: each slice is fitted, asked and freed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from psd._util.arrays import Integers
from psd.query.answer_table import Threshold, answer_columns, check_levels
from psd.query.areas import Areas, windows_by_slice
from psd.query.index import QueryIndex, fitted, in_sums, peers_in
from psd.query.totals import QueryTotals, SliceSum
from psd.release.record import ReleaseRecord


def answer_areas(
    index: QueryIndex,
    areas: Areas,
    *,
    confidence: float,
    threshold: Threshold,
    values: Sequence[tuple[str, int]] = (),
) -> dict[str, Any]:
    """Answer areas: `COLUMNS`, and those of values, (areas,) each; see `Release.query`."""
    one = np.zeros(1, np.int64)
    certainty: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
    return answer_windows([index], [one], areas, **certainty, values=values)[0]


def answer_windows(
    slices: Sequence[QueryIndex],
    windows: Sequence[Integers],
    areas: Areas,
    *,
    confidence: float,
    threshold: Threshold,
    values: Sequence[tuple[str, int]] = (),
    series: Sequence[ReleaseRecord] = (),
) -> list[dict[str, Any]]:
    """Answer areas in windows, slice by slice; nothing is left of a slice when the next is asked.

    windows: ascending numbers of `slices`, each in one; values: ``mean`` or ``sum``, and a number;
    series: all slices, peers of those that are added up.
    """
    check_levels(confidence, threshold)
    record = slices[0].record
    numbers = {number for _, number in values}
    # Of the records, and of the weights of each value towards its upper and its lower bound.
    sums: list[dict[Any, SliceSum]] = [defaultdict(SliceSum) for _ in windows]
    blocks: list[dict[str, Any]] = [{} for _ in windows]
    peers = peers_in(series)
    for in_windows, index in zip(windows_by_slice(windows), fitted(slices), strict=True):
        found: dict[Any, QueryTotals] = {}
        for number in numbers:
            for bound, part in enumerate(index.value_parts(number)):
                found[number, bound] = areas.totals(part)
        kinds = in_sums(index, (len(windows[window]) > 1 for window, _ in in_windows), peers)
        counts = {is_sum: areas.totals(each) for is_sum, each in kinds.items()}
        for window, is_last in in_windows:
            sums[window][None].add(counts[len(windows[window]) > 1])
            for name, totals in found.items():
                sums[window][name].add(totals)
            if not is_last:
                continue
            of_names = {name: each.totals for name, each in sums[window].items()}
            sums[window].clear()
            blocks[window] = answer_columns(
                of_names[None], record, confidence=confidence, threshold=threshold
            )
            if values:
                from psd.query.means import value_columns

                blocks[window] |= value_columns(
                    record, of_names, values, confidence, blocks[window], threshold
                )
    return blocks
