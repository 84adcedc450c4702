"""Topology of a release: nodes in level order, their parents, noisy counts and epsilons.

Nothing here has a shape. `psd.space.box_tree.Tree` adds boxes; least squares, posterior medians
and the variances of published counts read a `Hierarchy` alone, so they hold for named regions
with any number of children as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import read_only_copy
from psd.errors import ReleaseFormatError
from psd.privacy.count_noise import CountNoise

__all__ = ["MAX_LEVELS", "Hierarchy", "check_hierarchy", "topology_rules"]

MAX_LEVELS = 256
"""Cells of a lattice of 2^30 lines a side are single ones after 60 halvings."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchy:
    """Nodes in level order, each family of children contiguous, all arrays read-only.

    Parameters
    ----------
    parent : ndarray, shape (n,), int32
        Index of the parent, -1 for the root; never decreasing.
    level : ndarray, shape (n,), int16
        Steps from the root, which has level 0.
    count : ndarray, shape (n,), int64
        Noisy count; 0 where the node is not measured.
    loss : ndarray, shape (n,), int64
        Loss paid for the count, in parts of the measure of the noise: nano-epsilon, or units of
        1e-12 of rho; 0 where the node is not measured.
    noise : CountNoise
        Noise of the counts.
    """

    parent: NDArray[np.int32]
    level: NDArray[np.int16]
    count: NDArray[np.int64]
    loss: NDArray[np.int64]
    noise: CountNoise = CountNoise()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Give every array its type and make it read-only."""
        types = {"parent": "int32", "level": "int16", "count": "int64", "loss": "int64"}
        for name, dtype in types.items():
            object.__setattr__(self, name, read_only_copy(getattr(self, name), dtype))

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def first_child(self) -> NDArray[np.int64]:
        """Index of each node's first child, shape (n,); meaningless for leaves."""
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
    def levels(self) -> tuple[slice, ...]:
        """Slice of the nodes of each level, the root's first."""
        ends = np.searchsorted(self.level, np.arange(int(self.level[-1]) + 2))
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    @cached_property
    def max_path_loss(self) -> int:
        """Largest sum of losses from the root to a leaf, in parts of the measure."""
        spent = self.loss.copy()
        for level in self.levels[1:]:
            spent[level] += spent[self.parent[level]]
        return int(spent.max())


def check_hierarchy(hierarchy: Hierarchy) -> None:
    """Refuse arrays that are not a hierarchy.

    Guarantees
    ----------
    - Levels and parents are in order; counts stand only where epsilon was spent. The number of
      children is not limited.

    Raises
    ------
    ReleaseFormatError
        With the first rule that is broken.
    """
    for rule, holds in topology_rules(hierarchy):
        if not holds:
            raise ReleaseFormatError(f"not a hierarchy: {rule}; the file is damaged or foreign")


def topology_rules(hierarchy: Hierarchy) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    yield "there is no node", len(hierarchy) > 0
    is_root = hierarchy.parent[0] == -1 and hierarchy.level[0] == 0
    yield "the first node is not the root", bool(is_root)
    yield "a parent is missing or comes after its child", _parents_in_order(hierarchy.parent)
    yield "a level is not one below its parent's", _levels_in_order(hierarchy)
    yield f"it has more than {MAX_LEVELS} levels", int(hierarchy.level[-1]) < MAX_LEVELS
    measure = hierarchy.noise.measure
    yield f"{measure.one_text} is negative or above 1,000", _losses_in_range(hierarchy)
    yield "an unmeasured node has a count", not hierarchy.count[hierarchy.loss == 0].any()


def _parents_in_order(parent: NDArray[np.int32]) -> bool:
    """Whether parents never decrease, precede their children and have none of them negative."""
    rest = parent[1:].astype(np.int64)
    in_range = (rest >= 0).all() and (rest < np.arange(1, len(parent))).all()
    return bool(in_range and (np.diff(rest) >= 0).all())


def _levels_in_order(hierarchy: Hierarchy) -> bool:
    """Whether each node is one level below its parent."""
    above = np.repeat(hierarchy.level.astype(np.int64), hierarchy.children)
    return bool((hierarchy.level[1:] == above + 1).all())


def _losses_in_range(hierarchy: Hierarchy) -> bool:
    """Whether every loss is one that could be asked for, so that no path's sum overflows."""
    loss, largest = hierarchy.loss, hierarchy.noise.measure.largest
    return bool(((loss >= 0) & (loss <= largest)).all())
