"""Non-uniformity of points inside a cell, estimated from the noisy counts.

A leaf that a query covers in part is taken to be uniform. How wrong that is likely to be can be
seen one level up, where the cells are divided and the division was measured: the spread of the
measured parts around their shares of the cell, less what the noise adds to it. The variance of the
points in a part has one term per point, and one per squared point: a large cell shows mostly the
second, and a small one mostly the first, so they can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.constants import (
    CEILING_ERRORS,
    CLUSTER_SIZES,
    DIAGONAL_PART,
    ENOUGH_FAMILIES,
    EXPECTED_CLUSTER_SIZE,
    LARGEST_FAMILY,
    SHIFT_ERROR,
    STEP_OVERDISPERSION,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.sibling_splits import children_of, family_batches, join_parts
from psd.space.box_tree import Tree

__all__ = [
    "Dispersion",
    "cell_ceiling",
    "fit_dispersion",
    "nonuniformity_variance",
    "overdispersion_of_leaves",
    "shift_variance",
]

# Both estimates depend on each other through the weights; they settle in a few rounds.
_ROUNDS = 8


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
        Variance per point; see `fit_dispersion`.

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispersion:
    """Variance n f (1 - f) (c + phi n) of the share f of n points in a leaf.

    Parameters
    ----------
    cluster_size : float
        1 for points thrown at random; more where they come in clusters, such as people at one
        address.
    overdispersion : ndarray, shape (nodes,), float64
        Overdispersion: 0 for points thrown at random, 1 for all or nothing.
    """

    cluster_size: float
    overdispersion: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Families whose children are all measured.

    Parent and its level; squared deviations less what noise adds; count and squared count of the
    family without bias; sum of g (1 - g); variance by noise; degrees of freedom; and the axes along
    which the parent is divided, bit 0 for x and bit 1 for y.
    """

    node: Integers
    level: Integers
    excess: Floats
    count: Floats
    square: Floats
    parts: Floats
    noise: Floats
    freedom: Floats
    across: Integers


def fit_dispersion(
    tree: Tree, estimates: Estimates, share: Floats, by_lines: Floats | None = None
) -> Dispersion:
    """Estimate the dispersion inside the leaves from families of siblings.

    Parameters
    ----------
    tree : Tree
        Cells.
    estimates : Estimates
        Of that tree.
    share : ndarray, shape (nodes,), float64
        Of its parent's records that each node has if they lie as they are taken to.
    by_lines : ndarray, shape (nodes,), float64, optional
        What records along lines explain of S, per squared record of a node
        (`psd.estimation.line_covariance.line_squares`); nothing where not given.

    Notes
    -----
    Let S be the sum of squared deviations of the children of a node of n records from their shares
    g, less what the noise adds to it, and G the sum of g (1 - g). Then E S = G n (c + phi n). The
    cluster size is one for all families, phi one for each level; both are fitted by least squares,
    with the inverse variance of S as weight and a normal prior of the cluster size. Then phi of the
    leaves of a level is the ratio of sums over families on the levels just above it
    (`psd.estimation.nonuniformity.overdispersion_of_leaves`): large cells determine it, as they
    determine the errors. But a family counts for at most 1.5 % of the squares of its level: a city
    in two cells would determine the error of all others.

    A division along x tells nothing about y. So where families are divided along one axis, phi is
    fitted for each axis, and that of a leaf is the larger one: points on one line from west to east
    are even along x, and all or nothing along y.

    The noise of n draws the cluster size towards 1 where many cells are nearly empty. Estimates
    without this bias were too large for leaves: clusters are smaller in smaller cells
    (docs/measured/coverage.md).

    A leaf of a single cell of the lattice has phi 1: no position inside it was recorded, and on a
    coarse lattice all of its records may be at one point. Boxes between lines do not cut it.
    """
    moments = join_parts(
        _Moments,
        [_moments_of(tree, estimates, share, parents) for parents in family_batches(tree)],
    )
    cluster_size = _fit_cluster_size(moments, len(tree.levels))
    excess = moments.excess - cluster_size * moments.parts * moments.count
    parts, levels = moments.parts, len(tree.levels)
    if by_lines is not None:
        lines = by_lines[moments.node]
        excess = excess - lines * moments.square
        parts = np.maximum(parts - lines, DIAGONAL_PART * parts)
    squares = parts * moments.square
    phi = np.zeros(levels)
    for axis in (1, 2):
        divided = np.flatnonzero(moments.across & axis)
        level, of_families = moments.level[divided], squares[divided]
        # Each family counts for a bounded part of the squares of its level.
        size = np.maximum(of_families, 0.0)
        limit = LARGEST_FAMILY * sum_by(level, size, levels)[level]
        weight = np.where(size > limit, limit / np.where(size > limit, size, 1.0), 1.0)
        values = (weight * excess[divided], weight * of_families, np.ones(len(level)))
        of_levels = [sum_by(level, value, levels) for value in values]
        phi = np.maximum(phi, overdispersion_of_leaves(*of_levels))
    single = (tree.boxes[:, 2:] - tree.boxes[:, :2] == 1).all(axis=1)
    return Dispersion(
        cluster_size=cluster_size, overdispersion=np.where(single, 1.0, phi[tree.level])
    )


def _moments_of(tree: Tree, estimates: Estimates, share: Floats, parents: Integers) -> _Moments:
    """Moments of some families."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]

    size, parts = len(parents), sum_by(owner, g * (1 - g), len(parents))
    count, noise = sum_by(owner, value, size), sum_by(owner, variance, size)
    used = np.flatnonzero(np.isfinite(noise) & (parts > 0))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    noise = np.where(np.isfinite(noise), noise, 0.0)
    added = sum_by(owner, variance * (1 - 2 * g), size) + sum_by(owner, g**2, size) * noise
    squares = sum_by(owner, (value - g * count[owner]) ** 2, size)
    first = tree.boxes[tree.first_child[parents]]
    narrower = (first[:, 2:] - first[:, :2]) < (tree.boxes[parents, 2:] - tree.boxes[parents, :2])
    return _Moments(
        node=parents[used],
        level=tree.level[parents[used]].astype(np.int64),
        excess=(squares - added)[used],
        count=count[used],
        square=(count**2 - noise)[used],
        parts=parts[used],
        noise=added[used],
        freedom=np.maximum(tree.children[parents[used]] - 1, 1).astype(np.float64),
        across=(narrower @ np.array([1, 2]))[used],
    )


def _fit_cluster_size(moments: _Moments, levels: int) -> float:
    """Variance per point, by weighted least squares with a prior."""
    level, mean, deviation = moments.level, *EXPECTED_CLUSTER_SIZE
    points, squares = moments.parts * moments.count, moments.parts * moments.square
    count, cluster_size = np.maximum(moments.count, 0.0), mean
    phi = np.full(levels, STEP_OVERDISPERSION)
    enough = np.bincount(level, minlength=levels) >= ENOUGH_FAMILIES
    for _ in range(_ROUNDS):
        variance = moments.noise + moments.parts * count * (cluster_size + phi[level] * count)
        weight = moments.freedom / np.maximum(variance, 1e-150) ** 2
        values = points**2, points * squares, squares**2
        a, b, c, by_points, by_squares = (
            sum_by(level, weight * each, levels)
            for each in (*values, points * moments.excess, squares * moments.excess)
        )
        used = enough & (c > 0)
        c = np.where(used, c, 1.0)
        alone = np.where(used, a - b * b / c, 0.0).sum() / 2
        excess = np.where(used, by_points - b * by_squares / c, 0.0).sum() / 2
        phi = np.where(used, np.clip((by_squares - cluster_size * b) / c, 0.0, 1.0), phi)
        prior = 1 / deviation**2
        cluster_size = float(np.clip((excess + mean * prior) / (alone + prior), *CLUSTER_SIZES))
    return cluster_size
