"""Charges along the most expensive path of a growing tree; PrivTree's split rule. Private side.

Charges hold no points. Only which cells were split leaves the rule.

.. [1] Zhang, Xiao, Xie. "PrivTree: A Differentially Private Algorithm for Hierarchical
   Decompositions." SIGMOD 2016. https://doi.org/10.1145/2882903.2882928
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.curator._constants import MAX_SHAPE_NODES
from psd.errors import ParameterError
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO
from psd.space.box_tree import MAX_CHILDREN
from psd.space.growing_tree import Cells, GrowingTree

if TYPE_CHECKING:
    from psd.curator.points import Points
    from psd.mechanisms.base import Sampler


class PathCharges:
    """Charges to the nodes of one growing tree, which may grow between two charges.

    P1. `total` is the largest sum of charges along a root-to-leaf path: the largest sum over
    lattice points of all charges to cells that contain the point, in whatever order nodes were
    charged.
    """

    def __init__(self, growing: GrowingTree) -> None:
        self._growing = growing
        self._nodes = np.zeros(len(growing.parent), np.int64)
        # Charges on the most expensive path below a node, its own included.
        self._path = self._nodes

    @property
    def total(self) -> int:
        """Loss on the most expensive root-to-leaf path."""
        return int(self._path[0])

    @property
    def of_nodes(self) -> NDArray[np.int64]:
        """Loss charged to each node of the tree, shape (n,); a copy."""
        return self._extended(self._nodes)

    def charge(
        self,
        nodes: NDArray[np.int64],
        loss: NDArray[np.int64],
        limit: int,
        pay: Callable[[int], None] = lambda increase: None,
    ) -> bool:
        """Charge nodes within a limit, else change nothing; `pay` comes first. Whether it did."""
        if int(np.count_nonzero(self._marked(nodes))) < len(nodes):
            raise ParameterError("cells of one question must differ, got one twice")
        if int(loss.max(initial=0)) > limit:  # also keeps the sums below far from overflow
            return False
        charged, path = self._extended(self._nodes), self._extended(self._path)
        charged[nodes] += loss
        path[nodes] += loss
        self._raise_paths(charged, path, nodes)
        if int(path[0]) > limit:
            return False
        pay(int(path[0]) - self.total)
        self._nodes, self._path = charged, path
        return True

    def _extended(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Copy of values by node, with 0 for the nodes that were cut since the last charge."""
        return np.append(values, np.zeros(len(self._growing.parent) - len(values), np.int64))

    def _raise_paths(
        self, charged: NDArray[np.int64], path: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> None:
        """Carry larger path sums up to the root, deepest level first."""
        parent, level = self._growing.parent, self._growing.level
        # Deepest first, so that all children have raised a node before it raises its parent.
        for depth in range(int(level[nodes].max(initial=0)), 0, -1):
            is_deepest = level[nodes] == depth
            deepest = nodes[is_deepest]
            up = parent[deepest]
            np.maximum.at(path, up, charged[up] + path[deepest])
            nodes = np.flatnonzero(self._marked(nodes[~is_deepest]) | self._marked(up))

    def _marked(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mask of the nodes of the tree, True for these nodes."""
        marked = np.zeros(len(self._growing.parent), bool)
        marked[nodes] = True
        return marked


# ln 4, rounded up.
_LN_4 = Fraction(1_386_294_361_119_890_619, 10**18)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitRule:
    """When a node is split, for each cell that a shape grows from. Public."""

    numerator: int  # the scale of the noise, lambda, is numerator / denominator
    denominator: NDArray[np.int64]  # (n,) int64; denominator for each cell
    # (n,) int64; nano-epsilon of the shape of each cell, all of its tests together.
    epsilon: NDArray[np.int64]
    # (n,) int64; records that are subtracted from the count of a node per level below its cell.
    delta: NDArray[np.int64]

    def biased(
        self, counts: NDArray[np.int64], depth: int, family: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """b(v) = max(c(v) - depth delta, -delta), private; depth: below the cells `family`."""
        delta = self.delta[family]
        floored: NDArray[np.int64] = np.maximum(counts - depth * delta, -delta)
        return floored

    def test(
        self, counts: NDArray[np.int64], depth: int, family: NDArray[np.int64]
    ) -> ThresholdMechanism:
        """Test that splits a node if b(v), see `biased`, plus noise is above 0. Private."""
        return ThresholdMechanism(
            values=self.biased(counts, depth, family),
            numerator=self.numerator,
            denominator=self.denominator[family],
            cost=self.epsilon[family],
        )


def split_rule(epsilon: NDArray[np.int64], contributions: int) -> SplitRule:
    """Lambda = 7 k / (3 epsilon) and delta, the least integer that is at least lambda ln 4.

    epsilon: (n,) int64, nano-epsilon of each cell's shape. A smaller delta, or one that is no
    integer, would cost more than epsilon; see `Curator.privtree_shape`.
    """
    # One delta for each distinct loss, in integers of any size.
    numerator = 7 * contributions * NANO
    # Equal losses have one delta, computed as an exact fraction.
    losses, which = np.unique(epsilon, return_inverse=True)
    deltas = [ceil(Fraction(numerator, 3 * int(loss)) * _LN_4) for loss in losses]
    return SplitRule(
        numerator=numerator,
        denominator=3 * epsilon,
        epsilon=epsilon,
        delta=np.array(deltas, np.int64)[which],
    )


def grow(
    growing: GrowingTree,
    points: Points,
    cells: Cells,
    rule: SplitRule,
    height: int,
    sampler: Sampler,
    inside_boundary: Callable[[Cells], NDArray[np.bool_]] | None = None,
) -> Cells:
    """Halve both axes of the nodes that the rule splits, level by level; returns the leaves.

    points: private; all else public. Every node draws, also an empty one, but single lattice cells,
    nodes at the largest height, and those that can have no records in any data (`inside_boundary`).
    """
    nodes, family = cells.nodes, np.arange(len(cells))
    leaves: list[NDArray[np.int64]] = []
    for depth in range(height):
        boxes = growing.boxes[nodes]
        is_divisible = (boxes[:, 2:] - boxes[:, :2] > 1).any(axis=1)
        if inside_boundary is not None:
            is_divisible &= inside_boundary(growing.cells(nodes))
        # Leaves of this level: single lattice cells, and cells that no record can be in.
        leaves.append(nodes[~is_divisible])
        nodes, family = nodes[is_divisible], family[is_divisible]
        if len(nodes) == 0:
            break
        splits = sampler.draw(rule.test(points.count(nodes), depth, family))
        # If the nodes of a level would be too many, it is not split: the answer is a part of the
        # shape, cut off at a level that the shape itself determines.
        # Splits are drawn, so a stop by how many they are tells no more than they do.
        if len(growing.parent) + MAX_CHILDREN * int(splits.sum()) > MAX_SHAPE_NODES:
            break
        leaves.append(nodes[~splits])
        nodes, parts = _halved(growing, points, nodes[splits])
        family = np.repeat(family[splits], parts)
    return growing.cells(np.concatenate([*leaves, nodes]))


def _halved(
    growing: GrowingTree, points: Points, nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut nodes halfway on both axes: their children, and how many each has."""
    cells = growing.cells(nodes)
    cut = growing.cut(cells, x=cells.middle(0), y=cells.middle(1))
    points.cut(cut)
    is_child = cut.child >= 0
    return cut.child[is_child], is_child.sum(axis=1)
