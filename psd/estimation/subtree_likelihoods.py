"""Likelihood of the count of every node, given the noisy counts in its subtree.

Noisy counts are small integers and have few epsilons, so very many nodes have the same likelihood.
Each distinct one is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, distinct_values
from psd.estimation.least_squares import Estimates
from psd.estimation.likelihoods import Likelihood, grid, join_pair, normalise, points
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import Hierarchy

__all__ = [
    "Family",
    "LevelLikelihoods",
    "NoisyCounts",
    "Shared",
    "batches",
    "join_halves",
    "subtree_likelihoods",
]

# Rows worked on together; bounds the memory, not the result.
_ROWS_PER_BATCH = 512

# Largest table of codes, beside the number of codes, that is filled in place of a sort.
_TABLE = 8


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

    def __len__(self) -> int:
        return len(self.kind)

    def rows(self) -> Likelihood:
        """Likelihoods, one per node."""
        return self.distinct[self.kind]

    @classmethod
    def concatenate(cls, parts: Sequence[Shared]) -> Shared:
        """Likelihoods of some nodes after those of others."""
        sizes = np.array([len(part.distinct.low) for part in parts])
        joined = Likelihood.empty(int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        for part, start, size in zip(parts, starts.tolist(), sizes.tolist(), strict=True):
            joined.put(slice(start, start + size), part.distinct)
        kinds = [part.kind + start for part, start in zip(parts, starts, strict=True)]
        return cls(distinct=joined, kind=np.concatenate([np.empty(0, np.int64), *kinds]))


Halves = tuple[Shared, Shared]
"""Likelihoods of the first and of the second half of the children of some nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """Nodes with the same number of children.

    Their first, second, ... child, and the likelihoods of the halves; None for up to two children,
    which are the halves themselves.
    """

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
    """Compute the likelihood of every node's count given the noisy counts in its subtree.

    Parameters
    ----------
    tree : Hierarchy
        Topology.
    estimates : Estimates
        Least squares of that tree.
    noisy : NoisyCounts
        Of all nodes.
    levels : sequence of slice
        Nodes of each level, from the first level to be computed down.
    last : LevelLikelihoods, optional
        Of the last level; by default they are computed from the noisy counts.

    Returns
    -------
    list of LevelLikelihoods
        One per level.
    """
    result = [] if last is None else [last]
    below = levels[-1]
    for level in reversed(levels[: len(levels) - len(result)]):
        leaves = level.start + np.flatnonzero(tree.is_leaf[level])
        groups, parts = [leaves], [_leaf_likelihoods(estimates, noisy, leaves)]
        families = []
        for nodes, kids in _families(tree, level):
            of_kids = [result[-1].nodes[kid - below.start] for kid in kids]
            halves = join_halves(of_kids) if len(kids) > 1 else None
            joined = of_kids[0] if halves is None else _join_two(*halves)
            groups.append(nodes)
            parts.append(_include_noisy_counts(joined, noisy, nodes))
            families.append(
                Family(nodes=nodes, kids=kids, halves=halves if len(kids) > 2 else None)
            )
        together = Shared.concatenate(parts)
        order = np.empty(len(together), np.int64)
        order[np.concatenate(groups) - level.start] = together.kind
        nodes_of_level = Shared(distinct=together.distinct, kind=order)
        result.append(LevelLikelihoods(nodes=nodes_of_level, families=families))
        below = level
    return result[::-1]


def join_halves(parts: list[Shared]) -> Halves:
    """Likelihoods of the sums of the first and of the second half of some siblings."""
    half = len(parts) // 2
    return _join_siblings(parts[:half]), _join_siblings(parts[half:])


def _join_siblings(parts: list[Shared]) -> Shared:
    """Likelihood of the sum of some siblings, joined two by two."""
    return parts[0] if len(parts) == 1 else _join_two(*join_halves(parts))


def _join_two(a: Shared, b: Shared) -> Shared:
    """Likelihood of the sum of two parts of some nodes."""
    size = len(b.distinct.low)
    first, kind = _distinct(a.kind * size + b.kind, len(a.distinct.low) * size)
    # Those whose first part has the finer points come first: whole batches then keep the points of
    # one of their parts, which takes less time.
    finer = np.sign(a.distinct.step[a.kind[first]] - b.distinct.step[b.kind[first]])
    order = np.argsort(finer, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    first, kind = first[order], number[kind]
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        distinct.put(rows, join_pair(a[first[rows]].rows(), b[first[rows]].rows()))
    return Shared(distinct=distinct, kind=kind)


def _families(tree: Hierarchy, level: slice) -> Iterator[tuple[Integers, list[Integers]]]:
    """Inner nodes of a level by the number of their children, and the first, second, ... child."""
    children = tree.children[level]
    for size in np.flatnonzero(np.bincount(children)).tolist():
        if size:
            nodes = level.start + np.flatnonzero(children == size)
            first = tree.first_child[nodes]
            yield nodes, [first + k for k in range(size)]


def _leaf_likelihoods(estimates: Estimates, noisy: NoisyCounts, leaves: Integers) -> Shared:
    """Likelihood of each leaf from its own count; flat where it was not measured."""
    rate = noisy.rate[leaves]
    is_measured = rate > 0
    variance = np.where(is_measured, estimates.upward_variance[leaves], estimates.variance[leaves])
    center = np.where(is_measured, noisy.count[leaves], estimates.signed[leaves])
    first, kind = _distinct_rows(center, rate, variance)
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        at = first[rows]
        distinct.put(
            rows, _likelihood_around(center[at], np.sqrt(variance[at]), rate[at], noisy.noise)
        )
    return Shared(distinct=distinct, kind=kind)


def _likelihood_around(
    center: Floats, deviation: Floats, rate: Floats, noise: CountNoise
) -> Likelihood:
    """Likelihood of a count by a noisy count or an estimate of it."""
    low, step = grid(np.maximum(center, -3 * deviation), deviation)
    misfit = noise.negative_log_likelihood(center - points(low, step), rate)
    return normalise(low, step, np.exp(misfit.min(axis=0) - misfit))


def _include_noisy_counts(joined: Shared, noisy: NoisyCounts, nodes: Integers) -> Shared:
    """Likelihood from the children, and from the node's own noisy count."""
    count, rate = noisy.count[nodes], noisy.rate[nodes]
    first, kind = _distinct_rows(joined.kind, count, rate)
    distinct = Likelihood.empty(len(first))
    for rows in batches(len(first)):
        at = first[rows]
        distinct.put(
            rows, _include_noisy_count(joined[at].rows(), count[at], rate[at], noisy.noise)
        )
    return Shared(distinct=distinct, kind=kind)


def _include_noisy_count(
    joined: Likelihood, count: Floats, rate: Floats, noise: CountNoise
) -> Likelihood:
    """Likelihood from the children, and from the node's own noisy count, on a fresh grid."""
    precision, from_kids = noise.inverse_variance(rate), joined.deviation**-2
    mean = (joined.mean * from_kids + count * precision) / (from_kids + precision)
    low, step = grid(mean, 1.2 / np.sqrt(from_kids + precision))
    at = points(low, step)
    misfit = noise.negative_log_likelihood(count - at, rate)
    value = joined.across(at) * np.exp(misfit.min(axis=0) - misfit)
    # Where the two contradict each other beyond all points, the mean of both stands.
    lost = value.max(axis=0) <= 0
    if lost.any():
        value[:, lost] = np.exp(-0.5 * ((at - mean) / (4 * step)) ** 2)[:, lost]
    return normalise(low, step, value)


def _distinct_rows(*columns: NDArray[np.float64 | np.int64]) -> tuple[Integers, Integers]:
    """Index of an example of each distinct row, and which of them each row is."""
    first, kind = np.zeros(1, np.int64), np.zeros(len(columns[0]), np.int64)
    for column in columns:
        number, size = _numbered(column)
        first, kind = _distinct(kind * size + number, len(first) * size)
    return first, kind


def _numbered(column: NDArray[np.float64 | np.int64]) -> tuple[Integers, int]:
    """Numbers that are equal where values are, and how many there may be."""
    low, high = (column.min(), column.max()) if len(column) else (0, 0)
    if high - low < len(column):
        number = (column - low).astype(np.int64)
        if np.array_equal(number + low, column):
            return number, int(high - low) + 1
    first, number = distinct_values(column)
    return number, len(first)


def _distinct(code: Integers, limit: int) -> tuple[Integers, Integers]:
    """Index of an example of each distinct code below a limit, and which of them each is."""
    if limit <= _TABLE * len(code):
        example = np.full(limit, -1)
        example[code] = np.arange(len(code))
        used = np.flatnonzero(example >= 0)
        number = np.empty(limit, np.int64)
        number[used] = np.arange(len(used))
        return example[used], number[code]
    return distinct_values(code)
