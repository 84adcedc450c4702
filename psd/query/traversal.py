"""Which cells a query covers: the traversal, and what follows from the covered fractions.

Level by level, from the root: a cell outside is dropped, a cell inside is taken whole, a leaf
that is cut contributes its covered fraction, and any other cell is opened. Only the cells that
are cut are ever opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.estimation.least_squares import Estimates
from psd.space.box_tree import Tree

__all__ = ["Cover", "Fraction", "Step", "cover", "cut_leaf_total", "perturbation_variance", "total"]


Fraction = Callable[[Integers, Integers], tuple[Floats, Floats]]
"""Covered shares of cells: (query numbers, node numbers) to two numbers in [0, 1].

The first is the share of the points, as they are taken to lie, and the second that of the area.
They have to be exact for leaves; for other cells any number strictly between 0 and 1 says "cut".
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """Pairs of query and cell met on one level.

    Parameters
    ----------
    query, node : ndarray, shape (n,), int64
        The pairs; all children of an opened cell are there, also those outside.
    fraction : ndarray, shape (n,), float64
        Covered share of the points; of an opened cell some number between 0 and 1.
    area : ndarray, shape (n,), float64
        Covered share of the area.
    opened : ndarray, shape (n,), bool
        Whether the cell was opened.
    parent : ndarray, shape (n,), int64
        Place of the parent's pair on the level above.
    """

    query: NDArray[np.int64]
    node: NDArray[np.int64]
    fraction: NDArray[np.float64]
    area: NDArray[np.float64]
    opened: NDArray[np.bool_]
    parent: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cover:
    """All steps of a set of queries, from the root down."""

    queries: int
    steps: tuple[Step, ...]


def cover(tree: Tree, queries: int, fraction: Fraction) -> Cover:
    """Walk down the tree for many queries at once.

    Parameters
    ----------
    tree : Tree
        Cells.
    queries : int
        Number of queries, 0 to queries - 1.
    fraction : Fraction
        Measures the covered fraction.

    Returns
    -------
    Cover
    """
    query, node = np.arange(queries), np.zeros(queries, np.int64)
    parent = np.full(queries, -1)
    steps = []
    while len(query):
        share, area = fraction(query, node)
        opened = (area > 0) & (area < 1) & ~tree.is_leaf[node]
        steps.append(
            Step(query=query, node=node, fraction=share, area=area, opened=opened, parent=parent)
        )
        query, node, parent = _open(tree, query, node, opened)
    return Cover(queries=queries, steps=tuple(steps))


def _open(
    tree: Tree, query: NDArray[np.int64], node: NDArray[np.int64], opened: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of the children of the opened cells, family by family."""
    place = np.flatnonzero(opened)
    families = tree.children[node[place]]
    parent = np.repeat(place, families)
    number = ranges(np.zeros_like(families), families)
    return query[parent], tree.first_child[node[parent]] + number, parent


def total(covered: Cover, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of fraction times value over the cells that make up each query.

    Parameters
    ----------
    covered : Cover
        Cells of the queries.
    values : ndarray, shape (nodes,), float64
        A value per node.

    Returns
    -------
    ndarray, shape (queries,), float64
    """
    result = np.zeros(covered.queries)
    for step in covered.steps:
        weight = np.where(step.opened, 0.0, step.fraction) * values[step.node]
        result += sum_by(step.query, weight, covered.queries)
    return result


def cut_leaf_total(
    covered: Cover, value: Callable[[Integers, Floats, Floats], Floats]
) -> NDArray[np.float64]:
    """Sum of a value of (node, fraction, area) over the leaves that each query cuts."""
    result = np.zeros(covered.queries)
    for step in covered.steps:
        cut = ~step.opened & (step.area > 0) & (step.area < 1)
        part = value(step.node[cut], step.fraction[cut], step.area[cut])
        result += sum_by(step.query[cut], part, covered.queries)
    return result


def perturbation_variance(covered: Cover, estimates: Estimates) -> NDArray[np.float64]:
    """Variance of each answer that the noise causes, from the exact covariance of the estimates.

    Parameters
    ----------
    covered : Cover
        Cells of the queries.
    estimates : Estimates
        Of the same tree.

    Returns
    -------
    ndarray, shape (queries,), float64
        Records squared, for the signed least-squares answer.

    Notes
    -----
    w' Sigma w without a matrix. Given its parent's estimate x, a family has means that grow
    with x by the slopes k and covariance diag(s^2) - s^2 s^2' / S, where s^2 are the upward
    variances and S their sum. So a cell of which the query takes a_c of each child has itself
    the slope a = sum k_c a_c and, beyond what its own estimate explains, the variance
    r = sum r_c + sum s_c^2 (a_c - a)^2. At the root the answer's variance is a^2 P + r. The
    centred sum cannot go negative, as the difference of squares does.
    """
    slope = remainder = np.zeros(0)
    below: Step | None = None
    for step in reversed(covered.steps):
        own, rest = np.where(step.opened, 0.0, step.fraction), np.zeros(len(step.node))
        if below is not None:
            mean = sum_by(below.parent, estimates.slope[below.node] * slope, len(step.node))
            known = estimates.upward_variance[below.node]
            known = np.where(np.isinf(known), 0.0, known)
            spread = remainder + known * (slope - mean[below.parent]) ** 2
            own += mean
            rest += sum_by(below.parent, spread, len(step.node))
        slope, remainder, below = own, rest, step
    variance: NDArray[np.float64] = slope**2 * estimates.variance[0] + remainder
    return variance
