"""Estimates under a prior for counts: never negative, and often zero. Post-processing.

Likelihoods of cells, on short grids of possible counts, are joined under a prior on how a count is
divided; medians are handed down. Least squares would add up the noise of a hundred empty cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges
from psd.estimation.constants import (
    LARGE_REACH,
    ONE_SIDED,
    SCALE_FREE,
    SHARES_TRIED,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.likelihoods import (
    TINY,
    Halves,
    LevelLikelihoods,
    Likelihood,
    NoisyCounts,
    Shared,
    batches,
    join_halves,
    scale_free,
    subtree_likelihoods,
)
from psd.space.box_tree import Hierarchy

# Nodes of a tree whose likelihoods are all kept, at most 260 MB; those of a larger one are computed
# twice.
_MOST_KEPT = 2**20

PART_NODES = 2**14
"""Nodes of neighbouring subtrees that are computed together where the counts above are known."""

# Rate of a count that is known: the next point of its likelihood has practically no probability.
_CERTAIN = 1e12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Linear:
    """Least-squares estimates of some nodes from their own subtrees, with their variances."""

    mean: Floats
    variance: Floats

    def __getitem__(self, which: Integers) -> _Linear:
        return _Linear(mean=self.mean[which], variance=self.variance[which])

    @classmethod
    def total(cls, parts: list[_Linear]) -> _Linear:
        """Estimates of the sums of some parts."""
        mean, variance = parts[0].mean, parts[0].variance
        for part in parts[1:]:
            mean, variance = mean + part.mean, variance + part.variance
        return cls(mean=mean, variance=variance)

    def hold(self, part: Floats, other: _Linear, total: Floats, reach: float) -> Floats:
        """Move the first of two parts of a total to within a number of standard deviations."""
        both = np.maximum(self.variance + other.variance, TINY)
        with np.errstate(invalid="ignore"):  # parts that were not measured have no estimate
            gain = self.variance / both
            middle = self.mean + gain * (total - self.mean - other.mean)
            deviation = np.sqrt(gain * other.variance)
            both_large = np.minimum(middle, total - middle) > SCALE_FREE * deviation
            away = np.where(both_large, np.minimum(reach, LARGE_REACH), reach) * deviation
        near = np.clip(np.clip(part, middle - away, middle + away), 0.0, total)
        return np.where(np.isfinite(middle) & np.isfinite(away), near, part)


def posterior_counts(
    tree: Hierarchy,
    estimates: Estimates,
    scale: int = 1,
    empty: NDArray[np.bool_] | None = None,
    *,
    reach: float | None = None,
    opened: Integers | None = None,
    top: Floats | None = None,
) -> Floats:
    """Posterior medians of the counts, (n,), records, from the root down, which keeps its estimate.

    - `scale`, `empty`: as in `psd.estimation.least_squares.infer_counts`
    - `reach`: largest distance of a median from the division of the same count by least squares, in
      standard deviations of that division
    - `opened`: (m,) int64, nodes whose counts are divided, with their parents; by default all;
      other counts are NaN
    - `top`: (t,) float64, of an earlier call for the nodes down to `halfway_level` of a tree of
      more than `PART_NODES`; then only subtrees below with opened nodes are looked at

    P1. Not negative; the children of a node sum to it, to rounding.

    P2. A function of the release alone.

    A Polya tree [1]_ whose divisions in two have all on one side with probability 0.4 and else a
    uniform share, repeatedly for families of three and four. Likelihoods go up by convolution
    (belief propagation) and take in the noise of each node's own count; medians of divisions, given
    the count, go down.

    .. [1] Lavine. "Some Aspects of Polya Tree Distributions for Statistical Modelling." The Annals
       of Statistics 20(3), 1992.
    """
    noisy = _noisy_counts(tree, scale, empty)
    count = np.zeros(len(tree))
    # In a zone only the children of opened nodes get a count, and others stay NaN.
    if opened is not None:
        count.fill(np.nan)
        first, children = tree.first_child[opened], tree.children[opened]
        count[first.repeat(children) + ranges(0 * opened, children)] = 0.0
    count[0] = max(float(estimates.signed[0]), 0.0)
    # Where many cells hold one or two records, every median is a little too small, and these errors
    # add up. `reach` bounds them in every division by the noise of the one by least squares, which
    # has no such bias. Where neither part can be empty, the prior has nothing to tell and what
    # likelihoods have beyond least squares is the sum of such errors: there the bound is narrower.
    linear = _Linear(mean=estimates.upward, variance=estimates.upward_variance)
    # Likelihoods of a whole large tree do not fit in memory: a top and parts below it.
    depth, parts = subtree_parts(tree, _MOST_KEPT if top is None else PART_NODES)
    if top is not None:
        count[: len(top)] = top
    elif depth:
        # In the top the roots of the parts stand for all that is below them.
        above = tree.levels[: depth + 1]
        roots = [subtree_likelihoods(tree, estimates, noisy, part)[0] for part in parts]
        last = LevelLikelihoods(
            nodes=Shared.concatenate([root.nodes for root in roots]), families=()
        )
        joined = subtree_likelihoods(tree, estimates, noisy, above, last)
        _hand_down(joined, above, count, linear, reach)
    for part in parts:
        # A part of which nothing is asked is left out.
        if len(part) > 1 and np.isnan(count[part[1]]).all():
            continue
        of_part = subtree_likelihoods(tree, estimates, noisy, part)
        _hand_down(of_part, part, count, linear, reach)
    return count if empty is None else np.where(empty, 0.0, count)


def posterior_counts_together(
    trees: Sequence[Hierarchy],
    estimates: Sequence[Estimates],
    scale: int = 1,
    empties: Sequence[NDArray[np.bool_] | None] = (),
    *,
    reach: float | None = None,
) -> list[Floats]:
    """Compute the posterior medians of several small trees of one noise, below a common root.

    P1. Those of `posterior_counts`, to the bit: no likelihood depends on those computed with it.
    """
    forest, place = _forest(trees)

    # Numbers of all trees, by their nodes' places in the forest; 0 for its root.
    def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        values = np.concatenate(parts)
        spread = np.zeros(len(forest), values.dtype)
        spread[place] = values
        return spread

    # Roots of the trees are the first level of the forest, whose own root hands nothing down.
    nowhere = [np.zeros(len(tree), bool) for tree in trees]
    empty = joined(
        [n if e is None else e for n, e in zip(nowhere, empties or nowhere, strict=True)]
    )
    noisy = _noisy_counts(forest, scale, empty)
    of_forest = Estimates(
        **{
            field.name: joined([getattr(each, field.name) for each in estimates])
            for field in fields(Estimates)
        }
    )
    count, levels = np.zeros(len(forest)), forest.levels[1:]
    count[levels[0]] = np.maximum(of_forest.signed[levels[0]], 0.0)
    linear = _Linear(mean=of_forest.upward, variance=of_forest.upward_variance)
    _hand_down(subtree_likelihoods(forest, of_forest, noisy, levels), levels, count, linear, reach)
    count[empty] = 0.0
    return np.split(count[place], np.cumsum([len(tree) for tree in trees])[:-1])


def _noisy_counts(tree: Hierarchy, scale: int, empty: NDArray[np.bool_] | None) -> NoisyCounts:
    """Noisy counts of a tree, those of empty leaves known."""
    rate = tree.noise_rate(scale)
    if empty is not None:
        rate[empty] = _CERTAIN
    return NoisyCounts(count=tree.count / scale, rate=rate, noise=tree.noise)


def _forest(trees: Sequence[Hierarchy]) -> tuple[Hierarchy, Integers]:
    """Trees of one noise below a common root, and the node of each of their nodes in turn."""
    # Nodes of all trees level by level, as those of one tree are.
    level = np.concatenate([tree.level for tree in trees])
    order = np.argsort(level, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    starts = np.cumsum([0, *(len(tree) for tree in trees[:-1])])
    # Parents by their place; roots of trees are children of the common root.
    parent = np.concatenate(
        [
            np.append(0, place[start + tree.parent[1:]])
            for tree, start in zip(trees, starts, strict=True)
        ]
    )
    count, loss = (
        np.concatenate([getattr(tree, name) for tree in trees])[order] for name in ("count", "loss")
    )
    forest = Hierarchy(
        parent=np.append(-1, parent[order]),
        level=np.append(0, level[order] + 1),
        count=np.append(0, count),
        loss=np.append(0, loss),
        noise=trees[0].noise,
    )
    return forest, place


def _hand_down(
    likelihoods: list[LevelLikelihoods],
    levels: Sequence[slice],
    count: Floats,
    linear: _Linear,
    reach: float | None,
) -> None:
    """Divide the counts of the first of some levels among the nodes of the next ones."""
    for number, next_level in enumerate(levels[1:]):
        below = likelihoods[number + 1].nodes
        for family in likelihoods[number].families:
            # A count of 0 is divided into zeros, which are there already.
            is_opened = count[family.kids[0]] == 0
            used = np.flatnonzero(is_opened & (count[family.nodes] > 0))
            for batch in batches(len(used)):
                which, halves = used[batch], None
                kids = [kid[which] for kid in family.kids]
                if family.halves is not None:
                    halves = family.halves[0][which], family.halves[1][which]
                divided = _divide_total(
                    count[family.nodes[which]],
                    [below[kid - next_level.start] for kid in kids],
                    [linear[kid] for kid in kids],
                    reach,
                    halves,
                )
                for kid, part in zip(kids, divided, strict=True):
                    count[kid] = part


def _divide_total(
    total: Floats,
    parts: list[Shared],
    linear: list[_Linear],
    reach: float | None,
    halves: Halves | None = None,
) -> list[Floats]:
    """Counts of siblings that sum to a total: medians of divisions in two; halves are of parts."""
    if len(parts) == 1:
        return [total]
    half = len(parts) // 2
    a, b = join_halves(parts) if halves is None else halves
    first = _median_part(total, a.rows(), b.rows())
    if reach is not None:
        first_linear, other_linear = _Linear.total(linear[:half]), _Linear.total(linear[half:])
        first = first_linear.hold(first, other_linear, total, reach)
    return [
        *_divide_total(first, parts[:half], linear[:half], reach),
        *_divide_total(total - first, parts[half:], linear[half:], reach),
    ]


def _median_part(total: Floats, a: Likelihood, b: Likelihood) -> Floats:
    """Posterior median of the first of two parts of a total."""
    # The range of the first part that both likelihoods allow.
    reach = SCALE_FREE + 1
    low = np.maximum(a.mean - reach * a.deviation, total - (b.mean + reach * b.deviation))
    high = np.minimum(a.mean + reach * a.deviation, total - (b.mean - reach * b.deviation))
    low, high = np.clip(low, 0.0, total), np.clip(high, 0.0, total)
    low, high = np.minimum(low, high), np.maximum(low, high)
    shares = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, SHARES_TRIED)
    # Weights of the shares between are densities times the step; both ends weigh by themselves.
    weight = np.empty((len(total), SHARES_TRIED + 2))
    scale = np.maximum(np.minimum(total, scale_free(a, b)), TINY)
    weight[:, 1:-1] = a.at(shares) * b.at(total[:, None] - shares)
    weight[:, 1:-1] *= ((high - low) / (SHARES_TRIED - 1) / scale * (1 - ONE_SIDED))[:, None]
    ends = np.stack([np.zeros(len(total)), total], axis=1)
    weight[:, [0, -1]] = ONE_SIDED / 2 * a.at(ends) * b.at(ends[:, ::-1])
    tried = np.concatenate([ends[:, :1], shares, ends[:, 1:]], axis=1)
    # Far from anything plausible, the excess goes where least is known, as in least squares.
    excess = total - a.mean - b.mean
    gain = a.deviation**2 / (a.deviation**2 + b.deviation**2)
    fallback = np.clip(a.mean + gain * excess, 0.0, total)
    return np.where(weight.sum(axis=1) > 0, _median(tried, weight), fallback)


def _median(values: Floats, weights: Floats) -> Floats:
    """Weighted median of ascending values, between two neighbours by a straight line."""
    rows = np.arange(len(values))
    sums = np.cumsum(weights, axis=1)
    half = sums[:, -1] / 2
    # The value at which the running weight passes half, and how far into its interval.
    index = np.minimum((sums < half[:, None]).sum(axis=1), values.shape[1] - 1)
    before = np.where(index > 0, sums[rows, index - 1], 0.0)
    part = (half - before) / np.maximum(sums[rows, index] - before, TINY)
    # The first and the last value are atoms, not points of a line.
    inside = (index > 1) & (index < values.shape[1] - 1)
    left = values[rows, np.maximum(index - 1, 0)]
    line = left + part * (values[rows, index] - left)
    median: Floats = np.where(inside, line, values[rows, index])
    return median


# --- a hierarchy in parts -----------------------------------------------------------------------


def subtree_parts(tree: Hierarchy, max_nodes: int) -> tuple[int, list[list[slice]]]:
    """Divide a hierarchy: level of the roots of parts, 0 if it is one; nodes of each by level."""
    if len(tree) <= max_nodes:
        return 0, [list(tree.levels)]
    # The depth is where top and largest part are smallest, to save memory.
    size = _subtree_sizes(tree)
    depth = _halfway(tree, size)
    roots = tree.levels[depth]
    # As many roots in a row as fit into one part, and at least one.
    ends = np.cumsum(size[roots])
    edges = [0]
    while edges[-1] < len(ends):
        before = int(ends[edges[-1] - 1]) if edges[-1] else 0
        fits = int(np.searchsorted(ends, before + max_nodes, side="right"))
        edges.append(max(fits, edges[-1] + 1))
    return depth, [
        _levels_below(tree, slice(roots.start + a, roots.start + b)) for a, b in pairwise(edges)
    ]


def halfway_level(tree: Hierarchy) -> int:
    """Level down to which there are as few nodes as in the largest subtree below, or nearly so."""
    return _halfway(tree, _subtree_sizes(tree))


def _halfway(tree: Hierarchy, size: Integers) -> int:
    """Level at which the top, or the largest subtree, is smallest; `size` is of all subtrees."""
    larger = [max(level.stop, int(size[level].max())) for level in tree.levels]
    return int(np.argmin(larger))


def _subtree_sizes(tree: Hierarchy) -> Integers:
    """Nodes of the subtree of each node, itself included."""
    size = np.ones(len(tree), np.int64)
    for level in reversed(tree.levels[1:]):
        np.add.at(size, tree.parent[level], size[level])
    return size


def _levels_below(tree: Hierarchy, roots: slice) -> list[slice]:
    """Neighbouring nodes of a level, and their descendants, which are neighbours as well."""
    levels = [roots]
    while True:
        last = levels[-1].stop - 1
        first = int(tree.first_child[levels[-1].start])
        end = int(tree.first_child[last] + tree.children[last])
        if first == end:
            return levels
        levels.append(slice(first, end))
