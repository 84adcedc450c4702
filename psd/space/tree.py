"""The one shape of every decomposition: a tree of boxes with noisy integers on its nodes.

A grid, a quadtree, a kd-tree and an h-tree are all a `Tree`; inference, queries and exports are
written once, for that shape. No node has more than four children: wider families get virtual
nodes in between, which carry no measurement.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd.errors import InternalError, ReleaseFormatError
from psd.privacy.epsilon import MAX_EPSILON, NANO

__all__ = ["MAX_CHILDREN", "Tree", "check_tree", "locate"]

MAX_CHILDREN = 4

MAX_LEVELS = 256
"""Cells of a lattice of 2^30 lines a side are single ones after 60 halvings."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """Nodes in level order, each family of children contiguous, all arrays read-only.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4), int32
        West, south, east, north lattice lines of each node, half-open.
    parent : ndarray, shape (n,), int32
        Index of the parent, -1 for the root; never decreasing.
    level : ndarray, shape (n,), int16
        Steps from the root, which has level 0.
    count : ndarray, shape (n,), int64
        Noisy count; 0 where the node is not measured.
    epsilon : ndarray, shape (n,), int64
        Nano-epsilon spent on the count; 0 where the node is not measured.
    """

    boxes: NDArray[np.int32]
    parent: NDArray[np.int32]
    level: NDArray[np.int16]
    count: NDArray[np.int64]
    epsilon: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Give every array its type and make it read-only."""
        kinds = {"boxes": "int32", "parent": "int32", "level": "int16"}
        for name in ("boxes", "parent", "level", "count", "epsilon"):
            array = np.array(getattr(self, name), dtype=kinds.get(name, "int64"))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def first_child(self) -> NDArray[np.int64]:
        """Index of each node's first child, shape (n,); meaningless where there is none."""
        return 1 + np.cumsum(self.children) - self.children

    @cached_property
    def children(self) -> NDArray[np.int64]:
        """Number of children of each node, shape (n,), 0 to 4."""
        return np.bincount(self.parent[1:], minlength=len(self))

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes have no children, shape (n,)."""
        leaf: NDArray[np.bool_] = self.children == 0
        return leaf

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """Slice of the nodes of each level, the root's first."""
        ends = np.searchsorted(self.level, np.arange(int(self.level[-1]) + 2))
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    @cached_property
    def dearest_path(self) -> int:
        """Largest sum of nano-epsilon from the root to a leaf."""
        spent = self.epsilon.copy()
        for level in self.levels[1:]:
            spent[level] += spent[self.parent[level]]
        return int(spent.max())

    @cached_property
    def area(self) -> NDArray[np.int64]:
        """Lattice cells in each node, shape (n,)."""
        width, height = box_sides(self.boxes)
        return width * height


def box_sides(boxes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Width and height of boxes in lattice cells, as integers that cannot overflow."""
    west, south, east, north = boxes.T
    return np.subtract(east, west, dtype=np.int64), np.subtract(north, south, dtype=np.int64)


def check_tree(tree: Tree, lattice: tuple[int, int]) -> None:
    """Refuse arrays that are not a tree of cells over the lattice.

    Guarantees
    ----------
    - The root is the whole lattice; the children of a node, at most four, tile it; levels and
      parents are in order; counts stand only where epsilon was spent.

    Parameters
    ----------
    tree : Tree
        Candidate, for instance read from a file. Public.
    lattice : tuple of int
        Columns and rows of the domain.

    Raises
    ------
    ReleaseFormatError
        With the first rule that is broken.
    """
    for rule, holds in _rules(tree, lattice):
        if not holds:
            raise ReleaseFormatError(f"not a tree of cells: {rule}; the file is damaged or foreign")


def _rules(tree: Tree, lattice: tuple[int, int]) -> list[tuple[str, bool]]:
    """Rules in the order in which they can be evaluated safely."""
    rules = [("there is no node", len(tree) > 0)]
    if len(tree) == 0:
        return rules
    rules += [
        ("the root is not the whole lattice", (*tree.boxes[0],) == (0, 0, *lattice)),
        ("the first node is not the root", tree.parent[0] == -1 and tree.level[0] == 0),
        ("a parent is missing or comes after its child", _parents_in_order(tree.parent)),
    ]
    if not all(holds for _, holds in rules):
        return rules
    rules += [
        ("a level is not one below its parent's", _levels_in_order(tree)),
        (f"it has more than {MAX_LEVELS} levels", int(tree.level[-1]) < MAX_LEVELS),
        ("a box is empty", bool((tree.boxes[:, :2] < tree.boxes[:, 2:]).all())),
        ("a node has more than four children", bool((tree.children <= MAX_CHILDREN).all())),
        ("an epsilon is negative or above 1,000", _epsilons_in_range(tree.epsilon)),
        ("an unmeasured node has a count", not tree.count[tree.epsilon == 0].any()),
    ]
    if all(holds for _, holds in rules):
        rules += [("the children of a node do not tile it", _children_tile(tree))]
    return rules


def _parents_in_order(parent: NDArray[np.int32]) -> bool:
    """Whether parents never decrease, precede their children and have none of them negative."""
    rest = parent[1:].astype(np.int64)
    in_range = (rest >= 0).all() and (rest < np.arange(1, len(parent))).all()
    return bool(in_range and (np.diff(rest) >= 0).all())


def _levels_in_order(tree: Tree) -> bool:
    """Whether each node is one level below its parent."""
    above = np.repeat(tree.level.astype(np.int64), tree.children)
    return bool((tree.level[1:] == above + 1).all())


def _epsilons_in_range(epsilon: NDArray[np.int64]) -> bool:
    """Whether every epsilon is one that could be asked for, so that no path's sum overflows."""
    return bool(((epsilon >= 0) & (epsilon <= MAX_EPSILON * NANO)).all())


def _children_tile(tree: Tree) -> bool:
    """Whether children lie inside their parent, do not overlap, and have its area together."""
    parent = tree.parent[1:]
    if len(parent) == 0:
        return True
    sides = np.ascontiguousarray(tree.boxes.T)
    inside = all((side[1:] >= side[parent]).all() for side in sides[:2])
    inside = inside and all((side[1:] <= side[parent]).all() for side in sides[2:])
    first = np.flatnonzero(np.diff(parent, prepend=-1))  # of each family
    full = np.add.reduceat(tree.area[1:], first) == tree.area[parent[first]]
    return inside and bool(full.all()) and not _siblings_overlap(sides[:, 1:], parent)


def _siblings_overlap(sides: NDArray[np.int32], parent: NDArray[np.int32]) -> bool:
    """Compare each child with the next one, two and three places on in its family."""
    west, south, east, north = sides
    for step in range(1, MAX_CHILDREN):
        meet = parent[:-step] == parent[step:]
        for low, high in ((west, east), (south, north)):
            meet &= low[:-step] < high[step:]
            meet &= low[step:] < high[:-step]
        if meet.any():
            return True
    return False


def locate(tree: Tree, columns: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Leaf that holds each lattice cell.

    Parameters
    ----------
    tree : Tree
        Cells.
    columns, rows : ndarray, shape (n,), int32
        Lattice cells of the domain.

    Returns
    -------
    ndarray, shape (n,), int64
        Node numbers.
    """
    node = np.zeros(len(columns), np.int64)
    moving = np.flatnonzero(~tree.is_leaf[node])
    while len(moving):
        here = node[moving]
        for number in range(MAX_CHILDREN):
            child = tree.first_child[here] + np.minimum(number, tree.children[here] - 1)
            box = tree.boxes[child]
            inside = (columns[moving] >= box[:, 0]) & (columns[moving] < box[:, 2])
            inside &= (rows[moving] >= box[:, 1]) & (rows[moving] < box[:, 3])
            node[moving[inside]] = child[inside]
        if (node[moving] == here).any():
            raise InternalError("a lattice cell lies in no child of its cell")
        moving = moving[~tree.is_leaf[node[moving]]]
    return node
