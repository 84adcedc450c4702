"""Joint answers of the means or sums of a value, with their covariances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.query.answer_table import Threshold, answer_columns, check_levels
from psd.query.areas import windows_by_slice
from psd.query.index import fitted, in_sums, peers_in
from psd.query.joint import (
    Joint,
    WindowSums,
    joint_answers,
    nearest_covariance,
    sum_windows,
    with_deviation,
)
from psd.query.means import value_columns, value_totals
from psd.query.region_overlaps import check_size
from psd.query.totals import QueryTotals, SliceSum

if TYPE_CHECKING:
    from psd.query.areas import Areas
    from psd.query.index import QueryIndex
    from psd.release.record import ReleaseRecord


def answer_values_jointly(
    slices: Sequence[QueryIndex],
    windows: Sequence[Integers],
    labels: Sequence[Mapping[str, str]],
    areas: Areas,
    *,
    value: tuple[str, int],
    confidence: float,
    threshold: Threshold,
    series: Sequence[ReleaseRecord] = (),
) -> Joint:
    """Answer a ``mean`` or ``sum`` and the number of a value, as `answer_windows_jointly` does."""
    check_levels(confidence, threshold)
    check_size(len(areas) * len(windows))
    record, pairs = slices[0].record, np.empty((0, 2), np.int64)
    counts, upper = (WindowSums.of_size(len(windows), len(areas)) for _ in range(2))
    lower = [SliceSum() for _ in windows]
    peers = peers_in(series)
    for number, (in_windows, index) in enumerate(
        zip(windows_by_slice(windows), fitted(slices), strict=True)
    ):
        are_sums = {window: len(windows[window]) > 1 for window, _ in in_windows}
        regions = areas.overlaps(index.fit)
        if not number:
            pairs = regions.overlapping_pairs()
        asked = in_sums(index, are_sums.values(), peers)
        counts.add(
            are_sums, {k: (each.fit, areas.totals(each)) for k, each in asked.items()}, regions
        )
        above, below = index.value_parts(value[1])
        of_weights = above.fit, areas.totals(above)
        upper.add(are_sums, dict.fromkeys(asked, of_weights), areas.overlaps(above.fit))
        totals = areas.totals(below)
        for window in are_sums:
            lower[window].add(totals)

    both = {(value[1], 0): upper.totals, (value[1], 1): sum_windows(lower)}

    def columns_at(level: float) -> dict[str, Any]:
        found: dict[str, Any] = answer_columns(
            counts.totals, record, confidence=level, threshold=threshold
        )
        return found | value_columns(record, both, [value], level, found, threshold)

    of_counts = counts.noise, counts.uneven.covariance
    stated = record.values[value[1]]
    return joint_answers(
        [each.totals for each in counts.sums],
        joint_parts(record, value, both, columns_at(confidence), of_counts, upper),
        areas,
        windows,
        labels,
        record=record,
        pairs=pairs,
        confidence=confidence,
        threshold=threshold,
        columns_at=columns_at,
        column=f"{value[0]}_{stated.name}",
        least=0.0 if stated.lower >= 0 else -math.inf,
    )


def joint_parts(
    record: ReleaseRecord,
    value: tuple[str, int],
    found: Mapping[Any, QueryTotals],
    columns: Mapping[str, Any],
    of_counts: tuple[Floats, Floats],
    of_upper: WindowSums,
) -> tuple[Floats, Floats]:
    """Covariances of sums or means of a value: by the noise, and by uneven cells, (m, m) each.

    found, columns: as in `value_columns`, of single answers; of_counts: both covariances of the
    records; of_upper: totals of the weights towards the upper bound, with theirs.

    P1. Errors of a mean are width / N times those of A - p N, so both have one correlation, that of
    the innovations of the weights. That of a sum, mean N + width (A - p N), is made of it, of that
    of the records, and of what A - p N has in common with them, see `sum_columns`.

    P2. Diagonals are the squares of the errors that single answers have.
    """
    kind, number = value
    name = f"{kind}_{record.values[number].name}"
    stated = [columns[f"{name}_{error}"] for error in ("perturbation_error", "nonuniformity_error")]
    given, edges, uneven = of_upper.noise, of_upper.edges.covariance, of_upper.uneven.covariance
    if kind == "mean":
        return with_deviation(given + edges, stated[0]), with_deviation(uneven, stated[1])
    totals = value_totals(record, number, found[number, 0], found[number, 1], columns)
    (low, high), p = totals.bounds, totals.share
    width, mean = high - low, low + (high - low) * p
    # cov(N, A - p N) is (1 - 2 p) var(A), and `given` is ((1 - p)^2 + p^2) var(A).
    scale = 1 / np.sqrt((1 - p) ** 2 + p**2)
    with_records = np.outer(mean * scale, (1 - 2 * p) * scale)
    noise = np.outer(mean, mean) * of_counts[0] + width**2 * (given + edges)
    noise += width * (with_records + with_records.T) * given
    # Single answers state the diagonal; only what lies beside it is new.
    np.fill_diagonal(noise, stated[0] ** 2)
    shape = np.outer(mean, mean) * of_counts[1] + width**2 * uneven
    return nearest_covariance(noise), with_deviation(shape, stated[1])
