"""Polygons: covered fractions by exact areas, in the CRS of the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.query.polygon_sides import Sides, find_sides
from psd.query.polygon_values import has_few_values, value_shares
from psd.query.region_cells import RegionPieces, is_clipped
from psd.query.region_unions import with_unions
from psd.query.totals import QueryTotals, concatenate, query_totals
from psd.query.traversal import Fraction, Traversal, traverse
from psd.space.polygon_areas import clip_outlines, divide_outlines
from psd.space.region_checks import outline_lengths, region_text
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.estimation.fit import Fit
    from psd.space.domain import Domain

__all__ = [
    "are_outside",
    "outline_sides",
    "polygon_fraction",
    "polygon_totals",
    "traverse_polygons",
]

# Polygons, and sides in cells, traversed together; bounds the memory, not the answers.
_POLYGONS_PER_BATCH = 256
_SIDES = 2**19


def polygon_totals(
    fit: Fit, shapes: NDArray[np.object_], names: Sequence[str] | None = None
) -> QueryTotals:
    """Query totals of polygons; one outside the domain is refused.

    shapes: (m,), valid polygons and multi-polygons in the CRS of the release. Messages name them by
    `names`, or by their numbers from 1.
    """
    chunks = _split_batches(fit, shapes)
    outside = np.concatenate([np.empty(0, bool), *(are_outside(c, fit.domain) for c in chunks)])
    if outside.any():
        raise ParameterError(
            f"{region_text(int(np.argmax(outside)), names)} lies outside the bounds "
            f"{fit.domain.bounds} of the release, where nothing was counted "
            f"({int(outside.sum()):,} of {len(shapes):,} do); remove it, or ask a query with "
            'outside="skip" or outside="zero"'
        )
    return concatenate(
        [
            query_totals(fit, traverse_polygons(fit, chunk), sides=outline_sides(fit, chunk))
            for chunk in chunks
        ]
    )


def outline_sides(fit: Fit, shapes: NDArray[np.object_]) -> Sides | None:
    """Sides of polygons; None where no records lie along lines."""
    return None if fit.line_deviation is None else find_sides(shapes, fit.domain)


def _split_batches(fit: Fit, shapes: NDArray[np.object_]) -> list[NDArray[np.object_]]:
    """Split shapes into batches of few polygons and few sides in cells."""
    import shapely

    across = np.sqrt(fit.tree.is_leaf.sum())
    cuts = outline_lengths(shapes, fit.domain) * across
    batch = np.cumsum(shapely.get_num_coordinates(shapes) + cuts) // _SIDES
    part = batch + np.arange(len(shapes)) // _POLYGONS_PER_BATCH
    return [chunk for chunk in np.split(shapes, np.flatnonzero(np.diff(part)) + 1) if len(chunk)]


def are_outside(shapes: NDArray[np.object_], domain: Domain) -> NDArray[np.bool_]:
    """Which shapes have no area in common with a domain."""
    clipped = clip_outlines(shapes, np.repeat([domain.bounds], len(shapes), axis=0))
    lost: NDArray[np.bool_] = ~clipped.cut & (clipped.fraction == 0)
    return lost


def traverse_polygons(fit: Fit, shapes: NDArray[np.object_]) -> Traversal:
    """Cells that polygons cover, and by how much; of leaves, by the density of the fit.

    shapes: (n,), valid, in the CRS of the fit.
    """
    return traverse(fit.tree, len(shapes), polygon_fraction(fit, shapes))


def polygon_fraction(fit: Fit, shapes: NDArray[np.object_]) -> Fraction:
    """Covered shares of cells by polygons, for one traversal; see `traverse_polygons`."""
    cells = _Descent(fit, shapes)
    return with_unions(fit.tree, shapes, cells) if isinstance(fit.tree, RegionTree) else cells


class _Descent:
    """Covered fractions level by level: cells are cut out of those of the level above."""

    def __init__(self, fit: Fit, shapes: NDArray[np.object_]) -> None:
        self._fit, self._shapes = fit, shapes
        bounds = np.array([fit.domain.bounds])
        self._outlines = clip_outlines(shapes, np.repeat(bounds, len(shapes), axis=0))
        self._pairs = np.arange(len(shapes)) * len(fit.tree)
        tree = fit.tree
        self._pieces = RegionPieces(tree, fit.domain) if isinstance(tree, RegionTree) else None

    def __call__(self, query: Integers, node: Integers) -> tuple[Floats, Floats]:
        """Shares of points and of area; each cell is part of one of the last call, or the root."""
        tree, from_lattice = self._fit.tree, self._fit.domain.from_lattice
        parent = np.maximum(tree.parent[node], 0)
        above = np.searchsorted(self._pairs, query * len(tree) + parent)
        self._outlines = divide_outlines(self._outlines, above, from_lattice(tree.boxes[node]))
        self._pairs = query * len(tree) + node
        cut, leaf = self._outlines.cut, tree.is_leaf[node]
        area = np.where(cut & ~leaf, 0.5, self._outlines.fraction)
        partly = np.flatnonzero(leaf & (area > 0) & (area < 1))
        if isinstance(tree, RegionTree) and self._pieces is not None:
            clipped = partly[is_clipped(tree, node[partly])]
            area[clipped] = self._pieces.shares(self._shapes, query[clipped], node[clipped])
            return area, area
        by_value = has_few_values(self._fit, node[partly])
        few, partly = partly[by_value], partly[~by_value]
        share = area.copy()
        share[partly] = self._leaf_shares(node[partly], partly, area[partly])
        if len(few):
            share[few], area[few] = value_shares(self._fit, self._shapes, query[few], node[few])
        return share, area

    def _leaf_shares(self, node: Integers, which: Integers, fraction: Floats) -> Floats:
        """Share of the counts of leaves that are cut, by the density of the fit."""
        tree, density = self._fit.tree, self._fit.density
        if density is None or not len(node):
            return fraction
        from_lattice = self._fit.domain.from_lattice
        return density.polygon(tree, node, self._outlines, which, from_lattice)
