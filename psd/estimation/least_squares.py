"""From noisy counts to consistent estimates, signed and not negative: post-processing.

Integers follow from the digest of the release, so all readers have the same ones.

.. [1] Madow. "On the Theory of Systematic Sampling, II." The Annals of Mathematical Statistics
   20(3), 1949. https://doi.org/10.1214/aoms/1177729988
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, distinct_values, sum_by
from psd.errors import ReleaseFormatError
from psd.estimation.constants import EMPTY_VARIANCE, POOLING_PEERS
from psd.release.record import LevelReports, LocalReports, ReleaseRecord
from psd.space.box_tree import Hierarchy

__all__ = ["Estimates", "measure_record"]


LEAST_SLOPE = 1e-12
"""Smallest slope: a child without a share must be able to take the total if it is the last one."""

_TINY = 1e-300

_GROUP = 2 * POOLING_PEERS + 1


# Counts in order, and the mean variance of the sums below around each, of cells of a level whose
# counts have one variance.
Peers: TypeAlias = Mapping[tuple[int, float], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """What was measured of each node, in records, and its variance, by noise or by reports."""

    value: Floats  # (n,) float64; unbiased measurement, in records
    variance: Floats  # (n,) float64; its variance; infinite where a node is not measured


def measure_counts(tree: Hierarchy, scale: int) -> Measurements:
    """Measurements of noisy counts, to which one record or user adds `scale`."""
    variance = tree.noise_variance() / scale**2
    return Measurements(value=tree.count / scale, variance=variance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates of a tree: (n,) float64 in the order of its nodes, in records."""

    signed: NDArray[np.float64]  # best linear unbiased estimates; the children of a node sum to it
    # The published counts: not negative, the children of a node sum to it.
    count: NDArray[np.float64]
    upward: NDArray[np.float64]  # estimate of each node from its own subtree alone
    # Its variance, in records squared; infinite where the subtree is not measured.
    upward_variance: NDArray[np.float64]
    # How much a node's estimate grows with its parent's; a family's slopes sum to 1.
    slope: NDArray[np.float64]
    variance: NDArray[np.float64]  # of the signed estimates, in records squared


def infer_counts(
    tree: Hierarchy,
    scale: int = 1,
    empty: NDArray[np.bool_] | None = None,
    *,
    settled: bool = False,
    measured: Measurements | None = None,
    projected: bool = True,
    peers: Peers | None = None,
) -> Estimates:
    """Estimate counts by generalised least squares, signed and not negative.

    - `scale`: what one record or user adds to a count; estimates are in these units
    - `empty`: (n,) bool, leaves known to be empty without having been measured
    - `settled`: whether counts are pooled by `settled_variance`, where they decided the cells
    - `measured`: value and variance of each node; by default those of the noisy counts
    - `projected`: False for callers that put others in the stead of the published counts
    - `peers`: cells of other slices, to settle those by of which a slice has few

    P1. `signed` is the minimum-variance linear unbiased estimate given the tree, for any measured
    nodes that determine the leaves (else ReleaseFormatError); with `settled`, only for trees whose
    cells do not follow from their counts.

    P2. Signed or not, the children of a node sum to it, to rounding.

    P3. Time and memory are linear in the number of nodes.

    Upward, each node pools its own count with the sum of its children by inverse variance;
    downward, what a parent knows better goes to the children in proportion to their variances:
    belief propagation, exact for Gaussian least squares; with one epsilon per level, [1]_ and [2]_.

    .. [1] Hay, Rastogi, Miklau, Suciu. "Boosting the Accuracy of Differentially Private Histograms
       Through Consistency." VLDB 2010, section 4.
    .. [2] Cormode et al. "Differentially Private Spatial Decompositions." ICDE 2012, section 5.
    """
    if measured is None:
        measured = measure_counts(tree, scale)
    if empty is not None:
        measured.variance[empty] = 0.0
    upward, upward_variance = _pool_upward(tree, measured, settled=settled, peers=peers)

    # The share of its parent's excess that a node takes is its part of the variance of its family.
    # A child that was not measured is its parent minus its siblings; they learn nothing from it.
    unknown = np.isinf(upward_variance)
    finite = np.where(unknown, 0.0, upward_variance)
    total, unknowns = _family_total(tree, finite), np.zeros(len(tree))
    if unknown.any():
        unknowns = _family_total(tree, unknown.astype(np.float64))
    if unknown[0]:
        raise ReleaseFormatError("the leaves are not all measured, so the total is not known")
    if (unknowns > 1).any():
        raise ReleaseFormatError("two unmeasured cells of one parent cannot be told apart")
    slope = np.where(unknowns > 0, unknown, finite / np.maximum(total, _TINY))
    alone = np.where(~unknown & (unknowns > 0), finite, slope * (total - finite))

    # Downward, from the root.
    signed, variance = upward.copy(), upward_variance.copy()
    for level in tree.levels[:-1]:
        excess = signed[level] - _family_sum(tree, level, upward)
        kids = _children_of(tree, level)
        up = tree.parent[kids]
        signed[kids] += slope[kids] * excess[up - level.start]
        variance[kids] = alone[kids] + slope[kids] ** 2 * variance[up]
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
    """Replace all below cells of up to `threshold` records by shares of parents; (n,) float64 [1]_.

    .. [1] Cormode et al. "Differentially Private Spatial Decompositions." ICDE 2012, section 7:
       pruning after least squares.
    """
    # Marks go down: whatever lies below a small cell is a share of what its parent has got.
    count, small = estimates.count.copy(), estimates.signed <= threshold
    for level in tree.levels[1:]:
        up = tree.parent[level]
        count[level] = np.where(small[up], count[up] * share[level], count[level])
        small[level] |= small[up]
    return count


def published_covariance(
    tree: Hierarchy, estimates: Estimates, *, of_nodes: bool = True
) -> Estimates:
    """Replace the covariance by that of `count`; without `of_nodes`, only the root's."""
    # Counts that were found near 0 are held there, and what the noise adds goes to their siblings.
    # So a cell of count x and standard deviation s takes part in its family with the variance s^2
    # (0.1 + 0.9 min(1, x^2 / s^2)), and the recursion of `psd.query.traversal` is run on these. A
    # cell that was not measured is its parent less its siblings.
    # In place: a large release has room for few arrays of its nodes.
    unknown = np.isinf(estimates.upward_variance)
    measured = np.where(unknown, estimates.variance, estimates.upward_variance)
    # The part of its variance that each cell takes in its family, from x^2 / s^2.
    part = estimates.count**2
    part /= np.maximum(measured, _TINY, out=measured)
    np.minimum(part, 1.0, out=part)
    part *= 1 - EMPTY_VARIANCE
    part += EMPTY_VARIANCE
    variance = np.where(unknown, 0.0, estimates.upward_variance)
    variance *= part
    total = _family_total(tree, variance)
    # What a family lacks is shared in proportion to these variances.
    slope = np.divide(variance, np.maximum(total, _TINY, out=part), out=measured)
    slope = np.where(total > 0, slope, estimates.slope)
    # Families with a cell that was not measured keep the slopes of least squares.
    if unknown.any():
        beside = _family_total(tree, unknown.astype(np.float64)) > 0
        slope = np.where(beside, estimates.slope, slope)
    of_node = np.full(len(tree), np.nan)
    if of_nodes:  # what a node has itself, and then what its parent explains, from the root down
        np.subtract(1, slope, out=of_node)
        of_node *= of_node
        of_node *= variance
        total -= variance
        np.maximum(total, 0.0, out=total)
        total *= np.square(slope, out=part)
        of_node += total
    # From the root down, since each level adds to the variances of the one above.
    of_node[0] = estimates.variance[0]
    for level in tree.levels[1:] if of_nodes else ():
        of_node[level] += slope[level] ** 2 * of_node[tree.parent[level]]
    return replace(
        estimates,
        upward_variance=np.where(unknown, np.inf, variance),
        slope=slope,
        variance=of_node,
    )


def _family_sum(tree: Hierarchy, level: slice, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the children of each node of a level, 0 where it has none."""
    kids = _children_of(tree, level)
    owner = tree.parent[kids] - level.start
    return sum_by(owner, values[kids], level.stop - level.start)


def find_peers(slices: Iterable[tuple[Hierarchy, Measurements]]) -> Peers:
    """Cells of some slices whose counts decided how finely they are divided, for `infer_counts`.

    P6. The mean variance around a count is of many slices, so it hardly depends on the noise of
    one: P4 of `settled_variance` then holds for cells of which each slice has few, such as the
    root. Sums over slices would add up their biases.
    """
    seen: dict[tuple[int, float], list[tuple[Floats, Floats]]] = {}
    for tree, measured in slices:
        _pool_upward(tree, measured, settled=True, seen=seen)
    found = {}
    for key, parts in seen.items():
        counts, variances = (np.concatenate(each) for each in zip(*parts, strict=True))
        if len(counts) >= _GROUP:
            found[key] = _mean_variances(counts, variances)
    return found


def _pool_upward(
    tree: Hierarchy,
    measured: Measurements,
    *,
    settled: bool,
    peers: Peers | None = None,
    seen: dict[tuple[int, float], list[tuple[Floats, Floats]]] | None = None,
) -> tuple[Floats, Floats]:
    """Estimate of each node from its subtree, and its variance, leaves first.

    seen: takes counts, and variances below, of the cells of each level and variance.
    """
    estimate, variance = measured.value.copy(), measured.variance.copy()
    for depth, level in reversed(list(enumerate(tree.levels))):
        inner = ~tree.is_leaf[level]
        if not inner.any():
            continue
        # Sums of the children and their variance, beside the own count of each inner node.
        below, below_variance = (_family_sum(tree, level, v)[inner] for v in (estimate, variance))
        count, own_variance = estimate[level][inner], measured.variance[level][inner]
        pooled_by = (
            settled_variance(own_variance, below_variance, count, below, depth, peers, seen)
            if settled
            else below_variance
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = 1 / (1 + pooled_by / own_variance)
            pooled = 1 / (1 / own_variance + 1 / below_variance)
        weight = np.where(np.isinf(own_variance), np.where(np.isinf(pooled_by), 0.0, 1.0), weight)
        estimate[level][inner] += weight * (below - count)
        variance[level][inner] = pooled
        moved = np.flatnonzero(pooled_by != below_variance)
        nodes = level.start + np.flatnonzero(inner)[moved]
        # With another weight than the best one, the variance of the mean is that of its parts.
        part, own_part = weight[moved] ** 2, (1 - weight[moved]) ** 2
        variance[nodes] = part * below_variance[moved] + own_part * own_variance[moved]
    return estimate, variance


def settled_variance(
    variance: Floats,
    below_variance: Floats,
    count: Floats,
    below: Floats,
    depth: int = 0,
    peers: Peers | None = None,
    seen: dict[tuple[int, float], list[tuple[Floats, Floats]]] | None = None,
) -> Floats:
    """Variances of the sums below cells that do not depend on the noise of the cells' counts.

    variance, below_variance: (n,) float64, of the noisy count of each cell of a level, infinite
    where it was not measured, and of the sum of its children; count, below: (n,) float64, counts
    and sums; returns (n,) float64, weights. The variance of each sum stays `below_variance`.

    P4. To first order there is no bias. If a noisy count decides how finely its cell is divided,
    one that is too high gets more cells below, so a sum with a larger variance, and itself a larger
    weight: estimates drift upward, and biases of many cells add up. Let n be the noisy count with
    variance v, s the sum below with variance V, and x = s + w (n - s) with w = V / (V + v). The
    error of x is not correlated with n - s. So a weight w(x) does not bias s + w(x) (n - s) to
    first order, while w(n) does, by about Cov(w, n). The variance at x, as if the final estimate
    had decided the division, is V f(x) / f(n), where f(n) is the mean variance among cells of the
    same level and epsilon with similar counts. So a cell keeps what else its variance depends on,
    such as roughness.

    P5. Where all these variances are equal, as in trees whose cells do not follow from counts, and
    in groups of a few cells, whose biases add up to little, nothing changes.
    """
    settled = below_variance.copy()
    usable = np.isfinite(variance) & np.isfinite(below_variance)
    usable &= (variance > 0) & (below_variance > 0)
    # Cells whose counts have equal variances are compared among themselves.
    values = variance[usable]
    for level_variance in values[distinct_values(values)[0]]:
        group = np.flatnonzero(usable & (variance == level_variance))
        spread, key = below_variance[group], (depth, float(level_variance))
        if seen is not None:
            seen.setdefault(key, []).append((count[group], spread))
        mean = None if peers is None else peers.get(key)
        if mean is None and len(group) >= _GROUP and spread.min() < spread.max():
            mean = _mean_variances(count[group], spread)
        if mean is not None:
            n, weight = count[group], spread / (spread + float(level_variance))
            estimate = below[group] + weight * (n - below[group])
            at_estimate, at_count = (np.interp(at, *mean) for at in (estimate, n))
            settled[group] = spread * at_estimate / at_count
    return settled


def _mean_variances(counts: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Counts in order, and the mean variance around each; at the ends, of the first or last."""
    order = np.argsort(counts, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(variances[order])])
    first = np.clip(np.arange(len(counts)) - POOLING_PEERS, 0, len(counts) - _GROUP)
    return counts[order], (sums[first + _GROUP] - sums[first]) / _GROUP


def _children_of(tree: Hierarchy, level: slice) -> slice:
    """Slice of all children of the nodes of a level."""
    first = tree.first_child[level]
    return slice(int(first[0]), int(first[-1] + tree.children[level][-1]))


def _family_total(tree: Hierarchy, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over each node's whole family, its own value included; the root's is its own."""
    total = values.copy()
    family = tree.parent[1:]
    total[1:] = sum_by(family, values[1:], len(tree))[family]
    return total


def project_non_negative(
    tree: Hierarchy,
    signed: NDArray[np.float64],
    slope: NDArray[np.float64],
    empty: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Project families onto counts not below 0 from the root: clipping would add up to a bias."""
    count = signed.copy()
    count[0] = max(count[0], 0.0)
    # Every cell may give and take a little, but for those without an occupied leaf.
    least = np.full(len(tree), LEAST_SLOPE)
    if empty is not None:
        occupied = tree.is_leaf & ~empty
        for level in reversed(tree.levels[1:]):
            occupied[tree.parent[level][occupied[level]]] = True
        least[~occupied] = 0.0
    slope = np.maximum(slope, least)
    # From the root down: each family gets the settled count of its parent.
    for level in tree.levels[:-1]:
        kids = _children_of(tree, level)
        owner = tree.parent[kids] - level.start
        count[kids] = project_families(signed[kids], slope[kids], owner, count[level])
    return count


def project_families(
    values: NDArray[np.float64],
    slopes: NDArray[np.float64],
    owner: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Project families onto non-negative numbers with fixed sums, by weights (Michelot)."""
    left = np.ones(len(values), bool)
    while True:
        # Who would fall below 0 stays there, and the others share what is missing, again.
        open_slopes = np.where(left, slopes, 0.0)
        # What each family lacks, (families,), is shared by the slopes of those that are left.
        missing = totals - sum_by(owner, np.where(left, values, 0.0), len(totals))
        room = sum_by(owner, open_slopes, len(totals))
        step = missing / np.where(room > 0, room, 1.0)
        moved = np.where(left, values + open_slopes * step[owner], 0.0)
        if (moved >= 0).all():
            return moved
        left &= moved >= 0


# Hexadecimal digits of a digest that fit the mantissa of a float.
_DIGITS = 13


def round_counts(tree: Hierarchy, count: Floats, uniform: float) -> Floats:
    """Round counts, (n,), not negative, to integers of which the children of a node sum to it.

    `uniform` is in [0, 1).

    P1. Each integer is the count rounded down or up; a count of 0 stays 0.

    P2. The children of a node sum to it exactly.

    P3. For `uniform` uniform in [0, 1), the mean of each integer is the count, to rounding.

    Let leaves lie on a line, depth first, each as long as its count, with a mark at each integer
    minus `uniform`. An integer is the number of marks on a leaf, so that of a node is the number on
    its leaves, which are neighbours. A part of length x has floor(x) or ceil(x) marks, x in the
    mean [1]_.
    """
    # First leaf of each node, depth first, and the one after its last.
    size = tree.is_leaf.astype(np.int64)
    for level in reversed(tree.levels[1:]):
        # Parents repeat, so they are added one by one.
        np.add.at(size, tree.parent[level], size[level])
    start = np.zeros(len(tree), np.int64)
    for level in tree.levels[1:]:
        # Leaves of the level up to each node, less those up to its first sibling.
        before = np.cumsum(size[level]) - size[level]
        parent = tree.parent[level]
        first = tree.first_child[parent] - level.start
        start[level] = start[parent] + before - before[first]
    start, stop = start, start + size
    leaves = np.flatnonzero(tree.is_leaf)
    # Counts of leaves in the order of that line, in which every subtree is a range.
    length = np.zeros(len(leaves))
    length[start[leaves]] = count[leaves]
    # One line of leaves, cut at whole numbers: sums of neighbours are off by less than 1.
    marks = np.floor(np.concatenate([[0.0], np.cumsum(length)]) + uniform)
    rounded: Floats = marks[stop] - marks[start]
    return rounded


def rounding_variance(count: Floats) -> Floats:
    """Variance of each integer that the rounding of a count causes: that of one draw."""
    part = count - np.floor(count)
    variance: Floats = part * (1 - part)
    return variance


def uniform_of_digest(digest: str) -> float:
    """Number in [0, 1) from a digest in hexadecimal."""
    return int(digest[:_DIGITS], 16) / float(16**_DIGITS)


_ROUNDS = 2


def measure_record(record: ReleaseRecord) -> Measurements:
    """Measurements of the nodes of a record."""
    tree, local = record.tree, record.local
    if tree.sums is not None:
        # The sums of values are not rounded, as the counts that follow from them are.
        part, values = record.value_part(0, 0), len(record.values)
        each = measure_counts(part.tree, part.scale)
        count = tree.sums.sum(axis=(1, 2)) / (values * part.scale)
        return Measurements(value=count, variance=each.variance * (2 / values))
    if local is None:
        return measure_counts(tree, record.scale)
    # Variances of support counts depend on true shares, and by a node's own estimate sums would
    # drift (`pytest tests/apps/local/test_rounds.py -k drift`). So they are computed at shares that
    # are pooled over the whole tree, twice: by the noise alone, then by those at the first shares.
    measured = _measure_at(tree, local, np.zeros(len(tree)))
    for _ in range(_ROUNDS):
        # Variances follow from the shares, and these from estimates by the variances before.
        pooled = infer_counts(tree, measured=measured, projected=False).signed
        measured = _measure_at(tree, local, np.maximum(pooled, 0.0) / local.reports)
    return measured


def share_estimate(support: Floats, level: LevelReports) -> Floats:
    """Unbiased estimates of shares of the devices, from how many reports support each answer."""
    p, q = level.p, level.q
    estimate: Floats = (support / level.reports - float(q)) / float(p - q)
    return estimate


def share_variance(share: Floats, level: LevelReports, reports: int) -> Floats:
    """Variances of estimated shares of all devices; the level has a part of all `reports`.

    P1. It is ``q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q) + f (1 - n / N)`` over n, at shares
    cut off at 0 and 1. Of n reports of the level, f n have the answer. The support is a sum of f n
    Bernoulli variables of p and (1 - f) n of q: over n (p - q), it has the first two terms. The n
    devices are a sample of N, so their share differs from that of all by the third, with the number
    in the cell as a Poisson variable; that the total is fixed enters by the tree.
    """
    p, q = level.p, level.q
    noise = float(q * (1 - q) / (p - q) ** 2)
    slope = float((1 - p - q) / (p - q)) + float(1 - Fraction(level.reports, reports))
    variance: Floats = (noise + np.clip(share, 0.0, 1.0) * slope) / level.reports
    return variance


def _measure_at(tree: Hierarchy, local: LocalReports, shares: Floats) -> Measurements:
    """Measure support counts, with variances at these shares; the root is all reports inside."""
    total = local.reports
    value, variance = np.zeros(len(tree)), np.full(len(tree), np.inf)
    value[0], variance[0] = _measure_inside(local)
    # Levels without reports stay unmeasured, of infinite variance.
    for level in local.levels:
        nodes = tree.levels[level.level]
        if level.reports:
            value[nodes] = total * share_estimate(tree.count[nodes].astype(np.float64), level)
            variance[nodes] = total**2 * share_variance(shares[nodes], level, total)
    return Measurements(value=value, variance=variance)


def _measure_inside(local: LocalReports) -> tuple[float, float]:
    """Devices inside the domain and their variance, pooled over levels at one common share."""
    total = local.reports
    levels = [level for level in local.levels if level.reports]
    shares = np.array([float(share_estimate(np.array(float(v.outside)), v)) for v in levels])

    def variances(share: float) -> Floats:
        at = np.array(share)
        return np.array([float(share_variance(at, level, total)) for level in levels])

    # Weights by a first estimate, not by what each level found: that would favour low draws.
    first = _weighted(shares, variances(0.0))[0]
    share, variance = _weighted(shares, variances(first))
    return total * (1 - share), total**2 * variance


def _weighted(values: Floats, variances: Floats) -> tuple[float, float]:
    """Mean by inverse variances, and its variance."""
    precision = 1 / variances
    return float((values * precision).sum() / precision.sum()), float(1 / precision.sum())
