"""Covariance of the published counts when the noise is drawn again.

The covariance of least squares ignores post-processing: a cell that is published as empty
because its noisy count was small has, under it, the same variance as a full one. Post-processing:
only the release is read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psd._util.arrays import Floats, sum_by
from psd.estimation._constants import EMPTY_VARIANCE
from psd.estimation.least_squares import Estimates
from psd.space.hierarchy import Hierarchy

__all__ = ["published_covariance"]

_TINY = 1e-300


def published_covariance(tree: Hierarchy, estimates: Estimates) -> Estimates:
    """Replace the covariance of least squares by that of the published counts.

    Parameters
    ----------
    tree : Hierarchy
        Cells.
    estimates : Estimates
        Of that tree; `count` holds the published counts.

    Returns
    -------
    Estimates
        `upward_variance` and `slope` are those of the published counts; the rest is as given.

    Notes
    -----
    Counts that must not be negative and were found near 0 are held there: the projection, and
    more so the posterior median, hands what the noise adds to the siblings that are left. A
    cell of count x and standard deviation s takes part in its family with the variance
    s^2 (0.1 + 0.9 min(1, x^2 / s^2)), and the recursion of `psd.query.traversal` is run on these.
    """
    measured = np.where(
        np.isinf(estimates.upward_variance), estimates.variance, estimates.upward_variance
    )
    part = np.minimum(estimates.count**2 / np.maximum(measured, _TINY), 1.0)
    finite = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
    variance = finite * (EMPTY_VARIANCE + (1 - EMPTY_VARIANCE) * part)
    return replace(
        estimates,
        upward_variance=np.where(np.isinf(estimates.upward_variance), np.inf, variance),
        slope=_slopes(tree, variance, estimates.slope),
    )


def _slopes(tree: Hierarchy, variance: Floats, otherwise: Floats) -> Floats:
    """Share of each node in the variance of its family; as it was where the family has none."""
    family = tree.parent[1:]
    family_variance = variance.copy()
    family_variance[1:] = sum_by(family, variance[1:], len(tree))[family]
    return np.where(family_variance > 0, variance / np.maximum(family_variance, _TINY), otherwise)
