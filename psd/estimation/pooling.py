"""Variances by which a noisy count is pooled with the sum of what lies below it.

If a noisy count decides how finely its cell is divided, a count that is too high gets more cells
below, so a sum with a larger variance, and with it a larger weight in the mean of count and sum:
estimates drift upward. The bias of one cell is small, but those of many cells add up, while their
noise cancels out. Here the sum gets the variance that it would have if the final estimate, not the
noisy count, had decided the division.
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats, distinct_values
from psd.estimation.constants import POOLING_PEERS

__all__ = ["settled_variance"]

_GROUP = 2 * POOLING_PEERS + 1


def settled_variance(
    variance: Floats, below_variance: Floats, count: Floats, below: Floats
) -> Floats:
    """Variances of the sums below cells that do not depend on the noise of the cells' counts.

    Parameters
    ----------
    variance, below_variance : ndarray, shape (n,), float64
        Variance of the noisy count of each cell of a level, infinite where it was not measured, and
        of the sum of its children.
    count, below : ndarray, shape (n,), float64
        Noisy counts, and sums of the children.

    Returns
    -------
    ndarray, shape (n,), float64
        To be used as weights. The variance of each sum stays ``below_variance``.

    Notes
    -----
    Let n be the noisy count with variance v, s the sum below with variance V, and x = s + w (n - s)
    with w = V / (V + v). The error of x is not correlated with n - s. So a weight w(x) does not
    bias s + w(x) (n - s) to first order, while w(n) does, by about Cov(w, n). The variance at x is
    V f(x) / f(n), where f(n) is the mean variance among cells of the same level and epsilon with
    similar counts. So a cell keeps what else its variance depends on, such as the roughness of its
    neighbourhood. Where all these variances are equal, as in trees whose cells do not follow from
    counts, and in groups of a few cells, whose biases do not add up to much, nothing changes.

    Examples
    --------
    >>> equal = np.full(40, 2.0)
    >>> settled_variance(equal, equal, np.arange(40.0), np.arange(40.0)).tolist() == equal.tolist()
    True
    """
    settled = below_variance.copy()
    usable = np.isfinite(variance) & np.isfinite(below_variance)
    usable &= (variance > 0) & (below_variance > 0)
    values = variance[usable]
    for level_variance in values[distinct_values(values)[0]]:
        group = np.flatnonzero(usable & (variance == level_variance))
        spread = below_variance[group]
        if len(group) >= _GROUP and spread.min() < spread.max():
            settled[group] = _at_estimate(float(level_variance), spread, count[group], below[group])
    return settled


def _at_estimate(variance: float, below_variance: Floats, count: Floats, below: Floats) -> Floats:
    """Variances below cells of equal variance, moved from their counts to their estimates."""
    order = np.argsort(count, kind="stable")
    mean = _moving_mean(below_variance[order])
    weight = below_variance / (below_variance + variance)
    estimate = below + weight * (count - below)
    at_estimate, at_count = (np.interp(at, count[order], mean) for at in (estimate, count))
    moved: Floats = below_variance * at_estimate / at_count
    return moved


def _moving_mean(values: Floats) -> Floats:
    """Mean of the values around each one; at the ends, of the first or last values."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.clip(np.arange(len(values)) - POOLING_PEERS, 0, len(values) - _GROUP)
    mean: Floats = (sums[first + _GROUP] - sums[first]) / _GROUP
    return mean
