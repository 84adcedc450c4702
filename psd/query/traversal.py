"""Traversal of the tree: the cells that a query covers, and totals over them.

Level by level, from the root: a cell outside is dropped, a cell inside is taken whole, a leaf
that is cut contributes its covered fraction, and any other cell is opened. Only the cells that
are cut are ever opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.errors import InternalError
from psd.estimation.least_squares import Estimates
from psd.space.box_tree import Tree

__all__ = [
    "Fraction",
    "Traversal",
    "TraversalLevel",
    "perturbation_variance",
    "traverse",
    "traverse_within",
    "weighted_total",
]


Fraction = Callable[[Integers, Integers], tuple[Floats, Floats]]
"""Covered shares of cells: (query numbers, node numbers) to two numbers in [0, 1].

The first is the share of the points, as they are taken to lie, and the second that of the area.
They have to be exact for leaves; for other cells any number strictly between 0 and 1 says "cut".
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraversalLevel:
    """Pairs of a query and a cell on one level of the tree: arrays (n,)."""

    query: NDArray[np.int64]  # number of the query
    # The cell; all children of an opened cell are listed, also those outside the query.
    node: NDArray[np.int64]
    # Covered share of the points; of an opened cell some number between 0 and 1.
    fraction: NDArray[np.float64]
    area: NDArray[np.float64]  # covered share of the area
    opened: NDArray[np.bool_]  # whether the cell was opened
    parent: NDArray[np.int64]  # index of the parent's pair on the level above


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traversal:
    """The cells that a set of queries meets, level by level from the root down."""

    queries: int
    levels: tuple[TraversalLevel, ...]


def traverse(tree: Tree, queries: int, fraction: Fraction) -> Traversal:
    """Walk down the tree for many queries at once."""
    traversal = traverse_within(tree, queries, fraction, math.inf)
    if traversal is None:
        raise InternalError("a traversal without a limit was not finished")
    return traversal


def traverse_within(tree: Tree, queries: int, fraction: Fraction, pairs: float) -> Traversal | None:
    """Traverse the tree; None if several queries meet more than this number of pairs.

    A single query is always completed. For the arguments see `traverse`.
    """
    query, node = np.arange(queries), np.zeros(queries, np.int64)
    parent = np.full(queries, -1)
    levels: list[TraversalLevel] = []
    while len(query):
        pairs -= len(query)
        if pairs < 0 and queries > 1:
            return None
        share, area = fraction(query, node)
        opened = (area > 0) & (area < 1) & ~tree.is_leaf[node]
        levels.append(
            TraversalLevel(
                query=query, node=node, fraction=share, area=area, opened=opened, parent=parent
            )
        )
        # The children of the opened cells, family by family.
        pair = np.flatnonzero(opened)
        families = tree.children[node[pair]]
        parent = np.repeat(pair, families)
        number = ranges(np.zeros_like(families), families)
        query, node = query[parent], tree.first_child[node[parent]] + number
    return Traversal(queries=queries, levels=tuple(levels))


def weighted_total(traversal: Traversal, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of fraction times value over the cells that make up each query.

    values: (nodes,) float64; returns (queries,) float64.
    """
    result = np.zeros(traversal.queries)
    for level in traversal.levels:
        weight = np.where(level.opened, 0.0, level.fraction) * values[level.node]
        result += sum_by(level.query, weight, traversal.queries)
    return result


def perturbation_variance(traversal: Traversal, estimates: Estimates) -> NDArray[np.float64]:
    """Variance of each answer that the noise causes, from the exact covariance of the estimates.

    Returns (queries,) float64, records squared, for the signed least-squares answer.

    P1. It is w' Sigma w, without a matrix. Given its parent's estimate x, a family has means that
    grow with x by the slopes k and covariance diag(s^2) - s^2 s^2' / S, where s^2 are the upward
    variances and S their sum. So a cell of which the query takes a_c of each child has itself the
    slope a = sum k_c a_c and, beyond what its own estimate explains, the variance r = sum r_c + sum
    s_c^2 (a_c - a)^2. At the root the answer's variance is a^2 P + r. The centred sum cannot go
    negative, as the difference of squares does.
    """
    slope = remainder = np.zeros(0)
    below: TraversalLevel | None = None
    for level in reversed(traversal.levels):
        answer_slope, rest = np.where(level.opened, 0.0, level.fraction), np.zeros(len(level.node))
        if below is not None:
            mean = sum_by(below.parent, estimates.slope[below.node] * slope, len(level.node))
            finite = estimates.upward_variance[below.node]
            finite = np.where(np.isinf(finite), 0.0, finite)
            spread = remainder + finite * (slope - mean[below.parent]) ** 2
            answer_slope += mean
            rest += sum_by(below.parent, spread, len(level.node))
        slope, remainder, below = answer_slope, rest, level
    variance: NDArray[np.float64] = slope**2 * estimates.variance[0] + remainder
    return variance
