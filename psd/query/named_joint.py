"""Joint answers of named regions and unions of them, which cut no cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psd._util.arrays import Floats, Integers
from psd.query.joint import Joint, join_answers
from psd.query.region_nodes import (
    NamedQueries,
    answer_named_regions,
    find_named_regions,
    union_traversal,
)
from psd.query.region_overlaps import check_size
from psd.query.traversal import Traversal
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.estimation.model import CountModel
    from psd.query.reliability import Threshold

__all__ = ["answer_named_jointly"]


def answer_named_jointly(
    model: CountModel,
    tree: RegionTree,
    *,
    level: str | None,
    ids: Sequence[Any] | None,
    confidence: float,
    threshold: Threshold,
) -> Joint:
    """Answer named regions with the covariance of the answers; see `psd.api.region_release`.

    Raises
    ------
    ParameterError
        If a level or an id does not exist, or there are too many regions.
    """
    queries = find_named_regions(tree, level, ids)
    check_size(len(queries.rows))

    def answer(confidence: float) -> Any:
        return answer_named_regions(
            model, tree, level=level, ids=ids, confidence=confidence, threshold=threshold
        )

    return join_answers(model, _NamedUnions(tree=tree, queries=queries), answer, confidence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _NamedUnions:
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
