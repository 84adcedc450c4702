"""Numbers derived from answers, with their errors: sums, differences and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from psd._util.arrays import Floats

__all__ = ["Derived", "combine_answers", "divide_answers", "fieller_interval", "two_sided_quantile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A number derived from answers, with its errors.

    Parameters
    ----------
    estimate : float
        In records, or a ratio.
    perturbation_error, nonuniformity_error, error : float
        Predicted standard deviations, as those of answers.
    lower, upper : float
        Interval at the requested confidence.
    """

    estimate: float
    perturbation_error: float
    nonuniformity_error: float
    error: float
    lower: float
    upper: float


def two_sided_quantile(confidence: float) -> float:
    """Standard deviations to each side of a two-sided normal interval."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def combine_answers(
    estimates: Floats, parts: Sequence[Floats], weights: Floats, confidence: float
) -> Derived:
    """Compute a weighted sum of answers.

    estimates, weights: (m,) float64; parts: two of (m, m) float64, the covariance from the noise,
    and from uneven cells. Without a negative weight the interval does not go below 0.
    """
    estimate = float(weights @ estimates)
    noise, spread = (math.sqrt(max(float(weights @ part @ weights), 0.0)) for part in parts)
    error = math.hypot(noise, spread)
    least = 0.0 if (weights >= 0).all() else -math.inf
    return Derived(
        estimate=estimate,
        perturbation_error=noise,
        nonuniformity_error=spread,
        error=error,
        lower=max(estimate - two_sided_quantile(confidence) * error, least),
        upper=estimate + two_sided_quantile(confidence) * error,
    )


def divide_answers(estimates: Floats, parts: Sequence[Floats], confidence: float) -> Derived:
    """Divide the first of two answers by the second; errors over a denominator of 0 are infinite.

    estimates: (2,) float64; parts: two of (2, 2) float64, as in `combine_answers`.
    """
    x, y = (float(value) for value in estimates)
    ratio = x / y if y > 0 else math.nan
    slope = np.array([1.0, -ratio]) / y if y > 0 else np.full(2, np.inf)
    noise, spread = (_deviation(slope, part) for part in parts)
    both = parts[0] + parts[1]
    var_x, cov, var_y = (np.atleast_1d(both[cell]) for cell in ((0, 0), (0, 1), (1, 1)))
    low, high = fieller_interval(np.atleast_1d(x), np.atleast_1d(y), var_x, var_y, cov, confidence)
    return Derived(
        estimate=ratio,
        perturbation_error=noise,
        nonuniformity_error=spread,
        error=math.hypot(noise, spread),
        lower=float(low[0]),
        upper=float(high[0]),
    )


def _deviation(slope: Floats, covariance: Floats) -> float:
    """Standard deviation of a linear function; infinite slopes have infinite ones."""
    if not np.isfinite(slope).all():
        return math.inf
    return math.sqrt(max(float(slope @ covariance @ slope), 0.0))


def fieller_interval(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, cov: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Compute intervals of ratios x / y of non-negative counts.

    x, y, their variances and their covariance: (n,) float64; returns (n,) float64 twice, from 0 to
    infinity where the denominator is not significantly above 0.

    P1. Exact for normal errors: all ratios r for which x - r y is within its own normal interval
    [1]_. These are between the roots of a r^2 - 2 b r + q where a > 0, and beyond them where a < 0.

    References
    ----------
    .. [1] Fieller. "Some Problems in Interval Estimation." Journal of the Royal Statistical
       Society B 16(2), 1954.
    """
    square = two_sided_quantile(confidence) ** 2
    a, b, q = y**2 - square * var_y, x * y - square * cov, x**2 - square * var_x
    root = np.sqrt(np.maximum(b**2 - a * q, 0.0))
    safe = np.where(a == 0, 1.0, a)
    low, high = np.sort([(b - root) / safe, (b + root) / safe], axis=0)
    # Beyond the roots, all ratios up to the lower one are negative if it is.
    beyond = (a < 0) & (b**2 > a * q) & (low < 0)
    lower = np.where(a > 0, low, np.where(beyond, high, 0.0))
    return np.maximum(lower, 0.0), np.where(a > 0, np.maximum(high, 0.0), np.inf)
