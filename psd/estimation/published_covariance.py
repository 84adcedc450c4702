"""Covariance of the published counts when the noise is drawn again.

The covariance of least squares ignores post-processing: a cell that is published as empty
because its noisy count was small has, under it, the same variance as a full one. Post-processing:
only the release is read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psd._util.arrays import Floats, sum_by
from psd.estimation.constants import EMPTY_VARIANCE
from psd.estimation.least_squares import Estimates
from psd.space.box_tree import Hierarchy

__all__ = ["published_covariance"]

_TINY = 1e-300


def published_covariance(
    tree: Hierarchy, estimates: Estimates, *, of_nodes: bool = True
) -> Estimates:
    """Replace the covariance of least squares by that of the published counts.

    Parameters
    ----------
    tree : Hierarchy
        Cells.
    estimates : Estimates
        Of that tree; `count` holds the published counts.
    of_nodes : bool
        Whether `variance` is computed for each node. If not, only that of the root is a number;
        the errors of boxes need no other.

    Returns
    -------
    Estimates
        `upward_variance`, `slope` and `variance` are those of the published counts; the rest is as
        given.

    Notes
    -----
    Counts that must not be negative and were found near 0 are held there: the projection, and
    more so the posterior median, hands what the noise adds to the siblings that are left. A
    cell of count x and standard deviation s takes part in its family with the variance
    s^2 (0.1 + 0.9 min(1, x^2 / s^2)), and the recursion of `psd.query.traversal` is run on these. A
    cell that was not measured is its parent less its siblings.
    """
    unknown = np.isinf(estimates.upward_variance)
    measured = np.where(unknown, estimates.variance, estimates.upward_variance)
    part = np.minimum(estimates.count**2 / np.maximum(measured, _TINY), 1.0)
    finite = np.where(unknown, 0.0, estimates.upward_variance)
    variance = finite * (EMPTY_VARIANCE + (1 - EMPTY_VARIANCE) * part)
    total = _family_total(tree, variance)
    slope = _slopes(variance, total, estimates.slope)
    if unknown.any():
        beside = _family_total(tree, unknown.astype(np.float64)) > 0
        slope = np.where(beside, estimates.slope, slope)
    of_root = float(estimates.variance[0])
    if of_nodes:
        node_variance = _node_variances(tree, variance, slope, total, of_root)
    else:
        node_variance = np.append(of_root, np.full(len(tree) - 1, np.nan))
    return replace(
        estimates,
        upward_variance=np.where(unknown, np.inf, variance),
        slope=slope,
        variance=node_variance,
    )


def _slopes(variance: Floats, total: Floats, otherwise: Floats) -> Floats:
    """Share of each node in the variance of its family; as it was where the family has none."""
    return np.where(total > 0, variance / np.maximum(total, _TINY), otherwise)


def _node_variances(
    tree: Hierarchy, variance: Floats, slope: Floats, total: Floats, root: float
) -> Floats:
    """Variance of each node, from the root down: what its parent explains, and its own."""
    beside = total - variance
    result = variance * (1 - slope) ** 2 + slope**2 * np.maximum(beside, 0.0)
    result[0] = root
    for level in tree.levels[1:]:
        result[level] += slope[level] ** 2 * result[tree.parent[level]]
    return result


def _family_total(tree: Hierarchy, values: Floats) -> Floats:
    """Sum over the whole family of each node, its own value included; the root's is its own."""
    total = values.copy()
    family = tree.parent[1:]
    total[1:] = sum_by(family, values[1:], len(tree))[family]
    return total
