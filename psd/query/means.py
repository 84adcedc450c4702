"""Sums and means of values in areas, with both errors and intervals.

A value is two counts of weights, A towards its upper bound and B towards its lower one, see
`psd.privacy.values`. Both are answered as counts of records are, each by its own estimates, so both
are at least 0 and the mean stays within its bounds: lower + width A / (A + B).

The interval of a mean is that of a ratio, see `psd.query.joint.fieller_interval`: all p for which
A - p (A + B), whose variance is (1 - p)^2 V(A) + p^2 V(B) - 2 p (1 - p) C, is within z standard
deviations of 0. The noise of both counts is independent. What cells that are cut hold is not: C
follows from the non-uniformity of A, of B and of their sum, the number of records. Where even A + B
may be 0 there is no interval, and its ends are the bounds.

The quality of a mean is judged as that of a count, with the distance of the mean from its lower
bound in place of the estimate: the origin of a value, such as that of a temperature, has no
influence. It is poor as well where the noise alone makes the number of records unreliable: where
almost all of a few records seem to be at a bound, the errors of A and B are small by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.estimation.fit import Fit, fit, predicts_published
from psd.query.answer_table import (
    Threshold,
    judge_estimates,
    noise_for_intervals,
    relative_to,
    reliability_limits,
    two_sided_quantile,
)
from psd.query.areas import Areas
from psd.query.index import QueryIndex, fitted
from psd.query.joint import fieller_interval
from psd.query.totals import sum_over_slices

if TYPE_CHECKING:
    from psd.privacy.values import Value
    from psd.release.record import ReleaseRecord

__all__ = [
    "ValueFit",
    "ValueTotals",
    "fit_values",
    "mean_columns",
    "node_columns",
    "sum_columns",
    "value_columns",
    "value_totals",
]


_LEAST_RECORDS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueTotals:
    """Counts of weights of a value in areas, in records; variances (areas,) float64."""

    bounds: tuple[float, float]
    upper: Floats  # count of weights towards the upper bound, A
    lower: Floats  # towards the lower one, B
    # Variances of A and of B by the noise, as errors predict them and as intervals need them.
    predicted: tuple[Floats, Floats]
    noise: tuple[Floats, Floats]
    uneven: tuple[Floats, Floats]  # variances of A and of B by non-uniformity
    common: Floats  # their covariance

    @property
    def records(self) -> Floats:
        """Number of records by this value alone."""
        return self.upper + self.lower

    @property
    def share(self) -> Floats:
        """Place of the mean between the bounds, 0 to 1; half where there is no record."""
        records, half = self.records, np.full(len(self.upper), 0.5)
        share: Floats = np.divide(self.upper, records, out=half, where=records > 0)
        return share


def value_totals(
    slices: Sequence[QueryIndex], areas: Areas, number: int, records_uneven: Floats
) -> ValueTotals:
    """Count the weights of a value in areas, for all slices together.

    records_uneven: (areas,) variance of the number of records by non-uniformity.
    """
    value = slices[0].record.values[number]
    record = slices[0].record
    parts = upper, lower = [
        sum_over_slices(
            areas.totals(part)
            for part in fitted([index.value_part(number, side) for index in slices])
        )
        for side in (0, 1)
    ]
    uneven = tuple(part.nonuniformity_variance for part in parts)
    # V(A + B) = V(A) + V(B) + 2 C, and no correlation is beyond 1.
    largest = np.sqrt(uneven[0] * uneven[1])
    common = np.clip((records_uneven - sum(uneven)) / 2, -largest, largest)
    return ValueTotals(
        bounds=(value.lower, value.upper),
        upper=np.maximum(upper.estimate, 0.0),
        lower=np.maximum(lower.estimate, 0.0),
        predicted=_pair(part.noise_variance(predicts_published(record)) for part in parts),
        noise=_pair(map(noise_for_intervals, parts)),
        uneven=_pair(uneven),
        common=common,
    )


def _pair(values: Any) -> tuple[Any, Any]:
    """Two values of an iterable."""
    first, second = values
    return first, second


def mean_columns(totals: ValueTotals, confidence: float) -> dict[str, Floats]:
    """Mean, both errors, and the ends of the interval; (areas,) float64 each.

    Where there is no interval its ends are the bounds, and the mean is their middle if there is no
    record.
    """
    (low, high), p, records = totals.bounds, totals.share, totals.records
    width = high - low
    # Of almost no records every error is that of a number anywhere between the bounds.
    square = (width / np.maximum(records, _LEAST_RECORDS)) ** 2
    weights = (1 - p) ** 2, p**2
    noise = square * sum(w * v for w, v in zip(weights, totals.predicted, strict=True))
    shape = sum(w * v for w, v in zip(weights, totals.uneven, strict=True))
    shape = square * np.maximum(shape - 2 * p * (1 - p) * totals.common, 0.0)
    noise, shape = (np.minimum(np.sqrt(v), width / 2) for v in (noise, shape))
    first, last = _fieller(totals, confidence)
    return {
        "": low + width * p,
        "_perturbation_error": noise,
        "_nonuniformity_error": shape,
        "_error": np.minimum(np.hypot(noise, shape), width / 2),
        "_lower": low + width * np.minimum(first, p),
        "_upper": low + width * np.maximum(last, p),
    }


def sum_columns(totals: ValueTotals, confidence: float) -> dict[str, Floats]:
    """Sum, both errors, and the ends of the interval; (areas,) float64 each."""
    low, high = totals.bounds
    total = high * totals.upper + low * totals.lower
    weights = high**2, low**2
    predicted, noise, uneven = (
        sum(w * v for w, v in zip(weights, pair, strict=True))
        for pair in (totals.predicted, totals.noise, totals.uneven)
    )
    shape = np.maximum(uneven + 2 * high * low * totals.common, 0.0)
    half = two_sided_quantile(confidence) * np.sqrt(noise + shape)
    # No record is below the lower bound or above the upper one.
    least = total - half if low < 0 else np.maximum(total - half, 0.0)
    most = total + half if high > 0 else np.minimum(total + half, 0.0)
    return {
        "": total,
        "_perturbation_error": np.sqrt(predicted),
        "_nonuniformity_error": np.sqrt(shape),
        "_error": np.sqrt(predicted + shape),
        "_lower": least,
        "_upper": most,
    }


def value_columns(
    slices: Sequence[QueryIndex],
    areas: Areas,
    asked: Sequence[tuple[str, int]],
    confidence: float,
    counts: Mapping[str, Any],
    threshold: Threshold = 0.3,
) -> dict[str, Any]:
    """Columns of sums and means, such as ``mean_fare``, ``mean_fare_error``, ``mean_fare_quality``.

    asked: ``mean`` or ``sum``, and the number of the value; counts: the answers of the records of
    the same slices in these areas.
    """
    uneven = counts["nonuniformity_error"] ** 2
    numbers = {number for _, number in asked}
    totals = {number: value_totals(slices, areas, number, uneven) for number in numbers}
    columns: dict[str, Any] = {}
    for kind, number in asked:
        made = (mean_columns if kind == "mean" else sum_columns)(totals[number], confidence)
        value = slices[0].record.values[number]
        columns |= {f"{kind}_{value.name}{ending}": values for ending, values in made.items()}
        if kind == "mean":
            quality = _quality(totals[number], made, threshold)
            columns[f"mean_{value.name}_quality"] = quality
    return columns


def _quality(totals: ValueTotals, mean: dict[str, Floats], threshold: Threshold) -> Any:
    """Class of each mean, (areas,) object."""
    low, limits = totals.bounds[0], reliability_limits(threshold)
    relative = relative_to(mean[""] - low, mean["_error"])
    of_records = relative_to(totals.records, np.sqrt(sum(totals.predicted)))
    relative = np.where(of_records <= limits.reliable, relative, np.inf)
    return judge_estimates(relative, mean["_lower"] - low, limits).quality


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueFit:
    """Fits of the two counts of weights of a value."""

    value: Value
    upper: Fit
    lower: Fit


def fit_values(record: ReleaseRecord) -> list[ValueFit]:
    """Fit the counts of weights of all values of a release."""
    return [
        ValueFit(
            value=value,
            upper=fit(record.value_part(number, 0)),
            lower=fit(record.value_part(number, 1)),
        )
        for number, value in enumerate(record.values)
    ]


def node_columns(
    fits: Sequence[ValueFit], nodes: Integers, confidence: float, threshold: Threshold = 0.3
) -> dict[str, Any]:
    """Means and sums of all values in nodes of a tree, with error and interval, (nodes,) each."""
    columns: dict[str, Any] = {}
    for each in fits:
        nothing, parts = np.zeros(len(nodes)), (each.upper, each.lower)
        # Nodes are whole, so that nothing is uneven.
        variances = _pair(part.noise_covariance.variance[nodes] for part in parts)
        counts = _pair(np.maximum(part.estimates.count[nodes], 0.0) for part in parts)
        totals = ValueTotals(
            bounds=(each.value.lower, each.value.upper),
            upper=counts[0],
            lower=counts[1],
            predicted=variances,
            noise=variances,
            uneven=(nothing, nothing),
            common=nothing,
        )
        for kind, made in (("mean", mean_columns), ("sum", sum_columns)):
            answers = made(totals, confidence)
            kept = ("", "_error", "_lower", "_upper")
            columns |= {f"{kind}_{each.value.name}{end}": answers[end] for end in kept}
            if kind == "mean":
                columns[f"mean_{each.value.name}_quality"] = _quality(totals, answers, threshold)
    return columns


def _fieller(totals: ValueTotals, confidence: float) -> tuple[Floats, Floats]:
    """Ends of the interval of the share, 0 and 1 where there is none."""
    first, second = (n + u for n, u in zip(totals.noise, totals.uneven, strict=True))
    whole = first + second + 2 * totals.common  # variance of A + B
    shared = first + totals.common  # covariance of A and A + B
    low, high = fieller_interval(totals.upper, totals.records, first, whole, shared, confidence)
    return np.where(np.isinf(high), 0.0, low), np.minimum(high, 1.0)
