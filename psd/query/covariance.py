"""Covariance of the answers to several regions, by the noise and by non-uniformity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import nonuniformity_variance, shift_variance
from psd.query.lines import divides_records
from psd.query.region_overlaps import Regions, cut_leaves
from psd.query.traversal import Traversal, TraversalLevel

if TYPE_CHECKING:
    from psd.estimation.fit import Fit

__all__ = ["nonuniformity_covariance", "part_variance", "perturbation_covariance", "records_moved"]


# Rows of a matrix, and pairs of regions in one leaf, worked on together.
_ROWS = 256
_PAIRS = 1 << 20

# Relative to the diagonal; what is less negative than this is rounding.
_ROUNDING = 1e-9


def perturbation_covariance(fit: Fit, regions: Regions) -> Floats:
    """Compute the covariance of the answers by the noise.

    Returns (m, m) float64, records squared; exact for signed least-squares answers, see
    `psd.estimation.least_squares.published_covariance` for others.

    P1. It is Z Z' for a sparse matrix Z with a row for each answer and a column for each cell. The
    errors of the estimates are sums of independent innovations, one for each cell [1]_: the root's
    own error, and for each child what its parent's estimate does not explain. An answer that takes
    a_c of each child of an opened cell, a of it on average, takes s_c (a_c - a) of the innovation
    of child c, where s_c^2 is its upward variance; nothing else. These coefficients are the rows of
    Z.

    References
    ----------
    .. [1] Chou, Willsky, Benveniste. "Multiscale Recursive Estimation, Data Fusion, and
       Regularization." IEEE Transactions on Automatic Control 39(3), 1994.
    """
    rows = [
        _innovation_coefficients(traversal, fit.noise_covariance)
        for _, traversal in regions.traversals()
    ]
    coefficients = sparse.vstack(rows or [sparse.csr_array((0, len(fit.tree)))], format="csr")
    across = coefficients.T.tocsr()
    covariance = np.empty((len(regions), len(regions)))
    for start in range(0, len(regions), _ROWS):
        batch = slice(start, start + _ROWS)
        covariance[batch] = (coefficients[batch] @ across).toarray()
    return covariance


def _innovation_coefficients(traversal: Traversal, estimates: Estimates) -> sparse.csr_array:
    """Coefficients of the cells' innovations in each answer, shape (queries, nodes).

    The recursion is that of `psd.query.traversal.perturbation_variance`.
    """
    slope = np.zeros(0)
    below: TraversalLevel | None = None
    query, node, value = [], [], []
    for level in reversed(traversal.levels):
        answer_slope = np.where(level.opened, 0.0, level.fraction)
        if below is not None:
            mean = sum_by(below.parent, estimates.slope[below.node] * slope, len(level.node))
            variance = estimates.upward_variance[below.node]
            deviation = np.sqrt(np.where(np.isinf(variance), 0.0, variance))
            query.append(below.query)
            node.append(below.node)
            value.append(deviation * (slope - mean[below.parent]))
            answer_slope += mean
        slope, below = answer_slope, level
    if below is not None:
        query.append(below.query)
        node.append(below.node)
        # The innovation of the root is its own error.
        value.append(slope * np.sqrt(estimates.variance[0]))
    triples = (np.concatenate(value), (np.concatenate(query), np.concatenate(node)))
    coefficients = sparse.csr_array(triples, shape=(traversal.queries, len(estimates.slope)))
    coefficients.eliminate_zeros()
    return coefficients


def part_variance(fit: Fit, node: Integers, part: Floats) -> Floats:
    """Compute the variance of the points in parts of leaves.

    node: (n,) int64, leaves; part: (2, n) float64, shares of their points and of their area, of
    which those of the points alone matter; returns (n,) float64, records squared.
    """
    count, uneven = fit.estimates.count[node], fit.dispersion
    return nonuniformity_variance(
        count, part[0], part[1], uneven.overdispersion[node], uneven.cluster_size
    )


def nonuniformity_covariance(fit: Fit, regions: Regions) -> Floats:
    """Compute the covariance of the answers by leaves that two regions both cut.

    Returns (m, m) float64, records squared.

    P2. By polarisation, so that one model of the variance V of a part of a leaf says all: cov(A, B)
    = (V(A or B) + V(A and B) - V(A less B) - V(B less A)) / 2. Where V is n (1 + phi n) f (1 - f)
    this is n (1 + phi n) (f_AB - f_A f_B), and parts that make up a leaf cancel.

    What the neighbours of leaves say of them is off in all regions alike; see
    `psd.estimation.nonuniformity.shift_variance`. Records along a line that two boxes share are
    missing in one and too many in the other; see `psd.query.line_matrix`. A V that is no variance
    of a measure is made positive semi-definite.
    """
    query, node, part = cut_leaves(regions.traversals())
    covariance = np.zeros((len(regions), len(regions)))
    np.add.at(np.einsum("ii->i", covariance), query, part_variance(fit, node, part))
    for first, second in _pairs_in_leaves(node):
        leaf, a, b = node[first], query[first], query[second]
        parts = part[:, first], part[:, second]
        both = np.clip(regions.common_parts(leaf, a, b), 0.0, np.minimum(*parts))
        shared = _part_covariance(fit, leaf, *parts, both)
        np.add.at(covariance, (a, b), shared)
        np.add.at(covariance, (b, a), shared)
    moved = np.bincount(query, records_moved(fit, node, part), len(regions))
    common = float(shift_variance(np.ones(1))[0])
    result = _nearest_covariance(covariance) + common * np.outer(moved, moved)
    divided = divides_records(*part)
    lines = regions.lines(query[divided], node[divided])
    if lines is not None:
        result += (lines @ lines.T).toarray()
    return result


def records_moved(fit: Fit, node: Integers, part: Floats) -> Floats:
    """Count the records that the density adds to parts of leaves, compared with a uniform one.

    node: (n,) int64, leaves; part: (2, n) float64, shares of their points and of their area;
    returns (n,) float64, times the relative error of that density,
    `psd.estimation.fit.Fit.shift_share`.
    """
    if not fit.shift_share:
        return np.zeros(len(node))
    count = np.maximum(fit.estimates.count[node], 0.0)
    moved: Floats = fit.shift_share * count * (part[0] - part[1])
    return moved


def _part_covariance(
    fit: Fit, node: Integers, first: Floats, second: Floats, both: Floats
) -> Floats:
    """Covariance of the points in two parts of each leaf, from variances of parts."""
    union = np.minimum(first + second - both, 1.0)
    together = part_variance(fit, node, union) + part_variance(fit, node, both)
    apart = part_variance(fit, node, first - both)
    apart = apart + part_variance(fit, node, second - both)
    covariance: Floats = (together - apart) / 2
    return covariance


def _pairs_in_leaves(node: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Indices of all pairs of entries of one leaf, the earlier first, a batch at a time."""
    index = np.arange(len(node))
    later = np.searchsorted(node, node, side="right") - index - 1
    turn = np.cumsum(later) // _PAIRS
    for batch in np.split(index, np.flatnonzero(np.diff(turn)) + 1):
        first = np.repeat(batch, later[batch])
        if len(first):
            yield first, ranges(batch + 1, later[batch])


def _nearest_covariance(covariance: Floats) -> Floats:
    """The same matrix if it is positive semi-definite; else the nearest, its diagonal kept."""
    diagonal = np.diagonal(covariance).copy()
    slack = _ROUNDING * diagonal.max(initial=0.0)
    if slack == 0:
        return covariance
    try:
        # It succeeds of positive definite matrices alone, up to rounding.
        linalg.cholesky(covariance + slack * np.eye(len(covariance)), check_finite=False)
    except linalg.LinAlgError:
        # Negative eigenvalues become 0, which adds to the diagonal; it is scaled back.
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        fixed = np.diagonal(covariance)
        scale = np.sqrt(diagonal / np.where(fixed > 0, fixed, 1.0))
        covariance = covariance * scale * scale[:, None]
    return covariance
