"""The one shape of every decomposition: nodes in level order, which are boxes of the lattice.

A `Hierarchy` has nodes, parents, noisy counts and losses; `Tree` adds boxes: west, south, east,
north. Least squares, medians and variances read a `Hierarchy` alone, so they hold for named regions
as well. Boxes have at most four children: wider families get virtual nodes, without measurement.

An untrusted file is refused at the first part that breaks a rule, before the next part is decoded
(`check_next_nodes`). That children tile their parent needs complete families (`check_tree`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import read_only_copy
from psd.errors import InternalError, ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import LossMeasure

__all__ = ["MAX_CHILDREN", "Tree", "locate"]


MAX_LEVELS = 256
"""Cells of a lattice of 2^30 lines a side are single ones after 60 halvings."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchy:
    """Nodes in level order, each family of children contiguous, all arrays read-only."""

    parent: NDArray[np.int32]  # (n,); index of the parent, -1 for the root; never decreasing
    level: NDArray[np.int16]  # (n,); steps from the root, which has level 0
    count: NDArray[np.int64]  # (n,); noisy count; 0 where the node is not measured
    # (n,); paid for the count, in parts of the measure of the noise: nano-epsilon, or units of
    # 1e-12 of rho; 0 where the node is not measured
    loss: NDArray[np.int64]
    noise: CountNoise = CountNoise()  # noqa: RUF009 - frozen
    # (n, V, 2); noisy sums of the weights of V values towards their upper and lower bounds, see
    # `psd.privacy.values`; 0 where the node is not measured
    sums: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Give every array its type and make it read-only."""
        types = {"parent": "int32", "level": "int16", "count": "int64", "loss": "int64"}
        for name, dtype in types.items():
            object.__setattr__(self, name, read_only_copy(getattr(self, name), dtype))
        if self.sums is not None:
            object.__setattr__(self, "sums", read_only_copy(self.sums, "int64"))

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def first_child(self) -> NDArray[np.int64]:
        """Index of each node's first child, shape (n,); meaningless for leaves."""
        # Nodes stand level by level and families in the order of their parents, without a gap.
        return 1 + np.cumsum(self.children) - self.children

    @cached_property
    def children(self) -> NDArray[np.int64]:
        """Number of children of each node, shape (n,)."""
        return np.bincount(self.parent[1:], minlength=len(self))

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes have no children, shape (n,)."""
        leaf: NDArray[np.bool_] = self.children == 0
        return leaf

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """Only child of each node if that is a leaf, the same place again; else the node itself."""
        end = np.arange(len(self))
        node = np.flatnonzero(self.children == 1)
        node = node[self.is_leaf[self.first_child[node]]]
        end[node] = self.first_child[node]
        return end

    @cached_property
    def is_end(self) -> NDArray[np.bool_]:
        """Which nodes are leaves or have an only child that is one, shape (n,)."""
        is_end: NDArray[np.bool_] = self.is_leaf[self.end]
        return is_end

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """Slice of the nodes of each level, the root's first."""
        ends = np.searchsorted(self.level, np.arange(int(self.level[-1]) + 2))
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    def noise_variance(self) -> NDArray[np.float64]:
        """Variance of each count by its noise, in records squared; infinite where not measured."""
        return self.noise.variance(self.loss)

    def noise_rate(self, scale: int = 1) -> NDArray[np.float64]:
        """Parameter of the likelihood of each count; see `CountNoise.rate`."""
        return self.noise.rate(self.loss, scale)

    @cached_property
    def max_path_loss(self) -> int:
        """Largest sum of losses from the root to a leaf, in parts of the measure."""
        spent = self.loss.copy()
        # From the root down, since a parent has its whole path when its children are reached.
        for level in self.levels[1:]:
            spent[level] += spent[self.parent[level]]
        return int(spent.max())


def refuse_broken(kind: str, rules: Iterable[tuple[str, bool]]) -> None:
    """Refuse what breaks a rule; no rule after it is evaluated."""
    for rule, holds in rules:
        if not holds:
            raise ReleaseFormatError(f"not a {kind}: {rule}; the file is damaged or foreign")


def topology_rules(hierarchy: Hierarchy) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold.

    P1. Levels and parents are in order, counts only where epsilon was spent; children not limited.
    """
    yield "there is no node", len(hierarchy) > 0
    is_root = hierarchy.parent[0] == -1 and hierarchy.level[0] == 0
    yield "the first node is not the root", bool(is_root)
    # Whether parents never decrease, precede their children and have none of them negative.
    rest = hierarchy.parent[1:].astype(np.int64)
    in_range = (rest >= 0).all() and (rest < np.arange(1, len(hierarchy.parent))).all()
    in_order = bool(in_range and (np.diff(rest) >= 0).all())
    yield "a parent is missing or comes after its child", in_order
    # Whether each node is one level below its parent, which is repeated for each of its children.
    above = np.repeat(hierarchy.level.astype(np.int64), hierarchy.children)
    yield "a level is not one below its parent's", bool((hierarchy.level[1:] == above + 1).all())
    yield f"it has more than {MAX_LEVELS} levels", int(hierarchy.level[-1]) < MAX_LEVELS
    measure = hierarchy.noise.measure
    # Whether every loss is one that could be asked for, so that no path's sum overflows.
    loss, largest = hierarchy.loss, hierarchy.noise.measure.largest
    is_loss = bool(((loss >= 0) & (loss <= largest)).all())
    yield f"{measure.one_text} is negative or above 1,000", is_loss
    yield "an unmeasured node has a count", not hierarchy.count[hierarchy.loss == 0].any()


SIDES = ("west", "south", "east", "north")
"""Names of the four columns."""

Number = TypeVar("Number", bound=np.generic)


def box_sides(boxes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Width and height of boxes in lattice cells, as integers that cannot overflow."""
    west, south, east, north = boxes.T
    return np.subtract(east, west, dtype=np.int64), np.subtract(north, south, dtype=np.int64)


def any_empty(boxes: NDArray[np.int32]) -> bool:
    """Whether a box, (n, 4), has no width or no height."""
    west, south, east, north = boxes.T
    return not ((west < east).all() and (south < north).all())


def all_inside(boxes: NDArray[np.int32], outer: NDArray[np.int32]) -> bool:
    """Whether each box, (n, 4), lies in the outer box of the same row."""
    # Whole rows are compared, which takes less time than parts of them.
    above, below = boxes >= outer, boxes <= outer
    return all(bool(side.all()) for side in (*above.T[:2], *below.T[2:]))


def quadrants(boxes: NDArray[Number], lines: NDArray[Number]) -> NDArray[Number]:
    """Divide boxes (n, 4) at a vertical and a horizontal line each, (n, 2), x and y, not outside.

    Returns (n, 4, 4), the south-west, south-east, north-west and north-east part, maybe empty.
    """
    divided = np.empty((len(boxes), 16), boxes.dtype)
    for start in range(0, len(boxes), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        six = np.concatenate([boxes[part], lines[part]], axis=1)
        # One gather makes all sixteen sides.
        six.take(_QUADRANTS, axis=1, out=divided[part], mode="clip")
    return divided.reshape(-1, 4, 4)


# Columns of west, south, east, north, x and y that are the sides of the four quadrants.
_QUADRANTS = np.array([0, 1, 4, 5, 4, 1, 2, 5, 0, 5, 4, 3, 4, 5, 2, 3])

# Boxes that are divided at once: they fit into the cache of a processor.
_AT_ONCE = 2**11


MAX_CHILDREN = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree(Hierarchy):
    """A hierarchy of boxes, all arrays read-only.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4), int32
        West, south, east, north lattice lines of each node, half-open.
    parent, level, count, loss, noise
        As in `Hierarchy`.

    Examples
    --------
    >>> import psd
    >>> tree = psd.testing.release_from_counts([[5, 1], [0, 2]]).tree
    >>> tree.boxes.shape, tree.count.sum().item()
    ((5, 4), 8)
    """

    boxes: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Give every array its type and make it read-only."""
        super().__post_init__()
        object.__setattr__(self, "boxes", read_only_copy(self.boxes, "int32"))

    @property
    def area(self) -> NDArray[np.int64]:
        """Lattice cells in each node, shape (n,)."""
        width, height = box_sides(self.boxes)
        return width * height


def check_tree(tree: Tree, lattice: tuple[int, int]) -> None:
    """Refuse arrays that are not a tree of cells over the lattice.

    P2. The root is the whole lattice; the children of a node, at most four, tile it; levels and
    parents are in order; counts stand only where epsilon was spent.
    """
    refuse_broken("tree of cells", _rules(tree, lattice))


def children_tile(tree: Tree, start: int = 1) -> bool:
    """Whether children tile their parents, in the whole families of the nodes from ``start`` on."""
    parent = tree.parent[start:]
    if len(parent) == 0:
        return True
    inside = all_inside(tree.boxes[start:], tree.boxes.take(parent, 0))
    first = np.flatnonzero(np.diff(parent, prepend=-1))  # of each family
    area = tree.area
    # Parts that lie inside, meet nowhere and have the whole area together tile it.
    is_filled = np.add.reduceat(area[start:], first) == area[parent[first]]
    if not (inside and is_filled.all()):
        return False

    # A child may overlap one of the next three in its family alone.
    west, south, east, north = np.ascontiguousarray(tree.boxes[start:].T)
    for step in range(1, MAX_CHILDREN):
        meet = parent[:-step] == parent[step:]
        for low, high in ((west, east), (south, north)):
            meet &= low[:-step] < high[step:]
            meet &= low[step:] < high[:-step]
        if meet.any():
            return False
    return True


def locate(
    tree: Tree,
    columns: NDArray[np.int32],
    rows: NDArray[np.int32],
    start: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Find the leaf of each lattice cell, columns and rows (n,) int32, below nodes `start` (n,)."""
    node = np.zeros(len(columns), np.int64) if start is None else start.copy()
    # Cells go down together, one level in each round; those at a leaf drop out.
    moving = np.flatnonzero(~tree.is_leaf[node])
    while len(moving):
        above = node[moving]
        # Of smaller families the last child is asked again.
        for number in range(MAX_CHILDREN):
            child = tree.first_child[above] + np.minimum(number, tree.children[above] - 1)
            box = tree.boxes[child]
            inside = (columns[moving] >= box[:, 0]) & (columns[moving] < box[:, 2])
            inside &= (rows[moving] >= box[:, 1]) & (rows[moving] < box[:, 3])
            node[moving[inside]] = child[inside]
        if (node[moving] == above).any():
            raise InternalError("a lattice cell lies in no child of its cell")
        moving = moving[~tree.is_leaf[node[moving]]]
    return node


def box_rules(tree: Tree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield the rules of every tree over a lattice, as `topology_rules` does."""
    yield from topology_rules(tree)
    yield "the root is not the whole lattice", (*tree.boxes[0],) == (0, 0, *lattice)
    yield "a box is empty", not any_empty(tree.boxes)
    yield "a node has more than four children", bool((tree.children <= MAX_CHILDREN).all())


def _rules(tree: Tree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds."""
    yield from box_rules(tree, lattice)
    yield "the children of a node do not tile it", children_tile(tree)


def check_next_nodes(
    boxes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int16],
    loss: NDArray[np.int64],
    start: int,
    measure: LossMeasure,
) -> None:
    """Refuse nodes from `start` on, not checked yet, that cannot follow the ones before them."""
    refuse_broken("tree of cells", _partial_rules(boxes, parent, level, loss, start, measure))


def _partial_rules(
    boxes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int16],
    loss: NDArray[np.int64],
    start: int,
    measure: LossMeasure,
) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    if start == 0:
        yield "the first node is not the root", bool(parent[0] == -1 and level[0] == 0)
    first = max(start, 1)
    number, above = np.arange(first, len(parent)), parent[first:].astype(np.int64)
    in_range = (above >= 0).all() and (above < number).all()
    in_order = (np.diff(above, prepend=max(parent[first - 1], 0)) >= 0).all()
    yield "a parent is missing or comes after its child", bool(in_range and in_order)
    # Families follow each other, so with four children to a node no parent is further away.
    yield (
        "a node has more than four children",
        bool((above >= (number - 1) // MAX_CHILDREN).all()),
    )
    steps = level[first:] - level[above].astype(np.int64)
    yield "a level is not one below its parent's", bool((steps == 1).all())
    yield f"it has more than {MAX_LEVELS} levels", int(level[-1]) < MAX_LEVELS
    spent = loss[start:]
    yield (
        f"{measure.one_text} is negative or above 1,000",
        bool(((spent >= 0) & (spent <= measure.largest)).all()),
    )
    yield "a box is empty", not any_empty(boxes[start:])
    yield "the children of a node do not tile it", all_inside(boxes[first:], boxes.take(above, 0))
