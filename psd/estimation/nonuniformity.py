"""Non-uniformity of points inside a cell, estimated from the noisy counts.

A leaf that a query covers in part is taken to be uniform. How wrong that is likely to be can be
seen one level up, where the cells are divided and the division was measured: the spread of the
measured parts around their shares of the cell, less what the noise adds to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.estimation.constants import (
    CEILING_ERRORS,
    ENOUGH_FAMILIES,
    SHIFT_ERROR,
)

__all__ = [
    "cell_ceiling",
    "nonuniformity_variance",
    "overdispersion_of_leaves",
    "shift_variance",
]


def nonuniformity_variance(
    count: NDArray[np.float64],
    fraction: NDArray[np.float64],
    area: NDArray[np.float64],
    overdispersion: NDArray[np.float64],
    cluster_size: float,
) -> NDArray[np.float64]:
    """Compute the variance n f (1 - f) (c + phi n) of the points in a part of a leaf.

    The compiled walk compiles this very function for single numbers, so it is arithmetic alone;
    and it asks for leaves that are not cut as well, so 0 has to come out where both shares are
    0 and where both are 1.

    Parameters
    ----------
    count : ndarray, shape (n,), float64
        Estimated points of the cells; negative ones count as none.
    fraction : ndarray, shape (n,), float64
        Covered share of their points, as these are taken to lie.
    area : ndarray, shape (n,), float64
        Covered share of their area.
    overdispersion : ndarray, shape (n,), float64
        Overdispersion: 0 for points thrown at random, 1 for all or nothing.
    cluster_size : float
        Variance per point; see `psd.estimation.dispersion`.

    Returns
    -------
    ndarray, shape (n,), float64
        Records squared.
    """
    points = np.maximum(count, 0.0)
    return points * fraction * (1 - fraction) * (cluster_size + overdispersion * points)


def cell_ceiling(count: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the records that cells hardly exceed: their counts and two standard deviations.

    Parameters
    ----------
    count : ndarray, shape (n,), float64
        Estimated points of the cells; negative ones count as none.
    variance : ndarray, shape (n,), float64
        Of the counts by the noise.

    Returns
    -------
    ndarray, shape (n,), float64
        Records.

    Examples
    --------
    >>> cell_ceiling(np.array([10.0, -3.0]), np.array([4.0, 1.0])).tolist()
    [14.0, 2.0]
    """
    return np.maximum(count, 0.0) + CEILING_ERRORS * np.sqrt(variance)


def shift_variance(shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the variance that all leaves which a query cuts have in common.

    A leaf beside a dense one holds its points near that one. A smooth density knows this, but
    not how strongly, and is wrong in the same direction along the whole edge of a query.

    Parameters
    ----------
    shift : ndarray, shape (n,), float64
        Records that the smooth density moved into each query, beside an even one. Those that a
        covariate moved have a factor, `psd.estimation.fit.Fit.shift_share`.

    Returns
    -------
    ndarray, shape (n,), float64
        Records squared.
    """
    return (SHIFT_ERROR * shift) ** 2


def overdispersion_of_leaves(
    excess: NDArray[np.float64], squares: NDArray[np.float64], families: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the overdispersion inside the leaves of each level from the levels above.

    Parameters
    ----------
    excess, squares, families : ndarray, shape (levels,), float64
        By level: excess spread, its coefficient of phi, and the number of families whose parents
        are on the level.

    Returns
    -------
    ndarray, shape (levels,), float64
        In [0, 1].
    """
    phi = np.ones(len(excess))
    for depth in range(1, len(phi)):
        above = slice(depth - 1, None, -1)  # sums over the levels just above, one, two, ...
        enough = (families[above].cumsum() >= ENOUGH_FAMILIES) & (squares[above].cumsum() > 0)
        first = depth - 1 - int(enough.argmax()) if enough.any() else 0
        total_squares = squares[first:depth].sum()
        if total_squares > 0:
            phi[depth] = np.clip(excess[first:depth].sum() / total_squares, 0.0, 1.0)
    return phi
