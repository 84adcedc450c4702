"""From noisy counts to consistent estimates, signed and not negative.

Post-processing: only the noisy integers and their epsilons are read, so they cost no epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import sum_by
from psd.errors import ReleaseFormatError
from psd.estimation.measurements import Measurements, measure_counts
from psd.estimation.pooling import settled_variance
from psd.space.box_tree import Hierarchy

__all__ = ["LEAST_SLOPE", "Estimates", "infer_counts", "prune_counts"]

LEAST_SLOPE = 1e-12
"""Smallest slope: a child without a share must be able to take the total if it is the last one."""

_TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates of a tree; one value per node, in the order of the tree.

    Parameters
    ----------
    signed : ndarray, shape (n,), float64
        Best linear unbiased estimates, in records; the children of a node sum to it.
    count : ndarray, shape (n,), float64
        The published counts: not negative, the children of a node sum to it.
    upward : ndarray, shape (n,), float64
        Estimate of each node from its own subtree alone.
    upward_variance : ndarray, shape (n,), float64
        Its variance, in records squared; infinite where the subtree is not measured.
    slope : ndarray, shape (n,), float64
        How much a node's estimate grows with its parent's; a family's slopes sum to 1.
    variance : ndarray, shape (n,), float64
        Variance of the signed estimates, in records squared.
    """

    signed: NDArray[np.float64]
    count: NDArray[np.float64]
    upward: NDArray[np.float64]
    upward_variance: NDArray[np.float64]
    slope: NDArray[np.float64]
    variance: NDArray[np.float64]


def infer_counts(
    tree: Hierarchy,
    scale: int = 1,
    empty: NDArray[np.bool_] | None = None,
    *,
    settled: bool = False,
    measured: Measurements | None = None,
    projected: bool = True,
) -> Estimates:
    """Estimate counts by generalised least squares, signed and not negative.

    Guarantees
    ----------
    - `signed` is the minimum-variance linear unbiased estimate given the tree, for any set of
      measured nodes that determines the leaves; with ``settled``, only for trees whose cells do
      not follow from their counts.
    - Signed or not, the children of a node sum to it, to rounding.
    - Time and memory are linear in the number of nodes.

    Parameters
    ----------
    tree : Hierarchy
        Noisy counts with their noise. Public.
    scale : int
        Amount that one record or user adds to a count; estimates are in these units. Public.
    empty : ndarray, shape (n,), bool, optional
        Leaves that are known to be empty without having been measured. Public.
    settled : bool
        Whether counts are pooled by `psd.estimation.pooling`, so that counts that decided how
        finely their cells are divided are not biased.
    measured : Measurements, optional
        Value and variance of each node; those of the noisy counts by default.
    projected : bool
        Whether the published counts are computed. Otherwise they are the signed ones, for callers
        that put others in their stead.

    Returns
    -------
    Estimates

    Raises
    ------
    ReleaseFormatError
        If the measured nodes do not determine all parts of a node.

    Notes
    -----
    Upward, each node pools its own count with the sum of its children by inverse variance;
    downward, what a parent knows better is handed to the children in proportion to their
    variances. This is belief propagation on the tree, exact for Gaussian least squares; with
    one epsilon per level it equals Hay et al. [1]_ and Cormode et al. [2]_.

    References
    ----------
    .. [1] Hay, Rastogi, Miklau, Suciu. "Boosting the Accuracy of Differentially Private
       Histograms Through Consistency." VLDB 2010, section 4.
    .. [2] Cormode et al. "Differentially Private Spatial Decompositions." ICDE 2012, section 5.
    """
    if measured is None:
        measured = measure_counts(tree, scale)
    measured_variance = measured.variance
    if empty is not None:
        measured_variance[empty] = 0.0
    upward, upward_variance = _pool_upward(tree, measured.value, measured_variance, settled=settled)
    unknowns, total = _family_variances(tree, upward_variance)
    slope = _slopes(upward_variance, unknowns, total)
    alone = _variance_given_parent(upward_variance, slope, unknowns, total)
    signed, variance = _distribute_downward(tree, upward, upward_variance, slope, alone)
    return Estimates(
        signed=signed,
        count=project_non_negative(tree, signed, slope, empty) if projected else signed,
        upward=upward,
        upward_variance=upward_variance,
        slope=slope,
        variance=variance,
    )


def prune_counts(
    tree: Hierarchy, estimates: Estimates, threshold: int, share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Replace everything below small cells by their shares.

    Parameters
    ----------
    tree : Hierarchy
        Cells.
    estimates : Estimates
        Of that tree.
    threshold : int
        Estimated records (signed) up to which the parts of a cell are not distinguished.
    share : ndarray, shape (n,), float64
        Share of its parent that each node is assumed to have, such as its share of the area.

    Returns
    -------
    ndarray, shape (n,), float64
        The children of a node sum to it, as they did.

    References
    ----------
    .. [1] Cormode et al. "Differentially Private Spatial Decompositions." ICDE 2012, section 7:
       pruning after least squares.
    """
    count, small = estimates.count.copy(), estimates.signed <= threshold
    for level in tree.levels[1:]:
        up = tree.parent[level]
        count[level] = np.where(small[up], count[up] * share[level], count[level])
        small[level] |= small[up]
    return count


def _family_sum(tree: Hierarchy, level: slice, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the children of each node of a level, 0 where it has none."""
    kids = _children_of(tree, level)
    owner = tree.parent[kids] - level.start
    return sum_by(owner, values[kids], level.stop - level.start)


def _pool_upward(
    tree: Hierarchy,
    measured: NDArray[np.float64],
    measured_variance: NDArray[np.float64],
    *,
    settled: bool,
) -> tuple[NDArray[np.float64], ...]:
    """Estimate of each node from its subtree, and its variance, leaves first."""
    estimate, variance = measured.copy(), measured_variance.copy()
    for level in reversed(tree.levels):
        inner = ~tree.is_leaf[level]
        if not inner.any():
            continue
        below, below_variance = (_family_sum(tree, level, v)[inner] for v in (estimate, variance))
        count, own_variance = estimate[level][inner], measured_variance[level][inner]
        pooled_by = (
            settled_variance(own_variance, below_variance, count, below)
            if settled
            else below_variance
        )
        weight = _pooling_weight(own_variance, pooled_by)
        estimate[level][inner] += weight * (below - count)
        variance[level][inner] = _pooled_variance(own_variance, below_variance)
        moved = np.flatnonzero(pooled_by != below_variance)
        nodes = level.start + np.flatnonzero(inner)[moved]
        # With another weight than the best one, the variance of the mean is that of its parts.
        part, own_part = weight[moved] ** 2, (1 - weight[moved]) ** 2
        variance[nodes] = part * below_variance[moved] + own_part * own_variance[moved]
    return estimate, variance


def _pooling_weight(
    variance: NDArray[np.float64], other_variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight of the second of two measurements; 0 if both variances are infinite."""
    with np.errstate(invalid="ignore"):
        weight = 1 / (1 + other_variance / variance)
    return np.where(np.isinf(variance), np.where(np.isinf(other_variance), 0.0, 1.0), weight)


def _pooled_variance(
    variance: NDArray[np.float64], other_variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Variance of two pooled measurements."""
    with np.errstate(divide="ignore"):
        return 1 / (1 / variance + 1 / other_variance)


def _distribute_downward(
    tree: Hierarchy,
    upward: NDArray[np.float64],
    upward_variance: NDArray[np.float64],
    slope: NDArray[np.float64],
    alone: NDArray[np.float64],
) -> tuple[NDArray[np.float64], ...]:
    """Final estimates and their variances, root first, from those of each node given its parent."""
    estimate, variance = upward.copy(), upward_variance.copy()
    for level in tree.levels[:-1]:
        excess = estimate[level] - _family_sum(tree, level, upward)
        kids = _children_of(tree, level)
        up = tree.parent[kids]
        estimate[kids] += slope[kids] * excess[up - level.start]
        variance[kids] = alone[kids] + slope[kids] ** 2 * variance[up]
    return estimate, variance


def _children_of(tree: Hierarchy, level: slice) -> slice:
    """Slice of all children of the nodes of a level."""
    first = tree.first_child[level]
    return slice(int(first[0]), int(first[-1] + tree.children[level][-1]))


def _variance_given_parent(
    upward_variance: NDArray[np.float64],
    slope: NDArray[np.float64],
    unknowns: NDArray[np.float64],
    total: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Variance of each node once its parent is known: slope times that of its siblings.

    A child that was not measured is its parent minus its siblings; they learn nothing from it.
    """
    unknown = np.isinf(upward_variance)
    finite = np.where(unknown, 0.0, upward_variance)
    return np.where(~unknown & (unknowns > 0), finite, slope * (total - finite))


def _family_variances(
    tree: Hierarchy, upward_variance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Number of unmeasured nodes in the family of each node, and the variance of the others."""
    unknown = np.isinf(upward_variance)
    if not unknown.any():
        return np.zeros(len(tree)), _family_total(tree, upward_variance)
    finite = np.where(unknown, 0.0, upward_variance)
    return _family_total(tree, unknown.astype(float)), _family_total(tree, finite)


def _family_total(tree: Hierarchy, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over each node's whole family, its own value included; the root's is its own."""
    total = values.copy()
    family = tree.parent[1:]
    total[1:] = sum_by(family, values[1:], len(tree))[family]
    return total


def _slopes(
    upward_variance: NDArray[np.float64],
    unknowns: NDArray[np.float64],
    total: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Share of a parent's excess that each node takes: its part of the family's variance."""
    if np.isinf(upward_variance[0]):
        raise ReleaseFormatError("the leaves are not all measured, so the total is not known")
    if (unknowns > 1).any():
        raise ReleaseFormatError("two unmeasured cells of one parent cannot be told apart")
    unknown = np.isinf(upward_variance)
    finite = np.where(unknown, 0.0, upward_variance)
    return np.where(unknowns > 0, unknown, finite / np.maximum(total, _TINY))


def project_non_negative(
    tree: Hierarchy,
    signed: NDArray[np.float64],
    slope: NDArray[np.float64],
    empty: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Project estimates onto non-negative ones, family by family from the root down.

    Each family is projected onto the numbers that are not negative and sum to what its parent
    was given, in the metric of the family's variances. Clipping each cell by itself would add
    up to a bias that large queries see; here a family's total stays its parent's.
    """
    count = signed.copy()
    count[0] = max(count[0], 0.0)
    least = np.full(len(tree), LEAST_SLOPE)
    if empty is not None:
        least[_all_leaves_empty(tree, empty)] = 0.0
    slope = np.maximum(slope, least)
    for level in tree.levels[:-1]:
        kids = _children_of(tree, level)
        owner = tree.parent[kids] - level.start
        count[kids] = project_families(signed[kids], slope[kids], owner, count[level])
    return count


def _all_leaves_empty(tree: Hierarchy, empty: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the nodes whose leaves are all empty."""
    occupied = tree.is_leaf & ~empty
    for level in reversed(tree.levels[1:]):
        occupied[tree.parent[level][occupied[level]]] = True
    return ~occupied


def project_families(
    values: NDArray[np.float64],
    slopes: NDArray[np.float64],
    owner: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Project families onto non-negative numbers with fixed sums, by weights.

    Michelot's algorithm: spread what is missing over the children that are left, drop those
    that fall below zero, repeat; a family of four is done after three rounds.
    """
    left = np.ones(len(values), bool)
    while True:
        open_slopes = np.where(left, slopes, 0.0)
        missing = totals - sum_by(owner, np.where(left, values, 0.0), len(totals))
        room = sum_by(owner, open_slopes, len(totals))
        step = missing / np.where(room > 0, room, 1.0)
        moved = np.where(left, values + open_slopes * step[owner], 0.0)
        if (moved >= 0).all():
            return moved
        left &= moved >= 0
