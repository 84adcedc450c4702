"""The upper part of a region tree: the root, named regions of every level, nodes between them.

It follows from a public hierarchy alone. A family of many regions gets virtual nodes in between, as
a grid does: no node has more than four children, so the projection onto counts that are not
negative runs in small families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges
from psd.errors import ParameterError
from psd.space.box_tree import MAX_CHILDREN

__all__ = ["ELSEWHERE", "NamedLevel", "RegionFrame", "Regions", "region_frame"]

ELSEWHERE = "elsewhere"
"""Id of the region of what lies in no other one, in each level."""


class NamedLevel(Protocol):
    """Level of a hierarchy of regions, as `psd.regions.hierarchy.RegionLevel`."""

    @property
    def name(self) -> str:
        """Name of the level."""

    @property
    def ids(self) -> Sequence[str]:
        """Ids of its regions."""

    @property
    def parent(self) -> NDArray[np.int32]:
        """Index of each region's parent in the level above, never decreasing; 0 on the first."""


class Regions(Protocol):
    """What a region tree needs of a public hierarchy of regions.

    The implementation is `psd.regions.hierarchy.RegionHierarchy`.
    """

    @property
    def levels(self) -> tuple[NamedLevel, ...]:
        """Levels, the highest first."""

    @property
    def size(self) -> int:
        """Number of the lowest regions."""

    @property
    def boxes(self) -> NDArray[np.int64]:
        """Lattice boxes around the lowest regions, shape (size, 4)."""

    def meets(self, region: NDArray[np.int32], boxes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a record of each lowest region may lie in the lattice box beside it."""

    def clipped_area(self, region: NDArray[np.int32], boxes: Integers | Floats) -> Floats:
        """Lattice cells of each lowest region in the lattice box beside it."""

    def shapes(self, level: int = -1) -> NDArray[np.object_]:
        """Polygons of a level in the CRS of the domain; of the lowest one by default."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionFrame:
    """Nodes of a region tree from the root to the lowest regions, in level order."""

    parent: Integers  # (n,) int64; as in `psd.space.box_tree.Hierarchy`, and so is the level
    level: Integers
    # (n, 4) int64; lattice box around each node; the whole lattice for the root.
    boxes: NDArray[np.int64]
    # (n,) int64; level of the hierarchy that a node is named on; -1 for the root and for virtual
    # nodes.
    tier: Integers
    index: Integers  # (n,) int64; index of a named node in its level; -1 for others
    first: Integers  # (n,) int64; lowest regions of each node: first to stop - 1
    stop: Integers

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def lowest(self) -> NDArray[np.int64]:
        """Nodes of the lowest regions, in order; they are the last nodes of the frame."""
        return np.arange(len(self) - int(self.stop[0]), len(self))

    def named(self, tier: int) -> NDArray[np.int64]:
        """Nodes of a level of the hierarchy, in the order of its regions."""
        return np.flatnonzero(self.tier == tier)


def region_frame(regions: Regions, lattice: tuple[int, int]) -> RegionFrame:
    """Make the frame of a hierarchy.

    P1. No node has more than four children. All regions of a level are on one level of the tree.

    P2. The lowest regions below any node are neighbours in the order of the hierarchy.
    """
    parents, tiers, indices = [np.array([-1])], [np.array([-1])], [np.array([-1])]
    above = np.array([0])  # nodes of the regions of the level above
    nodes = 1
    for tier, level in enumerate(regions.levels):
        size = _family_sizes(level, len(above))
        steps, child = _virtual_steps(size, above, nodes)
        for owner in steps:
            parents.append(owner)
            nodes += len(owner)
            tiers.append(np.full(len(owner), -1))
            indices.append(np.full(len(owner), -1))
        tiers[-1] = np.full(len(child), tier)
        indices[-1] = np.arange(len(child))
        above = child
    if len(above) != regions.size or len(regions.boxes) != regions.size:
        raise ParameterError("the lowest level must have as many regions as boxes")
    depth = [np.full(len(part), number) for number, part in enumerate(parents)]
    parent = np.concatenate(parents)
    boxes, first, stop = _extents(parent, regions.boxes.astype(np.int64))
    boxes[0] = (0, 0, *lattice)
    return RegionFrame(
        parent=parent,
        level=np.concatenate(depth),
        boxes=boxes,
        tier=np.concatenate(tiers),
        index=np.concatenate(indices),
        first=first,
        stop=stop,
    )


def _family_sizes(level: NamedLevel, above: int) -> NDArray[np.int64]:
    """Regions of a level below each one of the level above."""
    parent = level.parent.astype(np.int64)
    in_order = len(parent) > 0 and parent.min() >= 0 and (np.diff(parent) >= 0).all()
    if not in_order or parent[-1] >= above:
        raise ParameterError(f"parents of level {level.name!r} must never decrease")
    size = np.bincount(parent, minlength=above)
    if (size == 0).any():
        raise ParameterError(f"every region above level {level.name!r} must have a part in it")
    return size


def _virtual_steps(
    size: NDArray[np.int64], node: NDArray[np.int64], nodes: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Parents of the nodes of every step from families down to their members, and the members.

    All families have as many steps as the largest one needs, so that members are on one level.
    """
    steps: list[NDArray[np.int64]] = []
    room = 1  # members below a node of the next step
    while room * MAX_CHILDREN < int(size.max()):
        room *= MAX_CHILDREN
    while True:
        parts = -(-size // room)
        owner = np.repeat(np.arange(len(size)), parts)
        number = ranges(np.zeros_like(parts), parts)
        edges = (number * size[owner] // parts[owner], (number + 1) * size[owner] // parts[owner])
        steps.append(node[owner])
        node = nodes + np.arange(len(owner))
        size, nodes = edges[1] - edges[0], nodes + len(owner)
        if room == 1:
            return steps, node
        room //= MAX_CHILDREN


def _extents(
    parent: NDArray[np.int64], lowest: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Box around each node, and its lowest regions, from the last nodes up."""
    boxes = np.empty((len(parent), 4), np.int64)
    boxes[:, :2], boxes[:, 2:] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    first, stop = np.full(len(parent), len(lowest)), np.zeros(len(parent), np.int64)
    leaves = np.arange(len(parent) - len(lowest), len(parent))
    boxes[leaves], first[leaves] = lowest, np.arange(len(lowest))
    stop[leaves] = first[leaves] + 1
    # Level by level, what is below a node widens its box and its range of regions.
    nodes = leaves
    while nodes[0] > 0:
        up = parent[nodes]
        np.minimum.at(boxes[:, :2], up, boxes[nodes, :2])
        np.maximum.at(boxes[:, 2:], up, boxes[nodes, 2:])
        np.minimum.at(first, up, first[nodes])
        np.maximum.at(stop, up, stop[nodes])
        nodes = np.unique(up)
    return boxes, first, stop
