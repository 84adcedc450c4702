"""Polygons: covered fractions by exact areas; with a coordinate resolution, shares of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.errors import ParameterError
from psd.query.lines import Sides, find_sides
from psd.query.region_nodes import RegionPieces, is_clipped, with_unions
from psd.query.totals import QueryTotals, concatenate, query_totals
from psd.query.traversal import Fraction, Traversal, traverse
from psd.space.polygon_areas import clip_outlines, divide_outlines
from psd.space.region_tree import RegionTree
from psd.space.regions import outline_lengths, region_text

if TYPE_CHECKING:
    from psd.estimation.fit import Fit
    from psd.space.domain import Domain

__all__ = ["MAX_VALUES"]


MAX_VALUES = 1024
"""Values of a leaf up to which each is tested; larger leaves are measured by area."""

# Values tested together, about 50 MB.
_VALUES_PER_BATCH = 2**17


def has_few_values(fit: Fit, node: Integers) -> NDArray[np.bool_]:
    """Whether a share of values is used for leaves, (n,): a resolution, and few values."""
    if fit.domain.coordinate_resolution is None:
        return np.zeros(len(node), bool)
    return fit.tree.area[node] <= MAX_VALUES


def value_shares(
    fit: Fit, shapes: NDArray[np.object_], query: Integers, node: Integers
) -> tuple[Floats, Floats]:
    """Shares of the records, by density, and of the values of leaves in polygons, (n,) each.

    shapes: (m,), in the CRS of the release; query, node: (n,) int64, pairs.
    """
    import shapely

    shapely.prepare(shapes)
    values = fit.tree.area[node]
    share, area = np.empty(len(node)), np.empty(len(node))
    # A value on the outline is inside where the polygon continues to the north-east, so polygons
    # that tile share no value and one that is a box has its answer.
    # Batches by the number of values, of which each leaf has its own, so that memory is bounded.
    batch = np.cumsum(values) // _VALUES_PER_BATCH
    for pairs in np.split(np.arange(len(node)), np.flatnonzero(np.diff(batch)) + 1):
        if len(pairs):
            share[pairs], area[pairs] = _batch_shares(fit, shapes, query[pairs], node[pairs])
    return share, area


def _batch_shares(
    fit: Fit, shapes: NDArray[np.object_], query: Integers, node: Integers
) -> tuple[Floats, Floats]:
    """Shares of some pairs; see `value_shares`."""
    import shapely

    tree, domain = fit.tree, fit.domain
    boxes, values = tree.boxes[node].astype(np.int64), tree.area[node]
    # All lattice cells of all leaves, row by row.
    width = boxes[:, 2] - boxes[:, 0]
    owner = np.repeat(np.arange(len(node)), values)
    row, column = np.divmod(ranges(np.zeros(len(node), np.int64), values), width[owner])
    corner = np.stack([column, row], axis=1)
    cell = boxes[owner, :2] + corner
    x, y = (domain.axes[axis].probe(cell[:, axis], axis) for axis in (0, 1))
    inside = np.flatnonzero(shapely.contains_xy(shapes[query[owner]], x, y))
    owner, corner = owner[inside], corner[inside]
    area = np.bincount(owner, minlength=len(node)) / values
    if fit.density is None:
        return area, area
    # Those inside, as boxes in shares of their leaf.
    size = (boxes[:, 2:] - boxes[:, :2])[owner]
    part = fit.density.part(tree, node[owner], corner / size, (corner + 1) / size)
    share = np.minimum(sum_by(owner, part, len(node)), 1.0)
    return np.where((area > 0) & (area < 1), share, area), area


# Polygons, and sides in cells, traversed together; bounds the memory, not the answers.
_POLYGONS_PER_BATCH = 256
_SIDES = 2**19


def polygon_totals(
    fit: Fit, shapes: NDArray[np.object_], names: Sequence[str] | None = None
) -> QueryTotals:
    """Query totals of valid polygons, (m,), in the CRS of the release; one outside is refused."""
    import shapely

    # Batches have few polygons, and few sides in cells.
    across = np.sqrt(fit.tree.is_leaf.sum())
    cuts = outline_lengths(shapes, fit.domain) * across
    batch = np.cumsum(shapely.get_num_coordinates(shapes) + cuts) // _SIDES
    part = batch + np.arange(len(shapes)) // _POLYGONS_PER_BATCH
    chunks = [chunk for chunk in np.split(shapes, np.flatnonzero(np.diff(part)) + 1) if len(chunk)]
    # All polygons are checked before the first one is answered.
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


def are_outside(shapes: NDArray[np.object_], domain: Domain) -> NDArray[np.bool_]:
    """Which shapes have no area in common with a domain."""
    clipped = clip_outlines(shapes, np.repeat([domain.bounds], len(shapes), axis=0))
    lost: NDArray[np.bool_] = ~clipped.cut & (clipped.fraction == 0)
    return lost


def traverse_polygons(fit: Fit, shapes: NDArray[np.object_]) -> Traversal:
    """Cells that valid polygons, (n,), cover, and how much of them; of leaves, by the density."""
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
        # A pair is the number of its query times the nodes, plus the node; at first the root.
        self._pairs = np.arange(len(shapes)) * len(fit.tree)
        tree = fit.tree
        self._pieces = RegionPieces(tree, fit.domain) if isinstance(tree, RegionTree) else None

    def __call__(self, query: Integers, node: Integers) -> tuple[Floats, Floats]:
        """Shares of points and of area; each cell is part of one of the last call, or the root."""
        tree, from_lattice = self._fit.tree, self._fit.domain.from_lattice
        parent = np.maximum(tree.parent[node], 0)
        above = np.searchsorted(self._pairs, query * len(tree) + parent)
        # Outlines were clipped to the cell above; each cell takes the sides of its own from there.
        self._outlines = divide_outlines(self._outlines, above, from_lattice(tree.boxes[node]))
        self._pairs = query * len(tree) + node
        cut, leaf = self._outlines.cut, tree.is_leaf[node]
        # A cell that is opened needs no share of its own: any number between 0 and 1 says so.
        area = np.where(cut & ~leaf, 0.5, self._outlines.fraction)
        partly = np.flatnonzero(leaf & (area > 0) & (area < 1))
        if isinstance(tree, RegionTree) and self._pieces is not None:
            # Cells that end at the outline of their region have the share of the part inside it.
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
