"""A tree while it grows, one per layer of a curator: cells are made only by cutting. No points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import MAX_CHILDREN, Tree, quadrants
from psd.space.cube_tree import CubeTree, SliceCap, divide_cells, filled_parts
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.space.axes import Axis
    from psd.space.region_tree import RegionFrame, Regions

_NOISE = CountNoise()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Nodes of one growing tree, in the form that a decomposition gets.

    Only the curator makes them, by cutting, so a family of children is disjoint. Questions use
    the node numbers alone: changing a box changes no question.

    Parameters
    ----------
    layer : int
        Which of the curator's trees the nodes belong to.
    nodes : ndarray, shape (n,), int64
        Node numbers in that tree.
    boxes : ndarray, shape (n, 4), int64
        West, south, east, north lattice lines of each cell.
    spans : ndarray, shape (n, 2 A), int64, or None
        Of a tree over A further axes: first cell of each axis, and the one after the last.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> run = run_method(psd.decompositions.Quadtree(height=1), small_tally(2, [0]),
    ...     small_domain(2), 1_000, RecordingSampler())
    >>> root = run.curator.root()
    >>> root.nodes.tolist(), root.boxes.tolist()
    ([0], [[0, 0, 2, 2]])
    """

    layer: int
    nodes: NDArray[np.int64]
    boxes: NDArray[np.int64]
    spans: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Cells:
        """Select cells by mask, index or slice."""
        if isinstance(which, np.ndarray) and which.dtype == bool and which.all():
            return self
        spans = None if self.spans is None else self.spans[which]
        return Cells(
            layer=self.layer, nodes=self.nodes[which], boxes=self.boxes[which], spans=spans
        )

    def middle(self, axis: int) -> NDArray[np.int64]:
        """Lattice line in the middle of each cell; its low edge if it is one line wide."""
        return (self.boxes[:, axis] + self.boxes[:, axis + 2]) // 2

    @staticmethod
    def join(parts: Iterable[Cells]) -> Cells:
        """Concatenate families of one layer."""
        parts = list(parts)
        spans = [part.spans for part in parts if part.spans is not None]
        return Cells(
            layer=parts[0].layer,
            nodes=np.concatenate([part.nodes for part in parts]),
            boxes=np.concatenate([part.boxes for part in parts]),
            spans=np.concatenate(spans) if spans else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """One cut of many nodes: the lines, and the number of the child in each quadrant.

    Its arrays are its own. D is the number of axes: x, y and those of a tree over further axes.
    """

    layer: int
    nodes: NDArray[np.int64]  # (n,) int64; nodes that were cut
    boxes: NDArray[np.int32 | np.int64]  # (n, 4), of the type of the tree's; their boxes
    # (n, D), of this type; the x line, the y line, ... of each; the far edge where an axis is not
    # cut.
    lines: NDArray[np.int32 | np.int64]
    # (n, 2^D) int64; child south-west, south-east, north-west, north-east of the lines, and so on,
    # see `psd.space.cube_tree.divide_cells`; -1 where empty.
    child: NDArray[np.int64]
    spans: NDArray[np.int64] | None = None  # (n, 2 A) int64; their spans of further axes

    @property
    def children(self) -> int:
        """Number of the children."""
        return int(np.count_nonzero(self.child >= 0))

    @property
    def cells(self) -> Cells:
        """The children, family by family, within a family by y then x; new arrays."""
        # With further axes a cell is one box of all axes: x and y, then the others.
        if self.spans is not None:
            low = np.concatenate([self.boxes[:, :2], self.spans[:, 0::2]], axis=1)
            high = np.concatenate([self.boxes[:, 2:], self.spans[:, 1::2]], axis=1)
            filled, edges = divide_cells(low, high, self.lines.astype(np.int64))
            axes = low.shape[1]
            spans = np.stack([edges[:, 2:axes], edges[:, axes + 2 :]], axis=2)
            return Cells(
                layer=self.layer,
                nodes=self.child[filled],
                boxes=edges[:, [0, 1, axes, axes + 1]],
                spans=spans.reshape(len(edges), 2 * (axes - 2)),
            )
        filled, boxes = self.child >= 0, cast("Any", quadrants(self.boxes, self.lines))
        boxes = boxes.reshape(-1, 4) if filled.all() else boxes[filled]
        return Cells(layer=self.layer, nodes=self.child[filled], boxes=boxes)

    def __getitem__(self, which: slice) -> Cut:
        """The cut of some of the nodes."""
        return Cut(
            layer=self.layer,
            nodes=self.nodes[which],
            boxes=self.boxes[which],
            lines=self.lines[which],
            child=self.child[which],
            spans=None if self.spans is None else self.spans[which],
        )


class GrowingTree:
    """A tree under construction: boxes, parents and noisy counts of its nodes.

    `layer`: number of this tree at its curator; `curve`: order of the Hilbert curve whose codes are
    the columns, 0 for the lattice itself.
    P1. Children tile their parent; a node is cut once.
    """

    def __init__(
        self,
        lattice: tuple[int, int],
        layer: int = 0,
        curve: int = 0,
        axes: tuple[Axis, ...] = (),
    ) -> None:
        self.layer = layer
        self.curve = curve
        self.axes = axes
        # Codes of a curve have up to 60 bits, lattice lines 31.
        self.boxes: NDArray[np.int32 | np.int64] = np.array(
            [[0, 0, *lattice]], np.int64 if curve else np.int32
        )
        self.parent = np.array([-1], np.int32)
        self.level = np.array([0], np.int16)
        self.count = np.array([0])
        self.loss = np.array([0])
        self._sums: NDArray[np.int64] | None = None  # (at most n, V, 2), see `measure`
        # (n, 2 A), of the further axes; or (n, 2), first lowest region and the one after the last.
        self.spans: NDArray[np.int32 | np.int64] = np.array(
            [[edge for axis in axes for edge in (0, axis.size)]], np.int32
        )
        self.regions: Regions | None = None
        self._fan = MAX_CHILDREN  # most children of nodes of regions
        # Shares inside the region, of the nodes for which they were computed; else NaN.
        self._inside = np.array([np.nan])
        self._is_cut = np.array([False])

    @classmethod
    def of_tree(cls, tree: Tree) -> GrowingTree:
        """A tree of the plane whose leaves are cut further; its nodes keep their numbers."""
        growing = cls((int(tree.boxes[0, 2]), int(tree.boxes[0, 3])))
        for name in ("boxes", "parent", "level", "count", "loss"):
            setattr(growing, name, getattr(tree, name).astype(getattr(growing, name).dtype))
        growing._is_cut = ~tree.is_leaf
        return growing

    def cells(self, nodes: NDArray[np.int64]) -> Cells:
        """Give nodes as cells."""
        spans = self.spans_of(nodes) if self.axes else None
        return Cells(layer=self.layer, nodes=nodes, boxes=self.boxes_of(nodes), spans=spans)

    def boxes_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Boxes of nodes, shape (n, 4), int64; a copy."""
        return np.take(self.boxes, nodes, axis=0).astype(np.int64, copy=False)

    def spans_of(self, nodes: NDArray[np.integer]) -> NDArray[np.int64]:
        """Spans of nodes, of further axes or of regions, int64; a copy."""
        return np.take(self.spans, nodes, axis=0).astype(np.int64, copy=False)

    def root(self) -> Cells:
        """Give the root: one cell, the domain."""
        return self.cells(np.array([0]))

    def is_cut(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether nodes were cut already."""
        return self._is_cut[nodes]

    def cut(
        self,
        cells: Cells,
        lines: Mapping[str, ArrayLike] | None = None,
        /,
        *,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ) -> Cut:
        """Cut cells, each once, at lattice lines into up to four children each.

        x, y: (n,) int, a line per cell; an axis without lines, or with a line on an edge, is not
        divided; lines: those of further axes, by name; at most two axes of a cell are divided.
        """
        nodes, boxes = np.array(cells.nodes), self.boxes_of(cells.nodes)
        low, high, spans = boxes[:, :2], boxes[:, 2:], None
        given = [x, y]
        if self.axes:
            spans = self.spans_of(nodes)
            low = np.concatenate([low, spans[:, 0::2]], axis=1)
            high = np.concatenate([high, spans[:, 1::2]], axis=1)
            given += [(lines or {}).get(axis.name) for axis in self.axes]
        unknown = (lines or {}).keys() - {axis.name for axis in self.axes}
        if unknown:
            raise ParameterError(f"lines must be those of an axis of the layer, got {min(unknown)}")
        # Lines, (n, axes); an axis without a line keeps its low end, which divides nothing.
        at = np.stack(
            [low[:, a] if line is None else line for a, line in enumerate(given)], axis=1
        ).astype(np.int64)
        # A mask of all nodes finds repetitions without a sort.
        named = np.zeros(len(self.parent), bool)
        named[nodes] = True
        if self.is_cut(nodes).any() or np.count_nonzero(named) < len(nodes):
            raise ParameterError(
                "a cell is cut twice; start another layer, which is charged on top"
            )
        if (at < low).any() or (at > high).any():
            raise ParameterError("a cut line lies outside its cell")
        # An axis that is not divided has its line at the far edge.
        at = np.where(at <= low, high, at)
        divided = at < high
        if self.axes and (divided.sum(axis=1) > 2).any():
            raise ParameterError("a cut must divide at most two axes of a cell")
        is_filled = filled_parts(divided)
        # Children are numbered on from the last node, cell by cell, the empty quadrants left out.
        number = np.cumsum(is_filled).reshape(is_filled.shape) - 1 + len(self.parent)
        child = np.where(is_filled, number, -1)
        # Cuts are kept, so their lines have as few bits as the tree's.
        cut = Cut(
            layer=self.layer,
            nodes=nodes,
            boxes=boxes.astype(self.boxes.dtype, copy=False),
            lines=at.astype(self.boxes.dtype, copy=False),
            child=child,
            spans=spans,
        )
        self._is_cut[nodes] = True
        parent = np.repeat(nodes, is_filled.sum(axis=1))
        parts = cut.cells
        self._append(parent, parts.boxes, self.level[parent] + 1)
        if parts.spans is not None:
            self.spans = np.concatenate([self.spans, parts.spans], dtype=np.int32)
        if self.regions is not None:
            # A part of a node is in its region, and inside of it where all of the node is.
            is_inside = np.where(self._inside[parent] == 1, 1.0, np.nan)
            self._append_to_regions(self.spans_of(parent), is_inside)
        return cut

    def cut_regions(self, regions: Regions, frame: RegionFrame) -> None:
        """Cut the root, which has no children yet, into the nodes of a public hierarchy."""
        if len(self.parent) > 1 or self.curve or self.axes:
            raise ParameterError(
                "only the root can be cut into regions, before any other cut; start another layer, "
                "which is charged on top"
            )
        # Nodes of the frame, each with its range of lowest regions.
        spans = np.stack([frame.first, frame.stop], axis=1)
        self._append(frame.parent[1:], frame.boxes[1:], frame.level[1:])
        self.spans = spans[:1]
        self._append_to_regions(spans[1:], np.full(len(spans) - 1, np.nan))
        # Regions above the lowest have their parts already; the lowest may be cut into cells.
        self._is_cut[: frame.lowest[0]] = True
        self.regions, self._fan = regions, frame.fan

    def _append(
        self,
        parent: NDArray[np.integer],
        boxes: NDArray[np.integer],
        level: NDArray[np.integer],
    ) -> None:
        """Add nodes without measurement; the system gives no memory to numbers that stay 0."""
        for name, more in (("boxes", boxes), ("parent", parent), ("level", level)):
            values = getattr(self, name)
            setattr(self, name, np.concatenate([values, more], dtype=values.dtype))
        for name in ("count", "loss", "_is_cut"):
            values = getattr(self, name)
            # Not by `concatenate`, which would write the zeros.
            grown = np.zeros(len(self.parent), values.dtype)
            grown[: len(values)] = values
            setattr(self, name, grown)

    def _append_to_regions(
        self, spans: NDArray[np.integer], is_inside: NDArray[np.float64]
    ) -> None:
        """Add what is known of nodes in regions."""
        self.spans = np.concatenate([self.spans, spans])
        self._inside = np.concatenate([self._inside, is_inside])

    def may_have_records(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which nodes meet their region: all that are not cells, or regions, by themselves.

        P2. False only if no record of the region can lie in the node.
        """
        may_have = np.ones(len(nodes), bool)
        if self.regions is None:
            return may_have
        first, stop = self.spans[nodes].T
        # A node that has an area inside its region is not asked about further.
        of_one_region = np.flatnonzero((stop - first == 1) & ~(self._inside[nodes] > 0))
        region = first[of_one_region].astype(np.int32)
        may_have[of_one_region] = self.regions.meets(region, self.boxes_of(nodes[of_one_region]))
        return may_have

    def share_inside(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the area of nodes inside their region; 1 without regions. Public."""
        if self.regions is None:
            return np.ones(len(nodes))
        first, stop = self.spans[nodes].T
        if (stop - first > 1).any():
            raise ParameterError("cells must be lowest regions, or cells in them, for their mass")
        # Each share is computed once: areas inside outlines are what regions cost most.
        without_share = nodes[np.isnan(self._inside[nodes])]
        boxes = self.boxes_of(without_share)
        area = self.regions.clipped_area(self.spans[without_share, 0].astype(np.int32), boxes)
        self._inside[without_share] = area / (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        return self._inside[nodes]

    def measure(
        self,
        nodes: NDArray[np.int64],
        counts: NDArray[np.int64],
        loss: NDArray[np.int64],
        sums: NDArray[np.int64] | None = None,
    ) -> None:
        """Store noisy counts of nodes, the loss paid for each, and noisy sums (n, V, 2) or None."""
        self.count[nodes] = counts
        self.loss[nodes] = loss
        if sums is not None:
            if self._sums is None:
                self._sums = np.zeros((len(self.parent), *sums.shape[1:]), np.int64)
            grown = len(self.parent) - len(self._sums)
            if grown:  # nodes that were made since the last question
                self._sums = np.pad(self._sums, ((0, grown), (0, 0), (0, 0)))
            self._sums[nodes] = sums

    def tree(self, noise: CountNoise = _NOISE, cap: SliceCap | None = None) -> Tree:
        """Sort nodes into level order by families; `noise` of their counts, by `cap` if in rho."""
        if self.curve:
            raise ParameterError("a tree of a curve has no boxes; count squares on a lattice")
        boxes, parent, level = self.boxes, self.parent, self.level
        count, loss, sums, spans = self.count, self.loss, self._sums, self.spans
        # Nodes made after the last question have no sums yet.
        if sums is not None:
            sums = np.pad(sums, ((0, len(parent) - len(sums)), (0, 0), (0, 0)))
        # Whether the nodes are in level order, each family together.
        if not bool((np.diff(self.level) >= 0).all() and (np.diff(self.parent) >= 0).all()):
            order = self._level_order()
            # Where each node went, so that parents are named by their new numbers.
            rank = np.empty(len(order), np.int32)
            rank[order] = np.arange(len(order))
            boxes, level, count, loss = boxes[order], level[order], count[order], loss[order]
            sums = None if sums is None else sums[order]
            spans = spans[order] if self.axes else spans
            parent = np.where(parent[order] < 0, -1, rank[parent[order]])
        for array in (boxes, parent, level):  # never written to, so the tree needs no copies
            array.flags.writeable = False
        arrays: dict[str, Any] = {
            "boxes": boxes,
            "parent": parent,
            "level": level,
            "count": count,
            "loss": loss,
            "noise": noise,
            "sums": sums,
        }
        if self.axes:
            return CubeTree(**arrays | {"spans": spans}, axes=self.axes, cap=cap)
        if self.regions is None:
            return Tree(**arrays)
        return RegionTree(**arrays, regions=self.regions, fan=self._fan)

    @property
    def rank(self) -> NDArray[np.int64]:
        """Number of each node in the tree of `tree`."""
        order = self._level_order()
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return rank

    def _level_order(self) -> NDArray[np.int64]:
        """Numbers of the nodes in level order, each family together."""
        rank = np.zeros(len(self.parent), np.int64)
        by_level = np.split(
            np.argsort(self.level, kind="stable"), np.cumsum(np.bincount(self.level))[:-1]
        )
        for depth, nodes in enumerate(by_level):
            # Families are in the order of their parents; nodes of a family keep their order.
            by_level[depth] = nodes[np.argsort(rank[self.parent[nodes]], kind="stable")]
            rank[by_level[depth]] = np.arange(len(nodes))
        return np.concatenate(by_level)


def refine_plane(joint: CubeTree, plane: Tree) -> tuple[Tree, NDArray[np.int64], NDArray[np.int64]]:
    """The tree of the plane with all boxes of a joint tree; added nodes have no count.

    Also returns the new number of each node of the plane, (m,), and of each joint node's box, (n,).
    """
    growing = GrowingTree.of_tree(plane)
    # Children of each node by place, which grows as leaves of the plane are cut.
    child = np.full((len(plane), 4), -1)
    place = np.arange(1, len(plane)) - plane.first_child[plane.parent[1:]]
    child[plane.parent[1:], place] = np.arange(1, len(plane))

    # A node with one child is the same cell as this child, which may be divided.
    deepest = np.arange(len(plane))
    for level in reversed(plane.levels):
        single = level.start + np.flatnonzero(plane.children[level] == 1)
        deepest[single] = deepest[plane.first_child[single]]

    node = np.zeros(len(joint), np.int64)
    node[0] = deepest[0]
    for level in joint.levels[1:]:
        at, boxes = node[joint.parent[level]], joint.boxes[level]
        smaller = np.flatnonzero((growing.boxes[at] != boxes).any(axis=1))
        # Leaves of the plane that are divided are cut as the first family that divides them is.
        cut, first = np.unique(at[smaller], return_index=True)
        is_leaf = ~growing.is_cut(cut)
        cut, first = cut[is_leaf], smaller[first[is_leaf]]
        if len(cut):
            # The first child of a family is its south-west part.
            made = growing.cut(growing.cells(cut), x=boxes[first, 2], y=boxes[first, 3])
            child = np.concatenate([child, np.full((made.children, 4), -1)])
            deepest = np.append(deepest, np.arange(len(deepest), len(child)))
            child[cut] = made.child
        # The child of the plane's node that has the box of the joint node.
        above = at[smaller]
        found = np.full(len(smaller), -1)
        for each in child[above].T:
            same = (growing.boxes[each] == boxes[smaller]).all(axis=1) & (each >= 0)
            found[same] = deepest[each[same]]
        if (found < 0).any():
            raise ParameterError("the cells of a cube must be cut where its plane is cut")
        at[smaller] = found
        node[level] = at
    # Of nodes that are the same cell, the highest, which every traversal meets first.
    highest = np.arange(len(child))
    for level in plane.levels[:-1]:
        single = level.start + np.flatnonzero(plane.children[level] == 1)
        highest[plane.first_child[single]] = highest[single]
    rank = growing.rank
    return growing.tree(plane.noise), rank[: len(plane)], rank[highest[node]]
