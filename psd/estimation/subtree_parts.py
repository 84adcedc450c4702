"""A hierarchy in parts: the levels from the root to some depth, and subtrees below them.

What is computed from the leaves up and from the root down needs all of a hierarchy in memory; part
by part it needs the top and one part, and computes the parts twice.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from psd._util.arrays import Integers
from psd.space.hierarchy import Hierarchy

__all__ = ["halfway_level", "subtree_parts"]


def subtree_parts(tree: Hierarchy, max_nodes: int) -> tuple[int, list[list[slice]]]:
    """Divide a hierarchy at the depth at which top and largest part are smallest.

    Parameters
    ----------
    tree : Hierarchy
        What is divided. Public.
    max_nodes : int
        Nodes of a part, unless a single subtree has more.

    Returns
    -------
    depth : int
        Level of the roots of the parts; 0 where all of the hierarchy is one part.
    parts : list of list of slice
        Nodes of each part, level by level from that depth down.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    >>> subtree_parts(psd.decompositions.grid_tree(domain, 4), 10)
    (1, [[slice(1, 3, None), slice(5, 13, None)], [slice(3, 5, None), slice(13, 21, None)]])
    """
    if len(tree) <= max_nodes:
        return 0, [list(tree.levels)]
    size = _subtree_sizes(tree)
    depth = _halfway(tree, size)
    roots = tree.levels[depth]
    ends = np.cumsum(size[roots])
    edges = [0]
    while edges[-1] < len(ends):
        before = int(ends[edges[-1] - 1]) if edges[-1] else 0
        fits = int(np.searchsorted(ends, before + max_nodes, side="right"))
        edges.append(max(fits, edges[-1] + 1))
    return depth, [
        _levels_below(tree, slice(roots.start + a, roots.start + b)) for a, b in pairwise(edges)
    ]


def halfway_level(tree: Hierarchy) -> int:
    """Level down to which there are as few nodes as in the largest subtree below, or nearly so.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    >>> halfway_level(psd.decompositions.grid_tree(domain, 4))
    1
    """
    return _halfway(tree, _subtree_sizes(tree))


def _halfway(tree: Hierarchy, size: Integers) -> int:
    """Level at which the top, or the largest subtree, is smallest; `size` is of all subtrees."""
    larger = [max(level.stop, int(size[level].max())) for level in tree.levels]
    return int(np.argmin(larger))


def _subtree_sizes(tree: Hierarchy) -> Integers:
    """Nodes of the subtree of each node, itself included."""
    size = np.ones(len(tree), np.int64)
    for level in reversed(tree.levels[1:]):
        np.add.at(size, tree.parent[level], size[level])
    return size


def _levels_below(tree: Hierarchy, roots: slice) -> list[slice]:
    """Neighbouring nodes of a level, and their descendants, which are neighbours as well."""
    levels = [roots]
    while True:
        last = levels[-1].stop - 1
        first = int(tree.first_child[levels[-1].start])
        end = int(tree.first_child[last] + tree.children[last])
        if first == end:
            return levels
        levels.append(slice(first, end))
