"""The answer table: estimates, both errors, intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.query.intervals import answer_intervals
from psd.query.totals import QueryTotals

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
)

# rho of the field's relative error: smaller counts are not told apart from this many.
_SANITY = 0.001


def check_levels(confidence: float, threshold: float) -> None:
    """Refuse a confidence outside (0, 1) or a threshold that is not above 0.

    Raises
    ------
    ParameterError
        Naming the argument.
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence {confidence} is not between 0 and 1, such as 0.95")
    if not threshold > 0:
        raise ParameterError(f"threshold {threshold} is not above 0; it is a relative error")


def answer_columns(
    totals: QueryTotals, total: float, *, confidence: float, threshold: float
) -> dict[str, NDArray[np.float64] | NDArray[np.bool_]]:
    """Columns of the answers to queries.

    Parameters
    ----------
    totals : QueryTotals
        Of the queries.
    total : float
        Estimated count of the whole domain.
    confidence, threshold : float
        As in `Release.query`.

    Returns
    -------
    dict of str to ndarray, shape (queries,)
        `COLUMNS`, in their order.
    """
    estimate = np.maximum(totals.estimate, 0.0)
    perturbation = np.sqrt(totals.perturbation_variance)
    nonuniformity = np.sqrt(totals.nonuniformity_variance)
    error = np.hypot(perturbation, nonuniformity)
    lower, upper = answer_intervals(totals, confidence)
    base = np.maximum(estimate, max(1.0, _SANITY * total))
    values = (
        estimate,
        perturbation,
        nonuniformity,
        error,
        lower,
        upper,
        perturbation / base,
        nonuniformity / base,
        error / base,
        error / base <= threshold,
    )
    return dict(zip(COLUMNS, values, strict=True))
