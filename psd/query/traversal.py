"""Traversal of the tree: the cells that a query covers, and totals over them.

A cell outside is dropped, one inside taken whole, a cut leaf by its fraction, any other opened.

.. [1] Crow. "Summed-Area Tables for Texture Mapping." SIGGRAPH 1984.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.errors import InternalError
from psd.estimation.density import PARTS, Density, SmoothDensity
from psd.estimation.least_squares import Estimates
from psd.query.constants import MAX_MESH_CELLS
from psd.space.box_tree import Tree

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
    # Covered share of the points; 0 of an opened cell, whose children have them.
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


def traverse_within(
    tree: Tree,
    queries: int,
    fraction: Fraction,
    pairs: float,
    is_end: NDArray[np.bool_] | None = None,
) -> Traversal | None:
    """Traverse as `traverse`; None if several queries meet more than this number of pairs.

    Nodes of `is_end`, (nodes,) bool, are not opened either, and have the shares of the leaf below.

    P1. Totals stay where a leaf is an only child and its parent is not opened: both have one count,
    the slope of the leaf is 1, and its parent explains all of its estimate.
    """
    is_end = tree.is_leaf if is_end is None else is_end
    query, node = np.arange(queries), np.zeros(queries, np.int64)
    parent = np.full(queries, -1)
    levels: list[TraversalLevel] = []
    while len(query):
        pairs -= len(query)
        if pairs < 0 and queries > 1:
            return None
        share, area = fraction(query, node)
        opened = (area > 0) & (area < 1) & ~is_end.take(node)
        levels.append(
            TraversalLevel(
                query=query,
                node=node,
                fraction=np.where(opened, 0.0, share),
                area=area,
                opened=opened,
                parent=parent,
            )
        )
        # The children of the opened cells, family by family.
        pair = np.flatnonzero(opened)
        opener = node.take(pair)
        size = tree.children.take(opener)
        family = np.repeat(np.arange(len(pair)), size)
        # Children before each family: a child is the first of its family plus its place there.
        before = np.cumsum(size) - size
        parent, query = pair.take(family), query.take(pair).take(family)
        node = (tree.first_child.take(opener) - before).take(family)
        node += np.arange(len(family))
    return Traversal(queries=queries, levels=tuple(levels))


def weighted_total(traversal: Traversal, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of fraction times value, (nodes,), over the cells of each query, (queries,) float64."""
    result = np.zeros(traversal.queries)
    for level in traversal.levels:
        # Cells that were opened have the fraction 0 here; their children stand for them.
        taken = np.flatnonzero(level.fraction)
        weight = level.fraction[taken] * values[level.node[taken]]
        result += sum_by(level.query[taken], weight, traversal.queries)
    return result


def perturbation_variance(traversal: Traversal, estimates: Estimates) -> NDArray[np.float64]:
    """Variance of each signed answer by the noise, (queries,), by the covariance of estimates.

    P1. It is w' Sigma w, without a matrix. Given its parent's estimate x, a family has means that
    grow with x by the slopes k and covariance diag(s^2) - s^2 s^2' / S, s^2 being the upward
    variances and S their sum. So a cell of which the query takes a_c of each child has itself the
    slope a = sum k_c a_c and, beyond what its own estimate explains, the variance r = sum r_c + sum
    s_c^2 (a_c - a)^2. At the root the answer's variance is a^2 P + r.
    """
    slope = remainder = np.zeros(0)
    below: TraversalLevel | None = None
    for level in reversed(traversal.levels):
        answer_slope, rest = level.fraction, np.zeros(len(level.node))
        if below is not None:
            # `take` and sums in place: this is a fifth of the time of many boxes.
            share = estimates.slope.take(below.node)
            share *= slope
            mean = sum_by(below.parent, share, len(level.node))
            upward = estimates.upward_variance.take(below.node)
            if math.isinf(upward.max()):
                upward[np.isinf(upward)] = 0.0
            # The centred sum cannot go negative, as the difference of squares does.
            spread = np.subtract(slope, mean.take(below.parent), out=share)
            spread *= spread
            spread *= upward
            spread += remainder
            answer_slope = answer_slope + mean
            rest = sum_by(below.parent, spread, len(level.node))
        slope, remainder, below = answer_slope, rest, level
    variance: NDArray[np.float64] = slope**2 * estimates.variance[0] + remainder
    return variance


def innovations(
    traversal: Traversal, estimates: Estimates
) -> Iterator[tuple[TraversalLevel, NDArray[np.float64]]]:
    """Parts s_c (a_c - a) of innovations by level, up; see P1 of `perturbation_variance`."""
    slope = np.zeros(0)
    below: TraversalLevel | None = None
    for level in reversed(traversal.levels):
        answer_slope = level.fraction
        if below is not None:
            # What the query takes of each parent through its children; of a child, what differs
            # from it.
            mean = sum_by(below.parent, estimates.slope[below.node] * slope, len(level.node))
            variance = estimates.upward_variance[below.node]
            deviation = np.sqrt(np.where(np.isinf(variance), 0.0, variance))
            yield below, deviation * (slope - mean[below.parent])
            answer_slope = answer_slope + mean
        slope, below = answer_slope, level
    if below is not None:
        yield below, slope * np.sqrt(estimates.variance[0])


def edge_squares(traversal: Traversal, estimates: Estimates) -> NDArray[np.float64]:
    """Variance that answers gain if errors along edges have one sign, (queries,), records squared.

    By level, the squared sum of the `innovations` above 0, less the sum of their squares.
    """
    gained = np.zeros(traversal.queries)
    for level, part in innovations(traversal, estimates):
        # Above 0: of cells of which a query takes more than of their families.
        inward = np.maximum(part, 0.0)
        gained += sum_by(level.query, inward, traversal.queries) ** 2
        gained -= sum_by(level.query, inward**2, traversal.queries)
    return np.maximum(gained, 0.0)  # below 0 by rounding alone


# Queries looked up together, so that what is worked out for them stays near the processor.
_BOXES_PER_BATCH = 2**14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mesh:
    """Rows and columns of leaves, each of parts of even density."""

    x: Floats  # (columns + 1,) float64; lattice lines between the columns
    y: Floats  # (rows + 1,) float64; lattice lines between the rows
    # (rows, columns) int64; node numbers; rows from the south, columns from the west.
    leaf: NDArray[np.int64]
    # (rows, columns, parts, parts) float64; share of each leaf's count in each of its parts.
    share: Floats

    def table(self, values: Floats) -> Floats:
        """Sum of the values of leaves south and west of all lines, (rows + 1, columns + 1)."""
        rows, columns, parts, _ = self.share.shape
        cells = values[self.leaf][:, :, None, None] * self.share
        sums = np.zeros((rows * parts + 1, columns * parts + 1))
        # From (rows, columns, parts, parts) to one raster of parts, summed north and east.
        inner = cells.transpose(0, 2, 1, 3).reshape(rows * parts, columns * parts)
        sums[1:, 1:] = inner.cumsum(axis=0).cumsum(axis=1)
        return sums

    def totals(self, table: Floats, boxes: Floats) -> Floats:
        """Sum of covered share times value of boxes, (n, 4), lattice units inside the lattice."""
        result = np.empty(len(boxes))
        for start in range(0, len(boxes), _BOXES_PER_BATCH):
            chunk = boxes[start : start + _BOXES_PER_BATCH]
            west, east = (
                _table_position(chunk[:, side], self.x, table.shape[1]) for side in (0, 2)
            )
            south, north = (
                _table_position(chunk[:, side], self.y, table.shape[0]) for side in (1, 3)
            )
            # The table has sums from the south-west corner, (rows + 1, columns + 1): a box is the
            # difference of four of them.
            upper = _sum_south_west(table, north, east) - _sum_south_west(table, north, west)
            lower = _sum_south_west(table, south, east) - _sum_south_west(table, south, west)
            result[start : start + _BOXES_PER_BATCH] = upper - lower
        return result


def leaf_mesh(tree: Tree, density: Density | None) -> Mesh | None:
    """Leaves as a mesh of rows and columns; None if they form none or too many."""
    parts = PARTS if isinstance(density, SmoothDensity) else 1
    leaves = np.flatnonzero(tree.is_leaf)
    if len(leaves) * parts**2 > MAX_MESH_CELLS or not (density is None or parts == PARTS):
        return None
    x, y = (np.unique(tree.boxes[leaves][:, [side, side + 2]]) for side in (0, 1))
    shape = (len(y) - 1, len(x) - 1)
    if shape[0] * shape[1] != len(leaves):
        return None
    # As many leaves as mesh cells, and leaves tile the domain: each leaf is one mesh cell.
    order = np.lexsort((tree.boxes[leaves, 0], tree.boxes[leaves, 1]))
    share = np.ones((len(leaves), 1, 1))
    if isinstance(density, SmoothDensity):
        share = density.share[density.rank[leaves[order]]]
    return Mesh(
        x=x.astype(np.float64),
        y=y.astype(np.float64),
        leaf=leaves[order].reshape(shape),
        share=share.reshape(*shape, parts, parts),
    )


def _table_position(lines: Floats, edges: Floats, size: int) -> tuple[NDArray[np.int64], Floats]:
    """Last line of a table at or below each place, and how far on to the next one it is."""
    parts = (size - 1) / (len(edges) - 1)
    # Lines of the table divide each leaf evenly into its parts.
    position = np.interp(lines, edges, np.arange(len(edges)) * parts)
    line = np.minimum(position.astype(np.int64), size - 2)
    return line, position - line


def _sum_south_west(
    table: Floats, row: tuple[NDArray[np.int64], Floats], column: tuple[NDArray[np.int64], Floats]
) -> Floats:
    """Sum south and west of places between the lines of a table."""
    (j, up), (i, across) = row, column
    flat, corner = table.ravel(), j * table.shape[1] + i
    # The density is even between lines, so sums are linear along each axis.
    south = flat[corner] * (1 - across) + flat[corner + 1] * across
    corner += table.shape[1]
    north = flat[corner] * (1 - across) + flat[corner + 1] * across
    value: Floats = south * (1 - up) + north * up
    return value
