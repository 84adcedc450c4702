"""Unreliable estimates in exports and tables: kept, marked or left out."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.declared_parameters import choice
from psd.errors import ParameterError
from psd.query.answer_table import answer_intervals
from psd.query.reliability import (
    Limits,
    Reliability,
    Threshold,
    judge_estimates,
    relative_to,
    reliability_limits,
)
from psd.query.totals import QueryTotals

if TYPE_CHECKING:
    from psd._util.arrays import Floats, Integers
    from psd.estimation.fit import Fit
    from psd.statistics.raster import Raster

__all__ = [
    "CONFIDENCE",
    "FLAG",
    "TREATMENTS",
    "check_treatment",
    "judge_nodes",
    "judge_raster",
    "treat_unreliable",
]

CONFIDENCE = 0.95
"""Confidence of the intervals of tables and rasters that have none."""

TREATMENTS = ("keep", "mark", "drop")

FLAG = "u"
"""Mark of an unreliable estimate: low reliability, in the list of flags of Eurostat and SDMX."""


def check_treatment(treatment: str, threshold: Threshold) -> Limits:
    """Check that a treatment exists; return the limits of a threshold."""
    choice(*TREATMENTS)("unreliable", treatment)
    return reliability_limits(threshold)


def judge_nodes(fit: Fit, nodes: Integers, relative: Floats, limits: Limits) -> Reliability:
    """Classify the estimates of nodes as answers to queries of them are, at 95 % confidence."""
    nothing = np.zeros(len(nodes))
    totals = QueryTotals(
        estimate=fit.estimates.count[nodes],
        signed=fit.estimates.signed[nodes],
        perturbation_variance=fit.estimates.variance[nodes],
        published_variance=fit.published_covariance.variance[nodes],
        leaf_variance=nothing,
        shift=nothing,
        line_variance=nothing,
        beyond=nothing,
    )
    lower, _ = answer_intervals(totals, CONFIDENCE)
    return judge_estimates(relative, lower, limits)


def judge_raster(raster: Raster, limits: Limits) -> Reliability:
    """Classify the counts of a raster; their intervals are those of their errors alone."""
    reach = -NormalDist().inv_cdf((1 - CONFIDENCE) / 2)
    relative = relative_to(raster.count, raster.error)
    return judge_estimates(relative, raster.count - reach * raster.error, limits)


def treat_unreliable(table: Any, treatment: str, threshold: Threshold) -> Any:
    """Keep, mark or leave out the rows of a table whose column ``reliable`` is false.

    ``keep`` changes nothing; ``mark`` adds the column ``flag``, which is ``u`` in such rows and
    otherwise empty; ``drop`` leaves them out. Marked and shortened tables state the limit of
    reliable estimates in the column ``threshold``.
    """
    if treatment == "keep":
        return table
    stated = {"threshold": reliability_limits(threshold).reliable}
    for name in ("threshold", *(("flag",) if treatment == "mark" else ())):
        if name in table:
            raise ParameterError(
                f"regions must not have a column {name}, which unreliable={treatment!r} adds; "
                "rename it"
            )
    if treatment == "mark":
        marks = np.where(table["reliable"].to_numpy(bool), "", FLAG)
        return table.assign(flag=marks, **stated)
    return table[table["reliable"].to_numpy(bool)].assign(**stated)
