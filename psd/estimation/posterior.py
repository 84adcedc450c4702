"""Estimates under a prior for counts: never negative, and often zero.

Least squares treats a hundred empty cells as a hundred noisy numbers and adds their noise up.
Here each cell carries a likelihood on a short grid of possible counts; cells are joined under a
prior on how a count is divided, and the medians are handed down. Post-processing: only the
noisy integers and their epsilons are read, so they cost no epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.estimation._constants import (
    LIKELIHOOD_POINTS,
    LIKELIHOOD_REACH,
    ONE_SIDED,
    SCALE_FREE,
    SHARES_TRIED,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.subtree_parts import subtree_parts
from psd.privacy.noise_laws import NoiseLaw, noise_law
from psd.space.hierarchy import Hierarchy

__all__ = ["posterior_counts"]

# Nodes worked on together; bounds the memory, not the result.
_NODES_PER_BATCH = 4096

# Nodes of a tree whose likelihoods are all kept, 170 MB; those of a larger one are computed twice.
_MOST_KEPT = 2**20

# Finest deviation of a count, in records, and, squared, relative to a large one: floats have no
# room for more points between two counts.
_FINEST = 1e-6

# Rate of a count that is known: the next point of its likelihood has practically no probability.
_CERTAIN = 1e12

_TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Likelihood:
    """Likelihoods of the counts of some nodes at low, low + step, ...; the largest value is 1.

    Mean and deviation are those under a flat prior; they choose grids.
    """

    low: Floats
    step: Floats
    value: NDArray[np.float32]
    mean: Floats
    deviation: Floats

    def __getitem__(self, which: Integers | slice) -> _Likelihood:
        return _Likelihood(
            low=self.low[which],
            step=self.step[which],
            value=self.value[which],
            mean=self.mean[which],
            deviation=self.deviation[which],
        )

    @classmethod
    def empty(cls, size: int) -> _Likelihood:
        """Empty likelihoods of this number of nodes."""
        low, step, mean, deviation = np.empty((4, size))
        value = np.empty((size, LIKELIHOOD_POINTS), np.float32)
        return cls(low=low, step=step, value=value, mean=mean, deviation=deviation)

    def put(self, which: Integers | slice, part: _Likelihood) -> None:
        """Take in the likelihoods of some nodes."""
        for name in ("low", "step", "value", "mean", "deviation"):
            getattr(self, name)[which] = getattr(part, name)

    def at(self, x: Floats) -> Floats:
        """Values at counts x, shape (n, m): straight lines between the points, 0 beyond."""
        return _interpolate(self.value, (x - self.low[:, None]) / self.step[:, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Noisy:
    """Noisy counts of nodes, and the rate of their likelihood, 0 where not measured."""

    count: Floats
    rate: Floats
    law: NoiseLaw


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
        both = np.maximum(self.variance + other.variance, _TINY)
        with np.errstate(invalid="ignore"):  # parts that were not measured have no estimate
            gain = self.variance / both
            middle = self.mean + gain * (total - self.mean - other.mean)
            away = reach * np.sqrt(gain * other.variance)
        near = np.clip(np.clip(part, middle - away, middle + away), 0.0, total)
        return np.where(np.isfinite(middle) & np.isfinite(away), near, part)


def posterior_counts(
    tree: Hierarchy,
    estimates: Estimates,
    contributions: int = 1,
    scale: int = 1,
    empty: NDArray[np.bool_] | None = None,
    *,
    reach: float | None = None,
) -> Floats:
    """Compute posterior medians of the counts, from the root down.

    Guarantees
    ----------
    - Not negative; the children of a node sum to it, to rounding.
    - A function of the release alone.

    Parameters
    ----------
    tree : Hierarchy
        Noisy counts. Public.
    estimates : Estimates
        Least squares of that tree; the root keeps its estimate.
    contributions, scale, empty
        As in `psd.estimation.least_squares.infer_counts`. Public.
    reach : float, optional
        Largest distance of a median from the division of the same count by least squares, in
        standard deviations of that division; without a limit if left out.

    Returns
    -------
    ndarray, shape (n,), float64
        In records.

    Notes
    -----
    A Polya tree [1]_ whose divisions in two have all on one side with probability 0.4 and else
    a uniform share. Likelihoods go up by convolution (belief propagation) and take in the
    noise of each node's own count; the median of each division, given the count of the
    node, goes down. Families of three and four are divided in two repeatedly.

    Where many cells hold one or two records each, every median is too small by a little. Over
    thousands of cells these errors add up, while their noise cancels out. Least squares has no such
    bias, so ``reach`` bounds it in every division by the noise of that division.

    References
    ----------
    .. [1] Lavine. "Some Aspects of Polya Tree Distributions for Statistical Modelling." The
       Annals of Statistics 20(3), 1992.
    """
    law = noise_law(tree.noise_law)
    noisy = _Noisy(
        count=tree.count / scale,
        rate=law.rate(tree.epsilon, contributions, scale),
        law=law,
    )
    if empty is not None:
        noisy.rate[empty] = _CERTAIN
    count = np.zeros(len(tree))
    count[0] = max(float(estimates.signed[0]), 0.0)
    linear = _Linear(mean=estimates.upward, variance=estimates.upward_variance)
    depth, parts = subtree_parts(tree, _MOST_KEPT)
    if depth:
        top = tree.levels[: depth + 1]
        roots = [_likelihoods_by_level(tree, estimates, noisy, part)[0] for part in parts]
        joined = _likelihoods_by_level(tree, estimates, noisy, top, _concatenate(roots))
        _hand_down(tree, joined, top, count, linear, reach)
    for part in parts:
        _hand_down(
            tree, _likelihoods_by_level(tree, estimates, noisy, part), part, count, linear, reach
        )
    return count if empty is None else np.where(empty, 0.0, count)


def _hand_down(
    tree: Hierarchy,
    likelihoods: list[_Likelihood],
    levels: Sequence[slice],
    count: Floats,
    linear: _Linear,
    reach: float | None,
) -> None:
    """Divide the counts of the first of some levels among the nodes of the next ones."""
    for (level, next_level), below in zip(pairwise(levels), likelihoods[1:], strict=True):
        for nodes, kids in _families(tree, level):
            parts = [below[kid - next_level.start] for kid in kids]
            linear_parts = [linear[kid] for kid in kids]
            divided = _divide_total(count[nodes], parts, linear_parts, reach)
            for kid, part in zip(kids, divided, strict=True):
                count[kid] = part


def _families(tree: Hierarchy, level: slice) -> list[tuple[Integers, list[Integers]]]:
    """Inner nodes of a level by the number of their children, and the first, second, ... child."""
    nodes = np.arange(level.start, level.stop)
    families = []
    for size in np.unique(tree.children[level]).tolist():
        parents = nodes[tree.children[level] == size] if size else nodes[:0]
        for chunk in np.split(parents, range(_NODES_PER_BATCH, len(parents), _NODES_PER_BATCH)):
            if len(chunk):
                families.append((chunk, [tree.first_child[chunk] + k for k in range(size)]))
    return families


def _likelihoods_by_level(
    tree: Hierarchy,
    estimates: Estimates,
    noisy: _Noisy,
    levels: Sequence[slice],
    last: _Likelihood | None = None,
) -> list[_Likelihood]:
    """Likelihood of every node's count given the noisy counts in its subtree, by level.

    Those of the last level are computed from the noisy counts unless they are passed.
    """
    likelihoods = [] if last is None else [last]
    below = levels[-1]
    for level in reversed(levels[: len(levels) - len(likelihoods)]):
        of_level = _Likelihood.empty(level.stop - level.start)
        leaves = level.start + np.flatnonzero(tree.is_leaf[level])
        for chunk in np.split(leaves, range(_NODES_PER_BATCH, len(leaves), _NODES_PER_BATCH)):
            of_level.put(chunk - level.start, _leaf_likelihoods(estimates, noisy, chunk))
        for nodes, kids in _families(tree, level):
            joined = _join_siblings([likelihoods[-1][kid - below.start] for kid in kids])
            of_level.put(nodes - level.start, _include_noisy_count(joined, noisy, nodes))
        likelihoods.append(of_level)
        below = level
    return likelihoods[::-1]


def _concatenate(parts: list[_Likelihood]) -> _Likelihood:
    """Likelihoods of some nodes after those of others."""
    joined = _Likelihood.empty(sum(len(part.low) for part in parts))
    start = 0
    for part in parts:
        joined.put(slice(start, start + len(part.low)), part)
        start += len(part.low)
    return joined


def _leaf_likelihoods(estimates: Estimates, noisy: _Noisy, leaves: Integers) -> _Likelihood:
    """Likelihood of each leaf from its own count; flat where it was not measured."""
    rate = noisy.rate[leaves]
    is_measured = rate > 0
    deviation = np.sqrt(estimates.variance[leaves])
    measured_deviation = np.sqrt(np.where(is_measured, estimates.upward_variance[leaves], 0.0))
    deviation = np.where(is_measured, measured_deviation, deviation)
    center = np.where(is_measured, noisy.count[leaves], estimates.signed[leaves])
    low, step = _grid(np.maximum(center, -3 * deviation), deviation)
    noise = noisy.law.misfit(center[:, None] - _points(low, step), rate[:, None])
    return _normalise(low, step, np.exp(noise.min(axis=1, keepdims=True) - noise))


def _grid(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Low end and step of points around a mean, none below zero, all of them different."""
    deviation = np.maximum(deviation, _FINEST * np.maximum(_FINEST * np.abs(mean), 1.0))
    low = np.maximum(mean - LIKELIHOOD_REACH * deviation, 0.0)
    return low, (np.maximum(mean, 0.0) + LIKELIHOOD_REACH * deviation - low) / (
        LIKELIHOOD_POINTS - 1
    )


def _points(low: Floats, step: Floats, size: int = LIKELIHOOD_POINTS) -> Floats:
    """Counts at which likelihoods are given, shape (n, size)."""
    return low[:, None] + step[:, None] * np.arange(size)


def _normalise(low: Floats, step: Floats, value: Floats) -> _Likelihood:
    """Likelihood whose largest value is 1, with its moments."""
    value = value / np.maximum(value.max(axis=1, keepdims=True), _TINY)
    number, total = np.arange(value.shape[1]), np.maximum(value.sum(axis=1), _TINY)
    # Sums row by row, not a matrix product, whose rounding depends on the rows beside.
    position = (value * number).sum(axis=1) / total
    spread = np.maximum((value * number**2).sum(axis=1) / total - position**2, 0.25)
    return _Likelihood(
        low=low,
        step=step,
        # Half the memory, and far more digits than a likelihood needs.
        value=value.astype(np.float32),
        mean=low + step * position,
        deviation=step * np.sqrt(spread),
    )


def _include_noisy_count(joined: _Likelihood, noisy: _Noisy, nodes: Integers) -> _Likelihood:
    """Likelihood from the children, and from the node's own noisy count, on a fresh grid."""
    count, rate = noisy.count[nodes], noisy.rate[nodes]
    precision, from_kids = noisy.law.precision(rate), joined.deviation**-2
    mean = (joined.mean * from_kids + count * precision) / (from_kids + precision)
    low, step = _grid(mean, 1.2 / np.sqrt(from_kids + precision))
    points = _points(low, step)
    noise = noisy.law.misfit(count[:, None] - points, rate[:, None])
    value = joined.at(points) * np.exp(noise.min(axis=1, keepdims=True) - noise)
    # Where the two contradict each other beyond all points, the mean of both stands.
    lost = value.max(axis=1) <= 0
    value[lost] = np.exp(-0.5 * ((points - mean[:, None]) / (4 * step[:, None])) ** 2)[lost]
    return _normalise(low, step, value)


def _join_siblings(parts: list[_Likelihood]) -> _Likelihood:
    """Likelihood of the sum of some siblings, joined two by two."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _join_pair(_join_siblings(parts[:half]), _join_siblings(parts[half:]))


def _join_pair(a: _Likelihood, b: _Likelihood) -> _Likelihood:
    """Likelihood of the sum of two parts under the prior of a division."""
    step = np.maximum(a.step, b.step)
    of_a, of_b = _resample(a, step), _resample(b, step)
    low = a.low + b.low
    sums = _points(low, step, 2 * LIKELIHOOD_POINTS - 1)
    scale = np.maximum(np.minimum(sums, _scale_free(a, b)[:, None]), step[:, None] / 2)
    zero_a = np.where(a.low == 0, of_a[:, 0], 0.0)[:, None]
    zero_b = np.where(b.low == 0, of_b[:, 0], 0.0)[:, None]
    one_sided = zero_a * of_b + zero_b * of_a
    value = _convolve(of_a, of_b)
    value[:, :LIKELIHOOD_POINTS] -= one_sided / 2  # the trapezium rule: all on one side counts half
    value *= step[:, None] / scale
    value[:, :1] += zero_a * zero_b  # nothing is divided in one way only
    value *= 1 - ONE_SIDED
    value[:, :LIKELIHOOD_POINTS] += ONE_SIDED / 2 * one_sided
    return _crop(_normalise(low, step, value))


def _crop(wide: _Likelihood) -> _Likelihood:
    """The same likelihood on the usual number of points, around its mean."""
    low, step = _grid(wide.mean, wide.deviation)
    return _normalise(low, step, wide.at(_points(low, step)))


def _scale_free(a: _Likelihood, b: _Likelihood) -> Floats:
    """Count of two parts together above which the prior is flat."""
    return SCALE_FREE * np.hypot(a.deviation, b.deviation)


def _resample(message: _Likelihood, step: Floats) -> Floats:
    """Values on a coarser step from the same low end: means, so that nothing slips through."""
    ratio = (step / message.step)[:, None]
    edges = (np.arange(LIKELIHOOD_POINTS + 1) - 0.5) * ratio + 0.5
    edges[:, 0] = 0.0
    sums = np.concatenate([np.zeros((len(step), 1)), np.cumsum(message.value, axis=1)], axis=1)
    below = _interpolate(sums, np.minimum(edges, LIKELIHOOD_POINTS))
    mean: Floats = np.diff(below, axis=1) / np.diff(edges, axis=1)
    return mean


def _convolve(a: Floats, b: Floats) -> Floats:
    """Convolution row by row."""
    value = np.zeros((len(a), 2 * LIKELIHOOD_POINTS - 1))
    for shift in range(LIKELIHOOD_POINTS):
        value[:, shift : shift + LIKELIHOOD_POINTS] += a[:, shift, None] * b
    return value


def _interpolate(values: NDArray[np.floating], position: Floats) -> Floats:
    """Values at fractional places by straight lines; 0 outside."""
    last = values.shape[1] - 1
    # Clipped before the cast: a contradiction of huge counts lies farther off than 64 bits count.
    index = np.clip(position, 0, last - 1).astype(np.int64)
    start = np.arange(len(values))[:, None] * values.shape[1]
    flat = values.ravel()
    left, right = flat[start + index], flat[start + index + 1]
    line = left + (position - index) * (right - left)
    return np.where((position >= 0) & (position <= last), line, 0.0)


def _divide_total(
    total: Floats, parts: list[_Likelihood], linear: list[_Linear], reach: float | None
) -> list[Floats]:
    """Counts of siblings that sum to a total: the median of one division in two after another."""
    if len(parts) == 1:
        return [total]
    half = len(parts) // 2
    first = _median_part(total, _join_siblings(parts[:half]), _join_siblings(parts[half:]))
    if reach is not None:
        first_linear, other_linear = _Linear.total(linear[:half]), _Linear.total(linear[half:])
        first = first_linear.hold(first, other_linear, total, reach)
    return [
        *_divide_total(first, parts[:half], linear[:half], reach),
        *_divide_total(total - first, parts[half:], linear[half:], reach),
    ]


def _median_part(total: Floats, a: _Likelihood, b: _Likelihood) -> Floats:
    """Posterior median of the first of two parts of a total."""
    low, high = _plausible_range(total, a, b)
    shares = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, SHARES_TRIED)
    weight = np.empty((len(total), SHARES_TRIED + 2))
    scale = np.maximum(np.minimum(total, _scale_free(a, b)), _TINY)
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


def _plausible_range(total: Floats, a: _Likelihood, b: _Likelihood) -> tuple[Floats, Floats]:
    """Range of the first part that both likelihoods allow."""
    reach = LIKELIHOOD_REACH + 1
    low = np.maximum(a.mean - reach * a.deviation, total - (b.mean + reach * b.deviation))
    high = np.minimum(a.mean + reach * a.deviation, total - (b.mean - reach * b.deviation))
    low, high = np.clip(low, 0.0, total), np.clip(high, 0.0, total)
    return np.minimum(low, high), np.maximum(low, high)


def _median(values: Floats, weights: Floats) -> Floats:
    """Weighted median of ascending values, between two neighbours by a straight line."""
    rows = np.arange(len(values))
    sums = np.cumsum(weights, axis=1)
    half = sums[:, -1] / 2
    index = np.minimum((sums < half[:, None]).sum(axis=1), values.shape[1] - 1)
    before = np.where(index > 0, sums[rows, index - 1], 0.0)
    part = (half - before) / np.maximum(sums[rows, index] - before, _TINY)
    # The first and the last value are atoms, not points of a line.
    inside = (index > 1) & (index < values.shape[1] - 1)
    left = values[rows, np.maximum(index - 1, 0)]
    line = left + part * (values[rows, index] - left)
    median: Floats = np.where(inside, line, values[rows, index])
    return median
