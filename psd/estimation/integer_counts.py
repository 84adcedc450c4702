"""Integer counts that add up over a tree, by systematic rounding with one random number.

Post-processing: the number follows from the digest of the release, so that all readers of a file
have the same integers.

References
----------
.. [1] Madow. "On the Theory of Systematic Sampling, II." The Annals of Mathematical Statistics
   20(3), 1949. https://doi.org/10.1214/aoms/1177729988
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.space.box_tree import Hierarchy

__all__ = ["round_counts", "rounding_variance", "uniform_of_digest"]

# Hexadecimal digits of a digest that fit the mantissa of a float.
_DIGITS = 13


def round_counts(tree: Hierarchy, count: Floats, uniform: float) -> Floats:
    """Round counts to integers, of which the children of a node sum to it.

    count: (n,) float64, not negative, the children of a node sum to it, to rounding; returns (n,)
    float64. `uniform` is in [0, 1).

    P1. Each integer is the count rounded down or up; a count of 0 stays 0.

    P2. The children of a node sum to it exactly.

    P3. For `uniform` uniform in [0, 1), the mean of each integer is the count, to rounding.

    Let the leaves lie one after another on a line, depth first, each as long as its count, and a
    mark at each integer minus `uniform`. An integer is the number of marks on a leaf, so that of a
    node is the number of marks on its leaves, which are neighbours. A part of length x has floor(x)
    or ceil(x) marks, and x in the mean (Madow, 1949).
    """
    start, stop = _leaf_ranges(tree)
    leaves = np.flatnonzero(tree.is_leaf)
    length = np.zeros(len(leaves))
    length[start[leaves]] = count[leaves]
    marks = np.floor(np.concatenate([[0.0], np.cumsum(length)]) + uniform)
    rounded: Floats = marks[stop] - marks[start]
    return rounded


def rounding_variance(count: Floats) -> Floats:
    """Variance of each integer that the rounding of a count causes: that of one draw."""
    part = count - np.floor(count)
    variance: Floats = part * (1 - part)
    return variance


def uniform_of_digest(digest: str) -> float:
    """Number in [0, 1) from a digest in hexadecimal."""
    return int(digest[:_DIGITS], 16) / float(16**_DIGITS)


def _leaf_ranges(tree: Hierarchy) -> tuple[Integers, Integers]:
    """First leaf of each node, depth first, and the one after its last."""
    size = tree.is_leaf.astype(np.int64)
    for level in reversed(tree.levels[1:]):
        np.add.at(size, tree.parent[level], size[level])
    start = np.zeros(len(tree), np.int64)
    for level in tree.levels[1:]:
        # Leaves of the level up to each node, less those up to its first sibling.
        before = np.cumsum(size[level]) - size[level]
        parent = tree.parent[level]
        first = tree.first_child[parent] - level.start
        start[level] = start[parent] + before - before[first]
    return start, start + size
