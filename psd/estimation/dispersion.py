"""Variance of the points in a part of a leaf: per point, and per squared point.

Both are estimated from the noisy counts of families of siblings. A large cell shows mostly the
second, and a small one mostly the first, so they can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.constants import (
    CLUSTER_SIZES,
    DIAGONAL_PART,
    ENOUGH_FAMILIES,
    EXPECTED_CLUSTER_SIZE,
    LARGEST_FAMILY,
    STEP_OVERDISPERSION,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import overdispersion_of_leaves
from psd.estimation.sibling_splits import children_of, join_batches
from psd.space.box_tree import Tree

__all__ = ["Dispersion", "fit_dispersion"]

# Both estimates depend on each other through the weights; they settle in a few rounds.
_ROUNDS = 8


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
    which the parent is divided (`_divided_axes`).
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
    moments = _family_moments(tree, estimates, share)
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
        along = _level_sums(moments.level[divided], excess[divided], squares[divided], levels)
        phi = np.maximum(phi, overdispersion_of_leaves(*along))
    single = (tree.boxes[:, 2:] - tree.boxes[:, :2] == 1).all(axis=1)
    return Dispersion(
        cluster_size=cluster_size, overdispersion=np.where(single, 1.0, phi[tree.level])
    )


def _level_sums(
    level: Integers, excess: Floats, squares: Floats, levels: int
) -> tuple[Floats, Floats, Floats]:
    """Sums over families by level, each for a bounded part of the squares of its level."""
    size = np.maximum(squares, 0.0)
    limit = LARGEST_FAMILY * sum_by(level, size, levels)[level]
    weight = np.where(size > limit, limit / np.where(size > limit, size, 1.0), 1.0)
    values = (weight * excess, weight * squares, np.ones(len(level)))
    of_excess, of_squares, number = (sum_by(level, value, levels) for value in values)
    return of_excess, of_squares, number


def _family_moments(tree: Tree, estimates: Estimates, share: Floats) -> _Moments:
    """Moments of the families whose children are all measured."""
    return join_batches(
        tree, _Moments, lambda parents: _moments_of(tree, estimates, share, parents)
    )


def _moments_of(tree: Tree, estimates: Estimates, share: Floats, parents: Integers) -> _Moments:
    """Moments of some families."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]

    def total(values: Floats) -> Floats:
        return sum_by(owner, values, len(parents))

    count, noise, parts = total(value), total(variance), total(g * (1 - g))
    used = np.flatnonzero(np.isfinite(noise) & (parts > 0))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    noise = np.where(np.isfinite(noise), noise, 0.0)
    added = total(variance * (1 - 2 * g)) + total(g**2) * noise
    squares = total((value - g * count[owner]) ** 2)
    return _Moments(
        node=parents[used],
        level=tree.level[parents[used]].astype(np.int64),
        excess=(squares - added)[used],
        count=count[used],
        square=(count**2 - noise)[used],
        parts=parts[used],
        noise=added[used],
        freedom=np.maximum(tree.children[parents[used]] - 1, 1).astype(np.float64),
        across=_divided_axes(tree, parents[used]),
    )


def _divided_axes(tree: Tree, parents: Integers) -> Integers:
    """Axes along which nodes are divided: bit 0 for x, bit 1 for y."""
    first = tree.boxes[tree.first_child[parents]]
    narrower = (first[:, 2:] - first[:, :2]) < (tree.boxes[parents, 2:] - tree.boxes[parents, :2])
    axes: Integers = narrower @ np.array([1, 2])
    return axes


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

        def total(values: Floats, weight: Floats = weight) -> Floats:
            return sum_by(level, weight * values, levels)

        a, b, c = total(points**2), total(points * squares), total(squares**2)
        by_points, by_squares = total(points * moments.excess), total(squares * moments.excess)
        used = enough & (c > 0)
        c = np.where(used, c, 1.0)
        alone = np.where(used, a - b * b / c, 0.0).sum() / 2
        excess = np.where(used, by_points - b * by_squares / c, 0.0).sum() / 2
        phi = np.where(used, np.clip((by_squares - cluster_size * b) / c, 0.0, 1.0), phi)
        prior = 1 / deviation**2
        cluster_size = float(np.clip((excess + mean * prior) / (alone + prior), *CLUSTER_SIZES))
    return cluster_size
