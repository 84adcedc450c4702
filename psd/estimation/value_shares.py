"""Estimates of the weights of values, given the records: how a value differs from place to place.

A value is two counts of weights, A and B, that sum to the records N, see `psd.privacy.values`. The
share p = A / N of a small cell is lost in the noise, so it is moved towards that of its family: a
posterior mean under a normal prior whose spread is learnt from all cells of the level [1]_.

A cell of the expected share q has the excess E = A - q N. Its estimate (1 - q) A - q B does not
depend on the noise of N. The prior: E is m N + d, with m of the family, about which nothing is
known, and d of the variance q (1 - q) (w^2 N + b^2 N^2). No number in [0, 1] with the mean q has a
variance above q (1 - q): w^2 is the part of it that records of one place have, b^2 that of places
of one family. The excesses of a family sum to 0.

.. [1] Fay, Herriot. "Estimates of Income for Small Places." Journal of the American Statistical
   Association 74(366), 1979.
.. [2] Gelman. "Prior Distributions for Variance Parameters in Hierarchical Models." Bayesian
   Analysis 1(3), 2006.
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.least_squares import Estimates, project_families
from psd.space.box_tree import Hierarchy

LEAST_RECORDS = 2.0**-60
"""Records of an empty cell, so that it has the share of its family; nothing beside any record."""

# Deviations w and b that are tried, and the part of a prior that each stands for: uniform, and one
# that falls to 0 at 1.
# For w the prior falls to 0 at 1, which only values at both bounds reach. For b it is uniform from
# 0 to 1: it leaves a spread that the noise hides neither 0 nor large [2]_.
_TRIED = np.append(0.0, np.geomspace(1e-3, 1.0, 16))
_BETWEEN_TRIED = np.concatenate([[0.0], (_TRIED[1:] + _TRIED[:-1]) / 2, [1.0]])
_UNIFORM = np.diff(_BETWEEN_TRIED)
_FALLING = np.diff(1 - (1 - _BETWEEN_TRIED) ** 2)

# All pairs of w and b: their squares, and the logarithms of the prior.
_WITHIN, _BETWEEN = (each.ravel() for each in np.meshgrid(_TRIED**2, _TRIED**2, indexing="ij"))
_PRIOR = np.log(np.outer(_FALLING, _UNIFORM).ravel())

# Prior of b on a level, for each b of the level above: uniform up to it.
# Inside a leaf nothing is seen: w has the posterior of all levels, and b is uniform up to that of
# the level above, since places in a part differ no more than those of the whole. By the prior of
# estimates, unevenness of leaves that the noise hides was predicted 5 times too large.
_BELOW = np.tril(np.broadcast_to(_UNIFORM, (len(_TRIED), len(_TRIED))))
_BELOW = _BELOW / _BELOW.sum(axis=1, keepdims=True)

# Cells of a level from which w and b are learnt, and cells that are computed together.
_LEARNT_FROM = _TOGETHER = 2**13

# Posterior probability, beside the largest one, below which w and b are left out.
_LIKELY = 1e-4

_TINY = 1e-300

# Squared width of a family, in lattice lines, that has none.
_FLAT = 1e-6


def share_weights(
    tree: Hierarchy,
    records: Estimates,
    upper: Floats,
    lower: Floats,
    part: float,
    centre: Floats,
) -> tuple[Estimates, Estimates, Floats]:
    """Estimate the weights towards both bounds in all nodes, given the records in them.

    records: with the variances of what is published; upper, lower: (n,) float64, each with `part`
    of these variances; centre: (2, n) float64, x and y of cells. The results have the covariance of
    the weights given the records, for `psd.query.traversal`; last, the overdispersion of the upper
    ones.

    P1. Neither is negative, they sum to the records, and the children of a node sum to it, but for
    `LEAST_RECORDS`.

    P2. A node whose noise is small beside the spread keeps its share; nodes of a family have that
    of their parent where noise is all that is seen.
    """
    count = np.maximum(records.count, 0.0)
    high, slope, spread, variance = (np.zeros(len(tree)) for _ in range(4))
    a, b = max(float(upper[0]), 0.0), max(float(lower[0]), 0.0)
    share = np.full(len(tree), a / (a + b) if a + b > 0 else 0.5)
    high[0], slope[0] = share[0] * count[0], 1.0
    signed = share * records.signed
    spread[0] = variance[0] = _square(share[0]) * part * records.variance[0]
    inside = np.exp(_PRIOR)
    within, between = np.full((2, len(tree)), [[inside @ _WITHIN], [inside @ _BETWEEN]])
    # Of the part of the trend, whose prior has the mean 0 and the variance 1.
    rise, seen, known = np.zeros((2, len(tree))), 0.0, 1.0
    for level in tree.levels[1:]:
        parent = tree.parent[level]
        owner, n, of_parent = parent - parent[0], count[level], share[parent]

        # 1. The share that a cell is expected to have by the trend of the level above, whose noise
        #    is not that of the excesses. (The density of records has this noise, and made things
        #    worse in districts.)
        weight = np.maximum(n, LEAST_RECORDS)
        place = [_centred(owner, weight, each[level]) for each in centre]
        trend = place[0] * rise[0, parent] + place[1] * rise[1, parent]
        excess = (1 - of_parent) * upper[level] - of_parent * lower[level]
        noise = np.maximum(_square(of_parent) * part * records.variance[level], _TINY)
        total = within[parent] * n + between[parent] * n**2
        total = noise + of_parent * (1 - of_parent) * total
        # Ridge regression on the excesses of all cells down to the level. Without a part of the
        # trend, errors of neighbours have one sign where values have a trend, and add up in large
        # areas.
        seen += float((trend * n * excess / total).sum())
        known += float(((trend * n) ** 2 / total).sum())
        q = np.clip(of_parent + seen / known * trend, 0.0, 1.0)

        # 2. What is known of the excess of each cell, and of m of each family.
        excess = (1 - q) * upper[level] - q * lower[level]
        noise = np.maximum(_square(q) * part * records.variance[level], _TINY)
        likelihood = _likelihood(excess, noise, n, q * (1 - q), owner)
        kept, doubt = _shrinkage(excess, noise, n, q * (1 - q), _PRIOR + likelihood)
        inside *= np.exp(likelihood - likelihood[inside > 0].max())
        inside = ((inside / inside.sum()).reshape(_BELOW.shape) @ _BELOW).ravel()
        within[level], between[level] = inside @ _WITHIN, inside @ _BETWEEN
        left, free = kept * noise, (1 - kept) * n
        certain = _sums(owner, free * n / noise)
        unknown = np.where(certain > 0, 1 / np.maximum(certain, _TINY), 0.0)  # variance of m
        moved = kept * excess + free * unknown * _sums(owner, free * excess / noise)

        # 3. What the excesses of a family are over 0 is taken from them, by how they vary with it.
        #    No weight is negative: one that would be is 0, and its siblings give for it.
        whole = _sums(owner, free)
        k = left + free * whole * unknown
        total = _sums(owner, k)
        plain = np.where(count[parent] > 0, n / np.maximum(count[parent], _TINY), 0.0)
        plain = np.where(count[parent] > 0, plain, records.slope[level])
        k = np.where(total > 0, k / np.maximum(total, _TINY), plain)
        high[level] = np.clip(q * n + moved - k * _sums(owner, moved), 0.0, n)
        is_over = _sums(owner, high[level]) > high[parent]
        target = np.zeros(int(owner[-1]) + 1)
        target[owner] = np.where(is_over, high[parent], count[parent] - high[parent])
        fitted = np.where(is_over, high[level], n - high[level])
        fitted = project_families(fitted, np.maximum(k, _TINY), owner, target)
        high[level] = np.where(is_over, fitted, n - fitted)
        share[level] = np.where(n > 0, high[level] / np.maximum(n, LEAST_RECORDS), q)
        share[level] = p = np.clip(share[level], 0.0, 1.0)

        # 4. Variances, with the noise that a share of p has, and what m adds although the sum of
        #    its family is known.
        own = left + free**2 * unknown - k**2 * total
        alone = left * (1 - 2 * k) + k**2 * _sums(owner, left)
        left = (left + doubt + np.maximum(own - alone, 0.0)) * _square(p) / _square(q)
        slope[level], spread[level] = k, left
        variance[level] = left * (1 - 2 * k) + k**2 * (_sums(owner, left) + variance[parent])
        signed[level] = of_parent * (records.signed[level] - n) + high[level]
        signed[level] += k * (signed[parent] - of_parent * records.signed[parent])

        # 5. How the shares of a family rise along each axis; as above where it has no width.
        for axis, along in enumerate(place):
            width = _sums(owner, weight * along**2)
            has_width = width > _FLAT * _sums(owner, weight)
            slant = _sums(owner, weight * along * p) / np.where(has_width, width, 1.0)
            rise[axis, level] = np.where(has_width, slant, rise[axis, parent])
    high += share * LEAST_RECORDS
    low = np.maximum(count - high, 0.0) + (1 - share) * LEAST_RECORDS
    first, second = (
        Estimates(
            signed=each_signed,
            count=each,
            upward=each,
            upward_variance=spread,
            slope=slope,
            variance=variance,
        )
        for each, each_signed in ((high, signed), (low, records.signed - signed))
    )
    # It gives the variance of A - p N in a part f of a cell: p (1 - p) f (1 - f) (w^2 N + b^2 N^2 /
    # 2), of which the second term is exact in halves and else too large.
    uneven = (1 - share) * (within + between * count / 2) / np.maximum(high, LEAST_RECORDS**2)
    return first, second, uneven


def _square(share: Floats) -> Floats:
    """Variance of (1 - p) A - p B, over that of A and of B."""
    return (1 - share) ** 2 + share**2


def _sums(owner: Integers, values: Floats) -> Floats:
    """Sum over the family of each cell."""
    return sum_by(owner, values, int(owner[-1]) + 1)[owner]


def _centred(owner: Integers, weight: Floats, values: Floats) -> Floats:
    """Values less their weighted mean in the family."""
    return values - _sums(owner, weight * values) / _sums(owner, weight)


def _likelihood(
    excess: Floats, noise: Floats, records: Floats, largest: Floats, owner: Integers
) -> Floats:
    """Log-likelihood of all pairs of w and b by excesses, (n,), m of families integrated out."""
    found = np.zeros(len(_WITHIN))
    cells = np.flatnonzero(records * largest > 0)
    if len(cells):
        families = np.split(cells, np.flatnonzero(np.diff(owner[cells])) + 1)
        # Many families say no more than some of them, evenly taken.
        families = families[:: 1 + len(cells) // _LEARNT_FROM]
        # Families one after another, each from its start, for sums by `reduceat`.
        starts = np.cumsum([0, *map(len, families[:-1])])
        cells = np.concatenate(families)
        e, n, v, unit = (each[cells] for each in (excess, records, noise, largest))
        for tried, (within, between) in enumerate(zip(_WITHIN, _BETWEEN, strict=True)):
            # With m integrated out, a family is normal around its weighted mean of e / n.
            total = v + unit * (within * n + between * n**2)
            squares = np.add.reduceat(n**2 / total, starts)
            products = np.add.reduceat(n * e / total, starts)
            misfit = np.log(total).sum() + (e**2 / total).sum()
            found[tried] = -(misfit + (np.log(squares) - products**2 / squares).sum()) / 2
    return found


def _shrinkage(
    excess: Floats, noise: Floats, records: Floats, largest: Floats, posterior: Floats
) -> tuple[Floats, Floats]:
    """Part of each excess that is kept, and its variance; posterior: (pairs,), logarithm."""
    # Pairs that matter, with weights of sum 1.
    weight = np.exp(posterior - posterior.max())
    likely = np.flatnonzero(weight > _LIKELY)
    weight = weight[likely] / weight[likely].sum()
    within, between = _WITHIN[likely, None], _BETWEEN[likely, None]
    kept, doubt = np.zeros((2, len(excess)))
    # Pairs times cells do not fit in memory at once.
    for start in range(0, len(excess), _TOGETHER):
        some = slice(start, start + _TOGETHER)
        n = records[some]
        spread = largest[some] * (within * n + between * n**2)
        part = spread / (spread + noise[some])
        kept[some] = weight @ part
        # The kept part is itself uncertain: its variance over the pairs, by the squared excess.
        doubt[some] = (weight @ (part - kept[some]) ** 2) * excess[some] ** 2
    return kept, doubt
