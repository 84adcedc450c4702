"""A tree whose upper nodes are named regions, and whose cells are clipped to the lowest of them.

Boxes of regions overlap, so a record has a lattice cell and a lowest region. From a public
hierarchy, the tree has the root, the regions of each level (`RegionFrame`), and below each lowest
region cells whose boxes tile its box; only the part of a cell in its region has records. No node
has more than four children, by virtual nodes, so counts are made not negative in small families.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges
from psd.errors import ParameterError
from psd.space.box_tree import (
    MAX_CHILDREN,
    Tree,
    box_rules,
    check_tree,
    children_tile,
    refuse_broken,
)
from psd.space.cube_tree import CubeTree, check_cube

__all__ = ["ELSEWHERE", "PAIRS", "RegionTree", "region_frame"]

PAIRS = 2
"""Most children of a node of regions in a cube, whose cuts have one line."""

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
    fan: int = MAX_CHILDREN  # most children of a node

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def lowest(self) -> NDArray[np.int64]:
        """Nodes of the lowest regions, in order; they are the last nodes of the frame."""
        return np.arange(len(self) - int(self.stop[0]), len(self))

    def named(self, tier: int) -> NDArray[np.int64]:
        """Nodes of a level of the hierarchy, in the order of its regions."""
        return np.flatnonzero(self.tier == tier)


def region_frame(
    regions: Regions, lattice: tuple[int, int], fan: int = MAX_CHILDREN
) -> RegionFrame:
    """Make the frame of a hierarchy.

    P1. No node has more than `fan` children. All regions of a level are on one level of the tree.
    P2. The lowest regions below any node are neighbours in the order of the hierarchy.
    """
    parents, tiers, indices = [np.array([-1])], [np.array([-1])], [np.array([-1])]
    above = np.array([0])  # nodes of the regions of the level above
    nodes = 1
    for tier, level in enumerate(regions.levels):
        # Families: the regions of this level below each one of the level above.
        up = level.parent.astype(np.int64)
        # Regions below one parent stand together, or lowest regions of a node were no range.
        in_order = len(up) > 0 and up.min() >= 0 and (np.diff(up) >= 0).all()
        if not in_order or up[-1] >= len(above):
            raise ParameterError(f"parents of level {level.name!r} must never decrease")
        size = np.bincount(up, minlength=len(above))
        if (size == 0).any():
            raise ParameterError(f"every region above level {level.name!r} must have a part in it")

        # Steps down to the members of the families: nodes of no region, and at last the regions.
        steps, child = _virtual_steps(size, above, nodes, fan)
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
    # Each step is one level of the tree.
    depth = [np.full(len(part), number) for number, part in enumerate(parents)]
    parent = np.concatenate(parents)
    boxes, first, stop = _extents(parent, regions.boxes.astype(np.int64))
    # The root is the whole lattice, also where no region lies.
    boxes[0] = (0, 0, *lattice)
    return RegionFrame(
        parent=parent,
        level=np.concatenate(depth),
        boxes=boxes,
        tier=np.concatenate(tiers),
        index=np.concatenate(indices),
        first=first,
        stop=stop,
        fan=fan,
    )


def _virtual_steps(
    size: NDArray[np.int64], node: NDArray[np.int64], nodes: int, fan: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Parents of nodes per step from families to members, equally many for all; and the members."""
    steps: list[NDArray[np.int64]] = []
    room = 1  # members below a node of the next step
    while room * fan < int(size.max()):
        room *= fan
    while True:
        # Each node gets an even part of its family, so none has more than `fan` children.
        parts = -(-size // room)
        owner = np.repeat(np.arange(len(size)), parts)
        number = ranges(np.zeros_like(parts), parts)
        edges = (number * size[owner] // parts[owner], (number + 1) * size[owner] // parts[owner])
        steps.append(node[owner])
        node = nodes + np.arange(len(owner))
        size, nodes = edges[1] - edges[0], nodes + len(owner)
        if room == 1:
            return steps, node
        room //= fan


def _extents(
    parent: NDArray[np.int64], lowest: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Box around each node, and its lowest regions, from the last nodes up."""
    boxes = np.empty((len(parent), 4), np.int64)
    # Empty boxes: the first one that is added widens them to itself.
    boxes[:, :2], boxes[:, 2:] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    first, stop = np.full(len(parent), len(lowest)), np.zeros(len(parent), np.int64)
    leaves = np.arange(len(parent) - len(lowest), len(parent))
    boxes[leaves], first[leaves] = lowest, np.arange(len(lowest))
    stop[leaves] = first[leaves] + 1
    # Level by level, what is below a node widens its box and its range of regions.
    nodes = leaves
    while nodes[0] > 0:
        up = parent[nodes]
        # `at` adds repeated parents one by one, where plain indexing keeps the last.
        np.minimum.at(boxes[:, :2], up, boxes[nodes, :2])
        np.maximum.at(boxes[:, 2:], up, boxes[nodes, 2:])
        np.minimum.at(first, up, first[nodes])
        np.maximum.at(stop, up, stop[nodes])
        nodes = np.unique(up)
    return boxes, first, stop


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionTree(Tree):
    """Regions, with overlapping `boxes` around them, and cells that tile the lowest; read-only."""

    regions: Regions  # hierarchy of the named nodes
    fan: int = MAX_CHILDREN  # most children of a node above the lowest regions

    @cached_property
    def frame(self) -> RegionFrame:
        """The upper nodes: those of the tree that come first."""
        lattice = int(self.boxes[0, 2]), int(self.boxes[0, 3])
        return region_frame(self.regions, lattice, self.fan)

    @cached_property
    def region(self) -> NDArray[np.int32]:
        """Lowest region of each node, shape (n,); -1 for nodes that are made of several."""
        # From the lowest regions down: cells are of the region of their parent.
        region = np.full(len(self), -1, np.int32)
        region[self.frame.lowest] = np.arange(self.regions.size)
        for level in self.levels[int(self.frame.level[-1]) + 1 :]:
            region[level] = region[self.parent[level]]
        return region

    @cached_property
    def clipped_area(self) -> Floats:
        """Area of each node inside its regions, in lattice cells, shape (n,)."""
        frame, box_area = self.frame, super().area.astype(np.float64)
        area = np.zeros(len(self))
        lowest = np.arange(self.regions.size, dtype=np.int32)
        area[frame.lowest] = self.regions.clipped_area(lowest, self.regions.boxes)
        for level in self.levels[int(frame.level[-1]) + 1 :]:
            up = self.parent[level]
            area[level] = box_area[level]  # right where all of the parent is inside
            cut = level.start + np.flatnonzero(area[up] < box_area[up])
            boxes = self.boxes[cut].astype(np.int64)
            area[cut] = self.regions.clipped_area(self.region[cut], boxes)
        # Upwards the areas of regions add up, for they share no ground.
        for level in reversed(self.levels[1 : int(frame.level[-1]) + 1]):
            np.add.at(area, self.parent[level], area[level])
        area.flags.writeable = False
        return area

    @cached_property
    def outside(self) -> NDArray[np.bool_]:
        """Leaves that no record of their region can lie in; they are empty in every data set."""
        empty: NDArray[np.bool_] = self.is_leaf & (self.loss == 0) & (self.region >= 0)
        cells = np.flatnonzero(empty)
        empty[cells] = ~self.regions.meets(self.region[cells], self.boxes[cells].astype(np.int64))
        return empty

    @cached_property
    def region_shapes(self) -> NDArray[np.object_]:
        """Polygons of the lowest regions, in the CRS of the domain, clipped to its bounds."""
        return self.regions.shapes()

    @cached_property
    def region_index(self) -> Any:
        """Index of these polygons (``shapely.STRtree``)."""
        import shapely

        return shapely.STRtree(self.region_shapes)

    def named(self, tier: int) -> NDArray[np.int64]:
        """Nodes of a level of the hierarchy, in the order of its regions."""
        return self.frame.named(tier)


def named_tree(tree: Tree, regions: Regions, fan: int = MAX_CHILDREN) -> RegionTree:
    """Make a tree of regions of the nodes of a file; `check_cells` checks it."""
    nodes: dict[str, Any] = {field.name: getattr(tree, field.name) for field in fields(tree)}
    return RegionTree(**nodes, regions=regions, fan=fan)


def check_cells(tree: Tree, lattice: tuple[int, int]) -> None:
    """Refuse arrays that are not a tree of cells, or of regions and their cells.

    P3. As `psd.space.box_tree.check_tree`. In a region tree the first nodes are those of the
    hierarchy, and the children of a cell tile its box.
    """
    if isinstance(tree, CubeTree):
        check_cube(tree, lattice)
        return
    if not isinstance(tree, RegionTree):
        check_tree(tree, lattice)
        return
    refuse_broken("tree of regions", _rules(tree, lattice))


def _rules(tree: RegionTree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    yield from box_rules(tree, lattice)
    frame = tree.frame
    upper = slice(0, len(frame))
    yield "a region has no node", len(tree) >= len(frame)
    yield (
        "the upper nodes are not those of the hierarchy",
        bool(
            np.array_equal(tree.parent[upper], frame.parent)
            and np.array_equal(tree.boxes[upper], frame.boxes)
            and (tree.parent[len(frame) :] >= len(frame) - tree.regions.size).all()
        ),
    )
    yield "the children of a cell do not tile it", children_tile(tree, len(frame))
