"""A tree whose upper nodes are named regions, and whose cells are clipped to the lowest of them.

The lattice boxes of regions overlap, so a box alone does not say which records a node has: a
record has a lattice cell and a lowest region. The tree has the root, the regions of each level with
virtual nodes in between (`psd.space.region_frame`), and below each lowest region cells whose boxes
tile its box. Only the part of a cell that lies in its region has records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.errors import ReleaseFormatError
from psd.space.box_tree import MAX_CHILDREN, Tree, check_tree, children_tile, topology_rules
from psd.space.region_frame import RegionFrame, Regions, region_frame

__all__ = ["RegionTree", "check_cells", "named_tree"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionTree(Tree):
    """A hierarchy of named regions, and of cells inside the lowest ones; arrays are read-only.

    `boxes` of regions are those around them, and overlap; those of cells tile the box of their
    region.
    """

    regions: Regions  # hierarchy of the named nodes

    @cached_property
    def frame(self) -> RegionFrame:
        """The upper nodes: those of the tree that come first."""
        return region_frame(self.regions, (int(self.boxes[0, 2]), int(self.boxes[0, 3])))

    @cached_property
    def region(self) -> NDArray[np.int32]:
        """Lowest region of each node, shape (n,); -1 for nodes that are made of several."""
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


def named_tree(tree: Tree, regions: Regions) -> RegionTree:
    """Make a tree of regions of the nodes of a file; `check_cells` checks it."""
    return RegionTree(
        boxes=tree.boxes,
        parent=tree.parent,
        level=tree.level,
        count=tree.count,
        loss=tree.loss,
        noise=tree.noise,
        regions=regions,
    )


def check_cells(tree: Tree, lattice: tuple[int, int]) -> None:
    """Refuse arrays that are not a tree of cells, or of regions and their cells.

    P1. As `psd.space.box_tree.check_tree`. In a region tree the first nodes are those of the
    hierarchy, and the children of a cell tile its box.
    """
    if not isinstance(tree, RegionTree):
        check_tree(tree, lattice)
        return
    for rule, holds in _rules(tree, lattice):
        if not holds:
            raise ReleaseFormatError(
                f"not a tree of regions: {rule}; the file is damaged or foreign"
            )


def _rules(tree: RegionTree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    yield from topology_rules(tree)
    yield "the root is not the whole lattice", (*tree.boxes[0],) == (0, 0, *lattice)
    yield "a box is empty", bool((tree.boxes[:, :2] < tree.boxes[:, 2:]).all())
    yield "a node has more than four children", bool((tree.children <= MAX_CHILDREN).all())
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
