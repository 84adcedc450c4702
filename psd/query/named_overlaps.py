"""What named regions and unions of them have in common; they cut no cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psd._util.arrays import Floats, Integers
from psd.query.region_nodes import NamedQueries, union_traversal
from psd.query.traversal import Traversal
from psd.space.region_tree import RegionTree

__all__ = ["NamedUnions"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedUnions:
    """Unions of regions of a level; see `psd.query.region_overlaps.Regions`."""

    tree: RegionTree
    queries: NamedQueries

    def __len__(self) -> int:
        return len(self.queries.rows)

    def traversals(self) -> Iterator[tuple[int, Traversal]]:
        """One traversal: unions stop at their regions, above all cells."""
        yield 0, union_traversal(self.tree, self.queries)

    def common_parts(self, node: Integers, first: Integers, second: Integers) -> Floats:
        """Nothing, since no leaf is cut."""
        return np.zeros((2, len(node)))

    def lines(self, region: Integers, node: Integers) -> None:
        """Nothing, since no leaf is cut."""

    def overlapping_pairs(self) -> Integers:
        """Unions with a region in common, the smaller number first."""
        member = self._members()
        common = sparse.triu(member @ member.T, k=1).tocoo()
        return np.stack([common.row, common.col], axis=1).astype(np.int64)

    def lie_within(self, inner: Integers, outer: Integers) -> NDArray[np.bool_]:
        """Whether all regions of unions are regions of others."""
        member = self._members()
        size = member.sum(axis=1)[inner]
        inside: NDArray[np.bool_] = member[inner].multiply(member[outer]).sum(axis=1) == size
        return inside

    def _members(self) -> sparse.csr_array:
        """Regions of each union, shape (unions, regions)."""
        size = [len(row) for row in self.queries.rows]
        row = np.repeat(np.arange(len(size)), size)
        column = np.concatenate([np.empty(0, np.int64), *map(np.array, self.queries.rows)])
        shape = (len(size), len(self.tree.regions.levels[self.queries.tier].ids))
        return sparse.csr_array((np.ones(len(row), np.int64), (row, column)), shape=shape)
