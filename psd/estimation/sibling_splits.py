"""Divisions of cells along one axis, as the noisy counts show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.estimation.least_squares import Estimates
from psd.space.box_tree import Tree

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

__all__ = ["Divisions", "children_of", "divisions", "family_batches", "join_parts"]

# Families worked on together; bounds the memory, not the result.
_PARENTS_PER_BATCH = 2**14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divisions:
    """Cells that are divided in two parts along one axis, both of them measured: arrays (n,)."""

    node: Integers  # divided cells
    line: Integers  # lattice line between the parts
    deviation: Floats  # estimated records of the lower part beyond its share
    count: Floats  # estimated records of both parts
    noise: Floats  # variance of the deviation that the noise causes
    share: Floats  # of the records that the lower part has if they lie as they are taken to


def divisions(tree: Tree, estimates: Estimates, share: Floats) -> tuple[Divisions, Divisions]:
    """List the divisions along x, and those along y.

    share: (nodes,) float64, of its parent's records that each node has if they lie as they are
    taken to.

    Counts are upward estimates, so those of different divisions of one level have independent
    errors.
    """
    parts = [_divisions_of(tree, estimates, share, parents) for parents in family_batches(tree)]
    along_x, along_y = zip(*parts, strict=True)
    return join_parts(Divisions, along_x), join_parts(Divisions, along_y)


def family_batches(tree: Tree) -> list[Integers]:
    """Nodes with children, some at a time; at least one batch."""
    parents = np.flatnonzero(~tree.is_leaf)
    starts = range(0, max(len(parents), 1), _PARENTS_PER_BATCH)
    return [parents[start : start + _PARENTS_PER_BATCH] for start in starts]


def join_parts(kind: type[T], parts: Sequence[T]) -> T:
    """Join the arrays of the results of batches; ``kind`` is a dataclass of arrays."""
    names = kind.__dataclass_fields__
    return kind(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def children_of(tree: Tree, parents: Integers) -> tuple[Integers, Integers]:
    """Children of nodes, family by family, and the index of the parent of each."""
    number = tree.children[parents]
    owner = np.repeat(np.arange(len(parents)), number)
    return tree.first_child[parents[owner]] + ranges(np.zeros_like(number), number), owner


def _divisions_of(
    tree: Tree, estimates: Estimates, share: Floats, parents: Integers
) -> list[Divisions]:
    """Divisions of some cells along x, and along y."""
    child, owner = children_of(tree, parents)
    boxes, of_parents, size = tree.boxes[child], tree.boxes[parents], len(parents)
    value, variance, part = estimates.upward[child], estimates.upward_variance[child], share[child]
    measured = np.isfinite(sum_by(owner, variance, size))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    count, share_sum = sum_by(owner, value, size), sum_by(owner, part, size)
    result = []
    for axis in (0, 1):
        # Children that begin where their parent does are the lower part, the others the upper one.
        is_lower = boxes[:, axis] == of_parents[owner, axis]
        lower, upper = np.flatnonzero(is_lower), np.flatnonzero(~is_lower)
        line = np.zeros(size, np.int64)
        line[owner[lower]] = boxes[lower, axis + 2]
        of_lower = sum_by(owner[lower], part[lower], size)
        of_lower /= np.where(share_sum > 0, share_sum, 1.0)
        # The deviation is (1 - g) L - g U for the counts L and U of the parts.
        noise = (1 - of_lower) ** 2 * sum_by(owner[lower], variance[lower], size)
        noise += of_lower**2 * sum_by(owner[upper], variance[upper], size)
        deviation = sum_by(owner[lower], value[lower], size) - of_lower * count
        divided = (line < of_parents[:, axis + 2]) & measured & (of_lower > 0) & (of_lower < 1)
        result.append(
            Divisions(
                node=parents[divided],
                line=line[divided],
                deviation=deviation[divided],
                count=count[divided],
                noise=noise[divided],
                share=of_lower[divided],
            )
        )
    return result
