"""Overlaps of the regions of one call: the leaves that they cut, and the area that two share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import InternalError, ParameterError
from psd.query.box_parts import box_fraction
from psd.query.lines import line_matrix, side_matrix
from psd.query.polygons import outline_sides, traverse_polygons
from psd.query.region_nodes import NamedUnions
from psd.query.traversal import Traversal, traverse

if TYPE_CHECKING:
    from scipy import sparse

    from psd.estimation.fit import Fit

__all__ = ["Polygons"]

MAX_REGIONS = 5_000
"""Maximum number of regions whose covariances are computed together: a matrix of 200 MB."""

# Regions traversed together; bounds the memory, not the answers.
_REGIONS_PER_BATCH = 512

# Polygons digitised side by side overlap by rounding; a larger share of the smaller is meant.
_SLIVER = 1e-9


class Regions(Protocol):
    """Regions of one kind, numbered 0 to len - 1."""

    def __len__(self) -> int: ...

    def traversals(self) -> Iterator[tuple[int, Traversal]]:
        """Traversals of all regions, a batch at a time, with the number of the first of them."""

    def common_parts(self, node: Integers, first: Integers, second: Integers) -> Floats:
        """Shares of each leaf that lie in both of two different regions; see `cut_leaves`."""

    def lines(self, region: Integers, node: Integers) -> sparse.csr_array | None:
        """Deviations along lines for the leaves that regions cut; see `line_matrix`."""

    def overlapping_pairs(self) -> Integers:
        """Pairs of regions with area in common, shape (n, 2), the smaller number first."""

    def lie_within(self, inner: Integers, outer: Integers) -> NDArray[np.bool_]:
        """Whether regions lie inside others, up to rounding, shape (n,)."""


def check_size(number: int) -> None:
    """Refuse too many regions for joint answers."""
    if number > MAX_REGIONS:
        raise ParameterError(
            f"regions must be at most {MAX_REGIONS:,} for joint answers, got {number:,}; "
            "the covariance of every two regions is computed"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """Boxes in lattice units, shape (n, 4), clipped to the lattice."""

    fit: Fit
    sides: Floats

    def __len__(self) -> int:
        return len(self.sides)

    def traversals(self) -> Iterator[tuple[int, Traversal]]:
        """Traversals, a batch at a time; see `Regions`."""
        for start in range(0, len(self), _REGIONS_PER_BATCH):
            batch = self.sides[start : start + _REGIONS_PER_BATCH]
            yield start, traverse(self.fit.tree, len(batch), box_fraction(self.fit, batch))

    def common_parts(self, node: Integers, first: Integers, second: Integers) -> Floats:
        """Shares of each leaf that lie in both of two boxes; see `Regions`."""
        both = _intersection(self.sides[first], self.sides[second])
        return np.stack(box_fraction(self.fit, both)(np.arange(len(node)), node))

    def lines(self, region: Integers, node: Integers) -> sparse.csr_array | None:
        """Deviations along the sides; see `Regions`."""
        return line_matrix(self.fit, region, node, self.sides)

    def overlapping_pairs(self) -> Integers:
        """Pairs with area in common; see `Regions`."""
        overlaps = []
        for start in range(0, len(self), _REGIONS_PER_BATCH):
            batch = self.sides[start : start + _REGIONS_PER_BATCH, None]
            both = _intersection(batch, self.sides[None])
            # Boxes that touch have no area in common; each pair stands once, lower number first.
            filled = (both[..., :2] < both[..., 2:]).all(axis=2)
            pairs = np.argwhere(filled) + np.array([start, 0])
            overlaps.append(pairs[pairs[:, 0] < pairs[:, 1]])
        return np.concatenate([np.empty((0, 2), np.int64), *overlaps])

    def lie_within(self, inner: Integers, outer: Integers) -> NDArray[np.bool_]:
        """Whether boxes lie inside others; see `Regions`."""
        a, b = self.sides[inner], self.sides[outer]
        return np.asarray(((a[:, :2] >= b[:, :2]) & (a[:, 2:] <= b[:, 2:])).all(axis=1))


def _intersection(a: Floats, b: Floats) -> Floats:
    """Boxes that two boxes have in common; empty ones end before they begin."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    return np.concatenate([low, high], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Polygons:
    """Polygons in the CRS of the release, shape (n,)."""

    fit: Fit
    shapes: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.shapes)

    def traversals(self) -> Iterator[tuple[int, Traversal]]:
        """Traversals, a batch at a time; see `Regions`."""
        for start in range(0, len(self), _REGIONS_PER_BATCH):
            batch = self.shapes[start : start + _REGIONS_PER_BATCH]
            yield start, traverse_polygons(self.fit, batch)

    def common_parts(self, node: Integers, first: Integers, second: Integers) -> Floats:
        """Shares of each leaf that lie in both of two polygons; see `Regions`."""
        import shapely

        # Each pair of polygons once, and the number of its pair for each entry.
        pair, pair_number = np.unique(
            np.stack([first, second], axis=1), axis=0, return_inverse=True
        )
        # Numbers of the pairs that overlap, and where.
        near = np.flatnonzero(shapely.intersects(*self._ends(pair)))
        shapes = shapely.intersection(*self._ends(pair[near]))
        shapes = np.array([_polygonal(shape) for shape in shapes] or [None], object)[: len(near)]
        filled = shapely.area(shapes) > 0
        number, shapes = near[filled], shapes[filled]
        which, leaf, parts = cut_leaves([(0, traverse_polygons(self.fit, shapes))])
        cut_key = number[which] * len(self.fit.tree) + leaf
        order = np.argsort(cut_key)
        # Entries look up their pair and leaf among those that the intersections cut.
        key = pair_number.ravel() * len(self.fit.tree) + node
        at = np.searchsorted(cut_key, key, sorter=order)
        at = order[np.minimum(at, len(cut_key) - 1)] if len(cut_key) else at
        met = cut_key[at] == key if len(cut_key) else np.zeros(len(node), bool)
        common = np.zeros((2, len(node)))
        common[:, met] = parts[:, at[met]]
        return common

    def lines(self, region: Integers, node: Integers) -> sparse.csr_array | None:
        """Deviations along the sides; see `Regions`."""
        sides = outline_sides(self.fit, self.shapes)
        return None if sides is None else side_matrix(self.fit, region, node, sides, len(self))

    def _ends(self, pairs: Integers) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """First and second shape of pairs."""
        return self.shapes[pairs[:, 0]], self.shapes[pairs[:, 1]]

    def overlapping_pairs(self) -> Integers:
        """Pairs with area in common; see `Regions`."""
        import shapely

        touching = shapely.STRtree(self.shapes).query(self.shapes, predicate="intersects").T
        pairs = np.unique(touching[touching[:, 0] < touching[:, 1]], axis=0)
        a, b = self._ends(pairs)
        # Outlines of neighbours differ by rounding: a sliver is no overlap.
        smaller = np.minimum(shapely.area(a), shapely.area(b))
        common: Integers = pairs[shapely.area(shapely.intersection(a, b)) > _SLIVER * smaller]
        return common

    def lie_within(self, inner: Integers, outer: Integers) -> NDArray[np.bool_]:
        """Whether polygons lie inside others; see `Regions`."""
        import shapely

        beyond = shapely.area(shapely.difference(self.shapes[inner], self.shapes[outer]))
        inside: NDArray[np.bool_] = beyond <= _SLIVER * shapely.area(self.shapes[inner])
        return inside


def common_regions(regions: Regions, pairs: Integers) -> Regions:
    """What pairs, (n, 2), of overlapping boxes, polygons or unions of regions have in common."""
    first, second = pairs.T
    if isinstance(regions, NamedUnions):
        rows, labels = regions.queries.rows, regions.queries.labels
        queries = replace(
            regions.queries,
            rows=tuple(tuple(sorted({*rows[a]} & {*rows[b]})) for a, b in pairs.tolist()),
            labels=tuple(labels[a] for a in first.tolist()),
        )
        return NamedUnions(tree=regions.tree, queries=queries)
    if isinstance(regions, Boxes):
        return Boxes(
            fit=regions.fit, sides=_intersection(regions.sides[first], regions.sides[second])
        )
    if not isinstance(regions, Polygons):
        raise InternalError("only boxes, polygons and unions have parts in common")
    import shapely

    common = shapely.intersection(regions.shapes[first], regions.shapes[second])
    shapes = np.empty(len(common), object)
    shapes[:] = [_polygonal(shape) for shape in common]
    return Polygons(fit=regions.fit, shapes=shapes)


def _polygonal(shape: Any) -> Any:
    """The part of an intersection that has area."""
    import shapely

    parts = shapely.get_parts(shape)
    return shapely.union_all(parts[shapely.area(parts) > 0])


def cut_leaves(traversals: Iterable[tuple[int, Traversal]]) -> tuple[Integers, Integers, Floats]:
    """Region and node, (n,), of the leaves that are cut; shares of points and area, (2, n)."""
    query, node, part = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((2, 0))]
    for start, traversal in traversals:
        for level in traversal.levels:
            # A leaf that a region covers completely has no variance of its own there.
            cut = ~level.opened & (level.area > 0) & (level.area < 1)
            query.append(level.query[cut] + start)
            node.append(level.node[cut])
            part.append(np.stack([level.fraction[cut], level.area[cut]]))
    keys = np.concatenate(query), np.concatenate(node)
    # By leaf and then by region, so that regions which share a leaf stand together.
    order = np.lexsort(keys)
    return keys[0][order], keys[1][order], np.concatenate(part, axis=1)[:, order]
