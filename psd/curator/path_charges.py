"""Charges to the nodes of a growing tree, and to its most expensive path. Holds no points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.space.growing_tree import GrowingTree


class PathCharges:
    """Charges to the nodes of one growing tree, which may grow between two charges.

    P1. `total` is the largest sum of charges along a root-to-leaf path, which is the largest sum
    over lattice points of all charges to cells that contain the point, in whatever order the nodes
    were charged.
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
        """Charge nodes if the total stays within a limit, else change nothing; whether it did.

        nodes: (n,) int64, each once; loss: (n,) int64, above 0. `pay` is called with the increase
        of the total before anything changes; if it raises, the charges stay as they are.
        """
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
