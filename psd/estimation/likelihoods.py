"""Likelihood of the count of every node on a short grid, given the noisy counts in its subtree.

Few noisy counts and epsilons differ, so each distinct likelihood is computed once. Every step works
row by row, so that none depends on those it is computed with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, distinct_values
from psd.estimation.constants import (
    LIKELIHOOD_POINTS,
    ONE_SIDED,
    SCALE_FREE,
)
from psd.estimation.least_squares import Estimates
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import Hierarchy

TINY = 1e-300
"""Least divisor."""

# Numbers that numpy adds up side by side.
_LANES = 8

# Finest deviation of a count, in records, and, squared, relative to a large one: floats have no
# room for more points between two counts.
_FINEST = 1e-6

# Rows worked on together; bounds the memory, not the result.
_ROWS_PER_BATCH = 512

# Distinct values that are looked for one by one.
_FEW = 6

# Largest table of codes, beside the number of codes, that is filled in place of a sort.
_TABLE = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Likelihood:
    """Likelihoods of counts at low, low + step, ...; the largest is 1; moments choose grids."""

    low: Floats
    step: Floats
    value: NDArray[np.float32]
    mean: Floats
    deviation: Floats

    def take(self, which: Integers) -> Likelihood:
        """Likelihoods of some nodes."""
        return Likelihood(
            low=self.low.take(which),
            step=self.step.take(which),
            value=self.value.take(which, axis=0),
            mean=self.mean.take(which),
            deviation=self.deviation.take(which),
        )

    @classmethod
    def empty(cls, size: int) -> Likelihood:
        """Empty likelihoods of this number of nodes."""
        low, step, mean, deviation = np.empty((4, size))
        value = np.empty((size, LIKELIHOOD_POINTS), np.float32)
        return cls(low=low, step=step, value=value, mean=mean, deviation=deviation)

    def put(self, which: Integers | slice, part: Likelihood) -> None:
        """Take in the likelihoods of some nodes."""
        for name in ("low", "step", "value", "mean", "deviation"):
            getattr(self, name)[which] = getattr(part, name)

    def at(self, x: Floats) -> Floats:
        """Values at counts x, shape (n, m): straight lines between the points, 0 beyond."""
        position = (x - self.low[:, None]) / self.step[:, None]
        start = np.arange(len(x))[:, None] * self.value.shape[1]
        return _interpolate(self.value, position, start, 1)

    def across(self, x: Floats) -> Floats:
        """Values at counts x, shape (m, n), points before nodes."""
        value = np.ascontiguousarray(self.value.T)
        position = (x - self.low) / self.step
        return _interpolate(value, position, np.arange(x.shape[1]), x.shape[1])


def grid(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Low end and step of points around a mean, none below zero, all of them different."""
    deviation = np.maximum(deviation, _FINEST * np.maximum(_FINEST * np.abs(mean), 1.0))
    low = np.maximum(mean - SCALE_FREE * deviation, 0.0)
    return low, (np.maximum(mean, 0.0) + SCALE_FREE * deviation - low) / (LIKELIHOOD_POINTS - 1)


def points(low: Floats, step: Floats, size: int) -> Floats:
    """Counts at which likelihoods are given, shape (size, n)."""
    return low + step * np.arange(size, dtype=np.float64)[:, None]


def normalise(low: Floats, step: Floats, value: Floats, size: int | None = None) -> Likelihood:
    """Likelihood whose largest value is 1, with moments; values: (points, n), for fast passes.

    Values are written over. `size`: of the points, if those behind the given ones are all 0.
    """
    value /= np.maximum(value.max(axis=0), TINY)
    # Floats of whole numbers: integers would be converted again and again.
    number = np.arange(len(value), dtype=np.float64)[:, None]
    # Moments in points of the grid; a deviation is at least half a point.
    total = np.maximum(_sum(value, size), TINY)
    times = value * number
    position = _sum(times, size) / total
    square = _sum(np.multiply(value, number**2, out=times), size) / total
    spread = np.maximum(square - position**2, 0.25)
    return Likelihood(
        low=low,
        step=step,
        # Half the memory, and far more digits than a likelihood needs.
        value=value.astype(np.float32).T,
        mean=low + step * position,
        deviation=step * np.sqrt(spread),
    )


def _sum(values: Floats, size: int | None = None) -> Floats:
    """Sum over points, (n,), in numpy's order of a row of `size`, so that releases keep their bits.

    Values behind the given ones are 0, at least eight are given.
    """
    # Full groups of rows lane by lane, the lanes in pairs, and at last the rows that are left.
    size = len(values) if size is None else size
    even = size - size % _LANES
    lane = values[:_LANES].copy()
    for start in range(_LANES, min(even, len(values)), _LANES):
        group = values[start : min(start + _LANES, even)]
        lane[: len(group)] += group
    while len(lane) > 1:
        lane = lane[::2] + lane[1::2]
    total: Floats = lane[0]
    for row in values[even:]:
        total += row
    return total


def join_pair(a: Likelihood, b: Likelihood) -> Likelihood:
    """Likelihood of the sum of two parts under the prior of a division."""
    # Both on the coarser of their steps, so that their sums lie on one grid. The finer one ends
    # before the last point: it is 0 from there on, and so is the sum of both, which is left out.
    step = np.maximum(a.step, b.step)
    of_a, of_b = _resample(a, step), _resample(b, step)
    low = a.low + b.low
    size = 2 * LIKELIHOOD_POINTS - 1
    sums = points(low, step, min(max(len(of_a) + len(of_b), LIKELIHOOD_POINTS + 1), size))
    scale = np.minimum(sums, scale_free(a, b), out=sums)
    np.maximum(scale, step / 2, out=scale)
    # What is likely if one part holds nothing and the other one all.
    zero_a = np.where(a.low == 0, of_a[0], 0.0)
    zero_b = np.where(b.low == 0, of_b[0], 0.0)
    one_sided = np.zeros((max(len(of_a), len(of_b)), len(low)))
    np.multiply(zero_a, of_b, out=one_sided[: len(of_b)])
    one_sided[: len(of_a)] += zero_b * of_a
    value, part = np.zeros_like(sums), np.empty_like(of_b)
    for shift, row in enumerate(of_a):  # convolution
        np.multiply(row, of_b, out=part)
        value[shift : shift + len(of_b)] += part
    one_sided /= 2
    value[: len(one_sided)] -= one_sided  # the trapezium rule: all on one side counts half
    value *= np.divide(step, scale, out=scale)
    value[0] += zero_a * zero_b  # nothing is divided in one way only
    value *= 1 - ONE_SIDED
    value[: len(one_sided)] += np.multiply(one_sided, ONE_SIDED, out=one_sided)
    wide = normalise(low, step, value, size)
    # On the usual number of points, around the mean.
    low, step = grid(wide.mean, wide.deviation)
    return normalise(low, step, wide.across(points(low, step, LIKELIHOOD_POINTS)))


def scale_free(a: Likelihood, b: Likelihood) -> Floats:
    """Count of two parts together above which the prior is flat."""
    return SCALE_FREE * np.hypot(a.deviation, b.deviation)


def _resample(message: Likelihood, step: Floats) -> Floats:
    """Values on a coarser step from the same low end: means, so that nothing slips through.

    (points, n); points at the end that are 0 for all are left out.
    """
    size = len(step)
    # Running sums, so that a mean over any interval is one difference.
    running = message.value.T.copy()
    for before, row in pairwise(running):
        row += before
    sums = np.zeros((LIKELIHOOD_POINTS + 1, size))
    sums[1:] = running
    if np.array_equal(step, message.step):
        # As below where edges are the points themselves.
        sums[-1] = sums[-2] + (sums[-1] - sums[-2])
        return np.asarray(np.diff(sums, axis=0))
    # Edges half a coarse step around each coarse point, in fine points; the first begins at 0.
    ratio, middle = step / message.step, np.arange(LIKELIHOOD_POINTS + 1) - 0.5
    used = int(np.count_nonzero(middle[:-1] * ratio.min() + 0.5 < LIKELIHOOD_POINTS))
    edges = middle[: used + 1, None] * ratio + 0.5
    edges[0] = 0.0
    below = _interpolate(sums, np.minimum(edges, LIKELIHOOD_POINTS), np.arange(size), size)
    return np.diff(below, axis=0) / np.diff(edges, axis=0)


def _interpolate(
    values: NDArray[np.floating], position: Floats, start: Integers, stride: int
) -> Floats:
    """Values at fractional places, 0 outside; a node's begin at `start`, `stride` apart."""
    last = values.size // len(start) - 1
    # Clipped before the cast: a contradiction of huge counts lies farther off than 64 bits count.
    base = np.clip(position, 0, last - 1)
    at = base.astype(np.int64)
    np.floor(base, out=base)
    at *= stride
    at += start
    # A straight line between the two points around each position.
    flat = values.ravel()
    left = flat.take(at)
    at += stride
    line = (flat.take(at) - left) * np.subtract(position, base, out=base)
    line += left
    # A product takes half the time of a choice; 0 is added because it may be -0.
    line *= (position >= 0) & (position <= last)
    line += 0.0
    return line


# --- of subtrees --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyCounts:
    """Noisy counts of nodes, and the rate of their likelihood, 0 where not measured."""

    count: Floats
    rate: Floats
    noise: CountNoise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """Distinct likelihoods, and the index of that of each node."""

    distinct: Likelihood
    kind: Integers

    def __getitem__(self, which: Integers | slice) -> Shared:
        return Shared(distinct=self.distinct, kind=self.kind[which])

    def rows(self) -> Likelihood:
        """Likelihoods, one per node."""
        return self.distinct.take(self.kind)

    @classmethod
    def concatenate(cls, parts: Sequence[Shared]) -> Shared:
        """Likelihoods of some nodes after those of others."""
        sizes = np.array([len(part.distinct.low) for part in parts])
        joined = Likelihood.empty(int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        for part, start, size in zip(parts, starts.tolist(), sizes.tolist(), strict=True):
            joined.put(slice(start, start + size), part.distinct)
        # Numbers of a part move behind those of the parts before.
        kinds = [part.kind + start for part, start in zip(parts, starts, strict=True)]
        return cls(distinct=joined, kind=np.concatenate([np.empty(0, np.int64), *kinds]))


Halves = tuple[Shared, Shared]
"""Likelihoods of the first and of the second half of the children of some nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """Nodes with as many children, these, and the likelihoods of halves; None for up to two."""

    nodes: Integers
    kids: list[Integers]
    halves: Halves | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelLikelihoods:
    """Likelihoods of the nodes of a level, and its families."""

    nodes: Shared
    families: Sequence[Family]


def batches(size: int) -> Iterator[slice]:
    """Ranges of rows that are worked on together."""
    for start in range(0, size, _ROWS_PER_BATCH):
        yield slice(start, min(start + _ROWS_PER_BATCH, size))


def subtree_likelihoods(
    tree: Hierarchy,
    estimates: Estimates,
    noisy: NoisyCounts,
    levels: Sequence[slice],
    last: LevelLikelihoods | None = None,
) -> list[LevelLikelihoods]:
    """Likelihood of every node's count given its subtree, by level; last: of the last level."""
    # From the leaves up: each level is made of the likelihoods of the level below.
    result = [] if last is None else [last]
    below = levels[-1]
    for level in reversed(levels[: len(levels) - len(result)]):
        leaves = level.start + np.flatnonzero(tree.is_leaf[level])
        groups, parts = [leaves], [_leaf_likelihoods(estimates, noisy, leaves)]
        families, children = [], tree.children[level]
        # Inner nodes by the number of their children.
        for size in np.flatnonzero(np.bincount(children)[1:]) + 1:
            nodes = level.start + np.flatnonzero(children == size)
            first = tree.first_child[nodes]
            kids = [first + k for k in range(size)]
            of_kids = [result[-1].nodes[kid - below.start] for kid in kids]
            halves = join_halves(of_kids) if len(kids) > 1 else None
            joined = of_kids[0] if halves is None else _join_two(*halves)
            groups.append(nodes)
            parts.append(_include_noisy_counts(joined, noisy, nodes))
            families.append(
                Family(nodes=nodes, kids=kids, halves=halves if len(kids) > 2 else None)
            )
        # Groups one after another, put back in the order of the nodes.
        together = Shared.concatenate(parts)
        order = np.empty(len(together.kind), np.int64)
        order[np.concatenate(groups) - level.start] = together.kind
        nodes_of_level = Shared(distinct=together.distinct, kind=order)
        result.append(LevelLikelihoods(nodes=nodes_of_level, families=families))
        below = level
    return result[::-1]


def join_halves(parts: list[Shared]) -> Halves:
    """Likelihoods of the sums of the first and of the second half of siblings, two by two."""
    half = len(parts) // 2
    first, last = (
        some[0] if len(some) == 1 else _join_two(*join_halves(some))
        for some in (parts[:half], parts[half:])
    )
    return first, last


def _join_two(a: Shared, b: Shared) -> Shared:
    """Likelihood of the sum of two parts of some nodes."""
    # Pairs of likelihoods that occur, each joined once.
    size = len(b.distinct.low)
    first, kind = _distinct(a.kind * size + b.kind, len(a.distinct.low) * size)
    # By the ratio of their steps, those whose first part has the finer points first: whole batches
    # then keep the points of one of their parts, and few of the other one, which takes less time.
    ratio = a.distinct.step[a.kind[first]] / b.distinct.step[b.kind[first]]
    order = np.argsort(ratio, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    first, kind = first[order], number[kind]
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        distinct.put(rows, join_pair(a[first[rows]].rows(), b[first[rows]].rows()))
    return Shared(distinct=distinct, kind=kind)


def _leaf_likelihoods(estimates: Estimates, noisy: NoisyCounts, leaves: Integers) -> Shared:
    """Likelihood of each leaf from its own count; flat where it was not measured."""
    rate = noisy.rate[leaves]
    is_measured = rate > 0
    variance = np.where(is_measured, estimates.upward_variance[leaves], estimates.variance[leaves])
    # A leaf that was not measured has what the other counts say of it.
    center = np.where(is_measured, noisy.count[leaves], estimates.signed[leaves])
    # Leaves with equal numbers share one likelihood.
    first, kind = _distinct_rows(center, rate, variance)
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        at = first[rows]
        deviation = np.sqrt(variance[at])
        low, step = grid(np.maximum(center[at], -3 * deviation), deviation)
        cost = noisy.noise.negative_log_likelihood(
            center[at] - points(low, step, LIKELIHOOD_POINTS), rate[at]
        )
        distinct.put(rows, normalise(low, step, np.exp(cost.min(axis=0) - cost)))
    return Shared(distinct=distinct, kind=kind)


def _include_noisy_counts(joined: Shared, noisy: NoisyCounts, nodes: Integers) -> Shared:
    """Likelihood from the children, and from the node's own noisy count, on a fresh grid."""
    first, kind = _distinct_rows(joined.kind, noisy.count[nodes], noisy.rate[nodes])
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        below = joined[first[rows]].rows()
        count, rate = noisy.count[nodes[first[rows]]], noisy.rate[nodes[first[rows]]]
        # Mean and deviation of both together, as if normal, place the new grid.
        precision, from_kids = noisy.noise.inverse_variance(rate), below.deviation**-2
        mean = (below.mean * from_kids + count * precision) / (from_kids + precision)
        low, step = grid(mean, 1.2 / np.sqrt(from_kids + precision))
        at = points(low, step, LIKELIHOOD_POINTS)
        cost = noisy.noise.negative_log_likelihood(count - at, rate)
        value = below.across(at) * np.exp(cost.min(axis=0) - cost)
        # Where the two contradict each other beyond all points, the mean of both stands.
        lost = value.max(axis=0) <= 0
        if lost.any():
            value[:, lost] = np.exp(-0.5 * ((at - mean) / (4 * step)) ** 2)[:, lost]
        distinct.put(rows, normalise(low, step, value))
    return Shared(distinct=distinct, kind=kind)


def _distinct_rows(*columns: NDArray[np.float64 | np.int64]) -> tuple[Integers, Integers]:
    """Index of an example of each distinct row, and which of them each row is."""
    # Columns one by one: a code of the rows so far, and of the next column.
    rows = len(columns[0])
    first, kind = np.zeros(min(rows, 1), np.int64), np.zeros(rows, np.int64)
    for column in columns if rows else ():
        # Numbers that are equal where values are, below a limit: differences if they are few.
        low, high = column.min(), column.max()
        number, limit = None, int(high - low) + 1 if high - low < len(column) else 0
        if limit:
            number = (column - low).astype(np.int64)
        if number is None or not np.array_equal(number + low, column):
            number, limit = _ranks(column)
        if limit == 1:  # it tells no rows apart
            continue
        first, kind = _distinct(kind * limit + number, len(first) * limit)
    return first, kind


def _ranks(column: NDArray[np.float64 | np.int64]) -> tuple[Integers, int]:
    """Rank of each value among the distinct ones, and their number."""
    # Few are found one after another, in less time than a sort takes.
    rank, larger = np.zeros(len(column), np.int64), column > -np.inf
    for number in range(1, _FEW + 1):
        larger = column > column[larger].min()
        if not larger.any():
            return rank, number
        rank += larger
    example, rank = distinct_values(column)
    return rank, len(example)


def _distinct(code: Integers, limit: int) -> tuple[Integers, Integers]:
    """Index of an example of each distinct code below a limit, and which of them each is."""
    if limit <= _TABLE * len(code):
        # A table by code holds one place of each, which takes less time than a sort.
        example = np.full(limit, -1)
        example[code] = np.arange(len(code))
        used = np.flatnonzero(example >= 0)
        number = np.empty(limit, np.int64)
        number[used] = np.arange(len(used))
        return example[used], number[code]
    return distinct_values(code)
