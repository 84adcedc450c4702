"""The answer table: estimates, both errors, intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.query._constants import SANITY_SHARE
from psd.query.intervals import answer_intervals
from psd.query.totals import QueryTotals

__all__ = ["COLUMNS", "answer_columns", "check_levels", "sanity_bound"]

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


def check_levels(confidence: float, threshold: float) -> None:
    """Check that a confidence is in (0, 1) and a threshold above 0.

    Raises
    ------
    ParameterError
        Naming the argument.
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    if not threshold > 0:
        raise ParameterError(f"threshold must be above 0, got {threshold}; it is a relative error")


def sanity_bound(total: float) -> float:
    """Smallest count that relative errors are relative to, for an estimated total of the domain.

    Examples
    --------
    >>> sanity_bound(55_000.0), sanity_bound(20.0)
    (55.0, 1.0)
    """
    return max(1.0, SANITY_SHARE * total)


def answer_columns(
    totals: QueryTotals, total: float, *, confidence: float, threshold: float, inference: int
) -> dict[str, NDArray[np.float64] | NDArray[np.bool_]]:
    """Compute the columns of the answers to queries.

    Parameters
    ----------
    totals : QueryTotals
        Totals over the cells of the queries.
    total : float
        Estimated count of the domain.
    confidence, threshold : float
        As in `Release.query`.
    inference : int
        Version of the estimates of the release.

    Returns
    -------
    dict of str to ndarray, shape (queries,)
        `COLUMNS`, in their order.
    """
    estimate = np.maximum(totals.estimate, 0.0)
    perturbation = np.sqrt(totals.perturbation_variance)
    nonuniformity = np.sqrt(totals.nonuniformity_variance)
    error = np.hypot(perturbation, nonuniformity)
    lower, upper = answer_intervals(totals, confidence, inference)
    base = np.maximum(estimate, sanity_bound(total))
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
