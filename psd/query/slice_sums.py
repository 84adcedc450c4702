"""Sums of answers over time slices, with the errors of the sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psd._util.arrays import Floats
from psd.query.totals import QueryTotals

__all__ = ["sum_over_slices"]


def sum_over_slices(parts: Sequence[QueryTotals]) -> QueryTotals:
    """Totals of sums over slices, of the totals of each slice.

    Guarantees
    ----------
    - The sum over one slice is the answer of that slice.
    - The error of unevenness is at least that of the sum, whatever the slices have in common.

    Parameters
    ----------
    parts : sequence of QueryTotals
        Of the same queries in each slice.

    Returns
    -------
    QueryTotals
        Of the sums.

    Notes
    -----
    The published answer of a slice is never negative, so a sum of published answers of nearly empty
    slices would be too large by about .4 standard deviations of the noise for each. So the answers
    of least squares are added, which may be negative and are unbiased; the sum is cut at 0.

    Noise is drawn anew for each slice, so its variances add up. Unevenness is not independent: a
    town in the corner of a cell is there in every slice. What the slices have in common is not
    known. The standard deviation of a sum is at most the sum of the standard deviations
    (Minkowski), and reaches it where all slices are wrong in the same direction. This largest value
    is taken.
    """
    if len(parts) == 1:
        return parts[0]

    def added(name: str) -> Floats:
        total: Floats = np.sum([getattr(part, name) for part in parts], axis=0)
        return total

    noise, signed = added("perturbation_variance"), added("signed")
    uneven = np.sum([np.sqrt(part.nonuniformity_variance) for part in parts], axis=0)
    nothing = np.zeros(len(signed))
    return QueryTotals(
        estimate=signed,
        signed=signed,
        perturbation_variance=noise,
        published_variance=noise,
        leaf_variance=uneven**2,
        shift=nothing,
        line_variance=nothing,
        beyond=added("beyond"),
    )
