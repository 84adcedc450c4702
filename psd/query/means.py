"""Sums and means of values in areas, with both errors and intervals.

A value is two counts of weights, A towards its upper and B towards its lower bound, that sum to the
number of records N (`psd.privacy.values`). Both are estimated given N
(`psd.estimation.value_shares`), so the mean lower + width A / N is within its bounds. The noise of
N alone moves A and B together; that of A - p N is what the estimates leave of it. The interval of a
mean is that of a ratio, `psd.query.joint.fieller_interval`: all p for which A - p (A + B) may be 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.estimation.fit import Fit, fit_weights
from psd.estimation.least_squares import measure_record
from psd.privacy.noise_laws.discrete_laplace import laplace_reach
from psd.query.answer_table import (
    Threshold,
    answer_columns,
    judge_estimates,
    relative_to,
    reliability_limits,
    two_sided_quantile,
)
from psd.query.joint import fieller_interval
from psd.query.totals import QueryTotals, node_totals

if TYPE_CHECKING:
    from psd.privacy.values import Value
    from psd.release.record import ReleaseRecord

__all__ = ["ValueFit", "node_columns", "noise_quantiles", "single_noise"]


_LEAST_RECORDS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueTotals:
    """Counts of weights of a value in areas, in records; variances (areas,) float64."""

    bounds: tuple[float, float]
    upper: Floats  # count of weights towards the upper bound, A
    lower: Floats  # towards the lower one, B
    given: Floats  # variance of A, and of B, by the noise, given the number of records N
    edges: Floats  # variance of A - p N by cells along the edge, see `psd.query.value_edges`
    uneven: Floats  # variance of A - p N by non-uniformity
    counts: Mapping[str, Any]  # answers of N, see `psd.query.answer_table.COLUMNS`
    single: float  # variance of the noise of one count of records; 0 where noise is Gaussian

    @property
    def records(self) -> Floats:
        """Number of records."""
        return self.upper + self.lower

    @property
    def share(self) -> Floats:
        """Place of the mean between the bounds, 0 to 1; half where there is no record."""
        records, half = self.records, np.full(len(self.upper), 0.5)
        share: Floats = np.divide(self.upper, records, out=half, where=records > 0)
        return share


def value_totals(
    record: ReleaseRecord,
    number: int,
    upper: QueryTotals,
    lower: QueryTotals,
    counts: Mapping[str, Any],
) -> ValueTotals:
    """Counts of the weights of a value towards both bounds; counts: answers of the records."""
    value = record.values[number]
    return ValueTotals(
        bounds=(value.lower, value.upper),
        upper=np.maximum(upper.estimate, 0.0),
        lower=np.maximum(lower.estimate, 0.0),
        given=upper.perturbation_variance,
        edges=upper.edge_variance,
        uneven=upper.nonuniformity_variance,
        counts=counts,
        single=single_noise(record),
    )


def single_noise(record: ReleaseRecord) -> float:
    """Least variance of the noise of a count of records; 0 if noise is Gaussian."""
    if not record.tree.noise.measure.is_pure:
        return 0.0
    return float(measure_record(record).variance.min())


def mean_columns(totals: ValueTotals, confidence: float) -> dict[str, Floats]:
    """Mean, errors and interval, (areas,) float64 each; the bounds where there is no interval."""
    (low, high), p, records = totals.bounds, totals.share, totals.records
    width = high - low
    # Of almost no records every error is that of a number anywhere between the bounds.
    has_records = records > _LEAST_RECORDS
    square = np.where(has_records, (width / np.where(has_records, records, 1.0)) ** 2, 0.0)
    noise, shape = (
        np.where(has_records, np.minimum(np.sqrt(square * variance), width / 2), width / 2)
        for variance in (totals.given + totals.edges, totals.uneven)
    )
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
    """Sum mean N + width (A - p N), errors and ends, (areas,) each; both terms add as squares."""
    (low, high), p, counts = totals.bounds, totals.share, totals.counts
    width, mean = high - low, low + (high - low) * p
    total = np.where(totals.records > _LEAST_RECORDS, mean * totals.records, 0.0)
    # A - p N varies with N by the noise of A, and not by what lies in parts of cells.
    noise = width**2 * totals.given
    noise += 2 * mean * width * (1 - 2 * p) * totals.given / ((1 - p) ** 2 + p**2)
    noise += width**2 * totals.edges
    shape = width**2 * totals.uneven
    variances = (
        np.maximum((mean * counts["perturbation_error"]) ** 2 + noise, 0.0),
        (mean * counts["nonuniformity_error"]) ** 2 + shape,
    )
    # The interval of N times the mean, widened by what A - p N adds.
    beyond = two_sided_quantile(confidence) ** 2 * (noise + shape)
    down, up = (
        np.abs(mean) * np.abs(counts[end] - counts["estimate"]) for end in ("lower", "upper")
    )
    # A mean below 0 turns the interval of N around.
    down, up = np.where(mean < 0, up, down), np.where(mean < 0, down, up)
    least = total - np.sqrt(np.maximum(down**2 + beyond, 0.0))
    most = total + np.sqrt(np.maximum(up**2 + beyond, 0.0))
    # No record is below the lower bound or above the upper one.
    return {
        "": total,
        "_perturbation_error": np.sqrt(variances[0]),
        "_nonuniformity_error": np.sqrt(variances[1]),
        "_error": np.sqrt(sum(variances)),
        "_lower": least if low < 0 else np.maximum(least, 0.0),
        "_upper": most if high > 0 else np.minimum(most, 0.0),
    }


def value_columns(
    record: ReleaseRecord,
    found: Mapping[Any, QueryTotals],
    asked: Sequence[tuple[str, int]],
    confidence: float,
    counts: Mapping[str, Any],
    threshold: Threshold = 0.3,
) -> dict[str, Any]:
    """Columns of sums and means, such as ``mean_fare``, ``mean_fare_error``, ``mean_fare_quality``.

    found: totals by number of the value, and 0 or 1 for its upper or lower bound; asked: ``mean``
    or ``sum``, and that number; counts: answers of the records.
    """
    columns: dict[str, Any] = {}
    for kind, number in asked:
        totals = value_totals(record, number, found[number, 0], found[number, 1], counts)
        made = (mean_columns if kind == "mean" else sum_columns)(totals, confidence)
        value = record.values[number]
        columns |= {f"{kind}_{value.name}{ending}": values for ending, values in made.items()}
        if kind == "mean":
            columns[f"mean_{value.name}_quality"] = _quality(totals, made, threshold)
    return columns


def _quality(totals: ValueTotals, mean: dict[str, Floats], threshold: Threshold) -> Any:
    """Class of each mean, (areas,) object."""
    low, limits = totals.bounds[0], reliability_limits(threshold)
    # Relative to the distance from the lower bound; without enough records there is none.
    # So the origin of a value has no influence, and a mean is poor where the noise makes the number
    # of records unreliable.
    relative = relative_to(mean[""] - low, mean["_error"])
    of_records = relative_to(totals.records, totals.counts["perturbation_error"])
    relative = np.where(of_records <= limits.reliable, relative, np.inf)
    return judge_estimates(relative, mean["_lower"] - low, limits).quality


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueFit:
    """Fits of the records and of the two weights of a value."""

    value: Value
    records: Fit
    upper: Fit
    lower: Fit


def fit_values(records: Fit) -> list[ValueFit]:
    """Fit the weights of all values of a release, given the fit of its records."""
    fits = []
    for number, value in enumerate(records.record.values):
        (upper, lower), _ = fit_weights(records, number)
        fits.append(ValueFit(value=value, records=records, upper=upper, lower=lower))
    return fits


def node_columns(
    fits: Sequence[ValueFit], nodes: Integers, confidence: float, threshold: Threshold = 0.3
) -> dict[str, Any]:
    """Means and sums of all values in nodes of a tree, with error and interval, (nodes,) each."""
    columns: dict[str, Any] = {}
    for each in fits:
        # Nodes are whole, so that nothing is uneven, and they have no edge that cuts a family.
        nothing = np.zeros(len(nodes))
        records = each.records.record
        totals = ValueTotals(
            bounds=(each.value.lower, each.value.upper),
            upper=each.upper.estimates.count[nodes],
            lower=each.lower.estimates.count[nodes],
            given=each.upper.estimates.variance[nodes],
            edges=nothing,
            uneven=nothing,
            counts=answer_columns(
                node_totals(each.records, nodes), records, confidence=confidence, threshold=1.0
            ),
            single=single_noise(records),
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
    p, records = totals.share, totals.records
    # Independent noise of A and of B of which A - p N has the variance.
    of_each = _stretch(totals, confidence) * totals.given + totals.edges + totals.uneven
    of_each /= (1 - p) ** 2 + p**2
    # A over A + B, where both have the variance v: var(A + B) is 2 v, the covariance v.
    low, high = fieller_interval(totals.upper, records, of_each, 2 * of_each, of_each, confidence)
    # Where the interval of N begins at 0, the ends are the bounds.
    none = np.isinf(high) | (totals.counts["lower"] <= 0)
    return np.where(none, 0.0, low), np.where(none, 1.0, np.minimum(high, 1.0))


def _stretch(totals: ValueTotals, confidence: float) -> Floats:
    """Squared quantile of the noise of A - p N over a normal one's: Laplace for one pair."""
    if not totals.single:
        return np.ones(len(totals.upper))
    p = totals.share
    ratio = totals.counts["perturbation_error"] ** 2 / totals.single
    alone = np.minimum(ratio, 1 / np.maximum(ratio, 1.0))
    laplace = np.interp(np.minimum(p, 1 - p), _SHARES, noise_quantiles(confidence))
    stretch: Floats = 1 + alone * (laplace - 1)
    return stretch**2


# Shares at which quantiles are computed.
_SHARES = np.linspace(0.0, 0.5, 33)[:-1]


def noise_quantiles(confidence: float) -> Floats:
    """Quantiles of (1 - p) X - p Y, Laplace, over normal ones, (32,), for p from 0 to below 0.5."""
    reach = np.array([laplace_reach((1 - p, p), 1 - confidence) for p in _SHARES.tolist()])
    deviation = np.sqrt(2 * ((1 - _SHARES) ** 2 + _SHARES**2))
    quantiles: Floats = reach / deviation / two_sided_quantile(confidence)
    return quantiles
