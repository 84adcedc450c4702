"""The answer table: estimates, both errors, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.estimation.fit import predicts_published
from psd.query.intervals import answer_intervals
from psd.query.reliability import Threshold, judge_estimates, relative_to, reliability_limits
from psd.query.totals import QueryTotals

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = ["COLUMNS", "answer_columns", "check_levels"]

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
    """Check that a confidence is in (0, 1) and the limits of a threshold above 0.

    Raises
    ------
    ParameterError
        Naming the argument.
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    reliability_limits(threshold)


def answer_columns(
    totals: QueryTotals, record: ReleaseRecord, *, confidence: float, threshold: Threshold
) -> dict[str, NDArray[np.float64] | NDArray[np.bool_] | NDArray[np.object_]]:
    """Compute the columns of the answers to queries.

    Parameters
    ----------
    totals : QueryTotals
        Totals over the cells of the queries.
    record : ReleaseRecord
        Of the release.
    confidence, threshold : float
        As in `Release.query`.

    Returns
    -------
    dict of str to ndarray, shape (queries,)
        `COLUMNS`, in their order; relative errors are infinite where the
        estimate is 0 and the error is not.
    """
    estimate = np.maximum(totals.estimate, 0.0)
    perturbation = np.sqrt(totals.noise_variance(predicts_published(record)))
    nonuniformity = np.sqrt(totals.nonuniformity_variance)
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
