"""The answer table: estimates, both errors, intervals, and how reliable they are.

Constants were chosen on public data sets (coverage: docs/measured/data/calibration.csv).

.. [1] Cornish, Fisher. "Moments and Cumulants in the Specification of Distributions." Revue de
   l'Institut International de Statistique 5(4), 1938.
.. [2] Hausman. "Specification Tests in Econometrics." Econometrica 46(6), 1978: an efficient
   estimate and its difference from an unbiased one are uncorrelated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.estimation.fit import predicts_published
from psd.query.constants import (
    GOOD_LIMIT,
    RESTORED_VARIANCE,
    ROUNDING_VARIANCE,
    SKEW_DIVISOR,
    TAIL_SQUARE,
)
from psd.query.totals import QueryTotals

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = [
    "QUALITIES",
    "Limits",
    "Threshold",
    "judge_estimates",
    "relative_text",
    "relative_to",
    "reliability_limits",
    "two_sided_quantile",
]


QUALITIES = ("good", "use with care", "poor")
"""Classes of estimates, the best first."""

RELATIVE_RULE = (
    "error / estimate; where the estimate is 0 and the error is not, it is infinite, or empty in "
    "formats that have no infinity"
)
"""What a relative error is, for people who read a file without this library."""

# An estimate of almost 0 has an error of any size in percent, whose digits say nothing.
_LARGEST_SHOWN = 10

Threshold: TypeAlias = float | tuple[float, float]
"""Largest relative error of a reliable estimate; or of a good one, and of a reliable one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Largest relative errors of the two upper classes."""

    good: float  # largest relative error of a good estimate, at most the next one
    reliable: float  # largest relative error of a reliable estimate

    @property
    def texts(self) -> Mapping[str, str]:
        """What the columns mean, for people who read a file without this library."""
        return {
            "relative_error": RELATIVE_RULE,
            "reliable": f"relative error at most {self.reliable:g}, and an interval above 0",
            "quality": f"good: reliable, with a relative error of at most {self.good:g}; "
            "use with care: other reliable estimates; poor: not reliable",
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Which estimates are reliable, and their classes."""

    # Whether the relative error is at most the limit, and the interval above 0.
    reliable: NDArray[np.bool_]
    rank: Integers  # index of the class in `QUALITIES`; 2, poor, where an estimate is not reliable

    @property
    def quality(self) -> NDArray[np.object_]:
        """Name of the class of each estimate."""
        return np.array(QUALITIES, object)[self.rank]


def reliability_limits(threshold: Threshold) -> Limits:
    """Largest relative errors of good and reliable estimates: a pair, or 0.12 and a threshold."""
    # Limits are arguments, since those of statistics offices differ: 16.5 and 33.3 % (Statistics
    # Canada), or 12 and 30 or 40 %.
    numbers = threshold if isinstance(threshold, tuple | list) else (threshold,)
    if len(numbers) not in (1, 2):
        raise ParameterError(f"threshold must be one or two relative errors, got {len(numbers)}")
    for number in numbers:
        is_number = isinstance(number, int | float)
        if not is_number or not 0 < number <= 1:
            text = f"{number:g}" if is_number else str(number)[:80]
            raise ParameterError(
                f"threshold must be above 0 and at most 1, got {text}; it is a relative error, "
                "such as 0.3 for 30 %"
            )
    good, reliable = min(GOOD_LIMIT, numbers[-1]) if len(numbers) == 1 else numbers[0], numbers[-1]
    if good > reliable:
        raise ParameterError(
            f"threshold must be the limit of good estimates and then that of reliable ones, got "
            f"{good:g} before {reliable:g}"
        )
    return Limits(good=float(good), reliable=float(reliable))


def relative_to(estimate: Floats, error: Floats) -> Floats:
    """Errors divided by estimates; where an estimate is 0 or less, infinite, or 0 without error."""
    relative = np.where(np.asarray(error) > 0, np.inf, 0.0)
    positive = estimate > 0
    with np.errstate(over="ignore"):  # of an estimate that is almost 0
        np.divide(error, estimate, out=relative, where=positive)
    return relative


def relative_text(relative: float) -> str:
    """A relative error for people: in percent, of three digits; above 1,000 % it says no more."""
    if math.isinf(relative):
        return "infinite"
    if relative > _LARGEST_SHOWN:
        return f"above {_LARGEST_SHOWN:,.0%}"
    return f"{float(f'{100 * relative:.3g}'):,g}%"


def judge_estimates(relative: Floats, lower: Floats, limits: Limits) -> Reliability:
    """Classify by relative errors and lower ends of intervals, float64 of one shape."""
    reliable = (relative <= limits.reliable) & (lower > 0)
    rank = np.where(reliable, np.where(relative <= limits.good, 0, 1), 2)
    return Reliability(reliable=reliable, rank=rank.astype(np.int64))


_TINY = 1e-300

COLUMNS = (
    "estimate",
    "perturbation_error",
    "nonuniformity_error",
    "error",
    "lower",
    "upper",
    "relative_perturbation_error",
    "relative_nonuniformity_error",
    "relative_error",
    "reliable",
    "quality",
)


def check_levels(confidence: float, threshold: Threshold) -> None:
    """Check that a confidence is in (0, 1) and the limits of a threshold above 0."""
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    reliability_limits(threshold)


def answer_columns(
    totals: QueryTotals, record: ReleaseRecord, *, confidence: float, threshold: Threshold
) -> dict[str, NDArray[np.float64] | NDArray[np.bool_] | NDArray[np.object_]]:
    """Compute `COLUMNS` of the answers, (queries,) each; an error over 0 is infinite."""
    estimate = np.maximum(totals.estimate, 0.0)
    perturbation = np.sqrt(totals.noise_variance(predicts_published(record)))
    nonuniformity = np.sqrt(totals.nonuniformity_variance)
    # The noise and what is uneven in cells are independent: their variances add up.
    error = np.hypot(perturbation, nonuniformity)
    lower, upper = answer_intervals(totals, confidence)
    relative = relative_to(estimate, error)
    judged = judge_estimates(relative, lower, reliability_limits(threshold))
    values = (
        estimate,
        perturbation,
        nonuniformity,
        error,
        lower,
        upper,
        relative_to(estimate, perturbation),
        relative_to(estimate, nonuniformity),
        relative,
        judged.reliable,
        judged.quality,
    )
    return dict(zip(COLUMNS, values, strict=True))


def two_sided_quantile(confidence: float) -> float:
    """Standard deviations to each side of a two-sided normal interval."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def answer_intervals(totals: QueryTotals, confidence: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of the intervals of answers, (queries,) float64, in records.

    P1. 0 <= lower <= estimate <= upper, where the estimate is cut at 0.

    P2. A larger confidence gives an interval that contains the smaller one's.

    P3. The upper end is not above what the cells that the query touches may hold, beside the noise:
    the answer, what these cells may hold outside the query, and z standard deviations of the noise.
    """
    z = two_sided_quantile(confidence)
    estimate = np.maximum(totals.estimate, 0.0)
    # Variance of the noise that post-processing took from the signed answers.
    taken = np.maximum(totals.perturbation_variance - totals.published_variance, 0.0)
    # That by the noise alone, with what post-processing moved; see below.
    moved = (estimate - np.maximum(totals.signed, 0.0)) ** 2
    moved -= taken
    moved = totals.published_variance + np.maximum(moved, 0.0)
    uneven = totals.nonuniformity_variance
    # Outside a boundary counts are exactly 0.
    unknown = (totals.perturbation_variance > 0) | (uneven > 0) | (estimate > 0)
    rounding = np.where(unknown, ROUNDING_VARIANCE, _TINY)
    # The spread of the published counts, what post-processing moved beyond chance (the squared
    # difference from the signed answer, less the difference of the variances [2]_), and the
    # non-uniformity V.
    variance = moved + uneven + rounding
    # The upper end adds the term of the third cumulant [1]_, 2 V^2 / x, of a gamma distribution of
    # the mean x and variance V: small parts of large leaves may hold far more than their shares.
    # Such errors are rare and large, so the term is six times as large at 95 % and above.
    # Factor of the term in the third cumulant, and part of the variance that is restored.
    square = max(z**2 - 1, 0.0)
    tail = square / SKEW_DIVISOR * min(square / (TAIL_SQUARE - 1), 1.0)
    restored = RESTORED_VARIANCE * square / (square + 1)
    skew = tail * uneven**2 / (np.maximum(estimate, 1.0) * variance)
    lower = np.maximum(estimate - z * np.sqrt(variance), 0.0)
    upper = estimate + z * np.sqrt(variance + restored * taken) + skew
    noise = moved + rounding + restored * taken
    upper = np.minimum(upper, estimate + totals.beyond + z * np.sqrt(noise))
    return lower, np.where(unknown, upper, 0.0)
