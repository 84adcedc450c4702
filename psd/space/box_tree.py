"""The one shape of every decomposition: a hierarchy whose nodes are boxes of the lattice.

A grid, a quadtree, a kd-tree and an h-tree are all a `Tree`; queries and exports are written
once, for that shape. No node has more than four children: wider families get virtual nodes in
between, which carry no measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import read_only_copy
from psd.errors import InternalError, ReleaseFormatError
from psd.space.boxes import all_inside, any_empty, box_sides
from psd.space.hierarchy import Hierarchy, topology_rules

__all__ = ["MAX_CHILDREN", "Tree", "check_tree", "children_tile", "locate"]

MAX_CHILDREN = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree(Hierarchy):
    """A hierarchy of boxes, all arrays read-only.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4), int32
        West, south, east, north lattice lines of each node, half-open.
    parent, level, count, loss, noise
        As in `psd.space.hierarchy.Hierarchy`.
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

    Guarantees
    ----------
    - The root is the whole lattice; the children of a node, at most four, tile it; levels and
      parents are in order; counts stand only where epsilon was spent.

    Parameters
    ----------
    tree : Tree
        Tree to check, for instance read from a file. Public.
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


def _rules(tree: Tree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    yield from topology_rules(tree)
    yield "the root is not the whole lattice", (*tree.boxes[0],) == (0, 0, *lattice)
    yield "a box is empty", not any_empty(tree.boxes)
    yield "a node has more than four children", bool((tree.children <= MAX_CHILDREN).all())
    yield "the children of a node do not tile it", children_tile(tree)


def children_tile(tree: Tree, start: int = 1) -> bool:
    """Whether children lie inside their parent, do not overlap, and have its area together.

    Of the families of the nodes from ``start`` on, which must be whole families.
    """
    parent = tree.parent[start:]
    if len(parent) == 0:
        return True
    inside = all_inside(tree.boxes[start:], tree.boxes.take(parent, 0))
    first = np.flatnonzero(np.diff(parent, prepend=-1))  # of each family
    area = tree.area
    full = np.add.reduceat(area[start:], first) == area[parent[first]]
    sides = np.ascontiguousarray(tree.boxes[start:].T)
    return inside and bool(full.all()) and not _siblings_overlap(sides, parent)


def _siblings_overlap(sides: NDArray[np.int32], parent: NDArray[np.int32]) -> bool:
    """Whether a child overlaps one of the next three in its family."""
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
    """Find the leaf that contains each lattice cell.

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
        above = node[moving]
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
