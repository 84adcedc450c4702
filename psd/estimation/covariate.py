"""A public covariate: the density that it gives inside the leaves, and how wrong it is there.

Density inside the leaves by a public covariate: dasymetric mapping [1]_.

A leaf keeps its count; inside it, the density is proportional to the covariate. A leaf in which the
covariate is 0 keeps its count too, spread evenly. Post-processing.

A covariate that is only roughly right is wrong in the same direction in all leaves of a query: too
few records where it is dense, or too many. The divisions of the cells above tell how wrong.

.. [1] Wright. "A Method of Mapping Densities of Population, with Cape Cod as an Example."
   Geographical Review 26(1), 1936.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.density import CoordinateTransform
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import (
    children_of,
    family_batches,
    join_parts,
    overdispersion_of_leaves,
)
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.polygon_areas import ClippedPolygons, cover_by_pieces
from psd.space.region_tree import RegionTree

_TINY = 1e-300


def parent_shares(tree: Tree, covariate: Covariate | None) -> Floats:
    """Share of each node in the mass of its parent, or in its area if the mass is 0.

    Returns (nodes,) float64, 1 for the root. Without a covariate, shares are those of areas.
    """
    area = tree.area.astype(np.float64)
    share = np.ones(len(tree))
    # By area first, which stays where the covariate says that nobody is.
    share[1:] = area[1:] / area[tree.parent[1:]]
    if covariate is not None:
        mass = covariate.mass(tree.boxes)
        parent_mass = mass[tree.parent[1:]]
        share[1:] = np.where(
            parent_mass > 0, mass[1:] / np.where(parent_mass > 0, parent_mass, 1.0), share[1:]
        )
    return share


def region_shares(tree: RegionTree, covariate: Covariate | None) -> Floats:
    """Share of each cell in the mass of its parent inside their region, or in its area there.

    Returns (nodes,) float64; 0 for named regions and the nodes between them, whose records are not
    shared out by area. The mass of a covariate in a cell is taken to be even inside and outside the
    region.
    """
    mass = tree.clipped_area
    if covariate is not None:
        # Of a cell that an outline cuts, the covariate is taken as even over the cell.
        mass = mass * covariate.mass(tree.boxes) / np.maximum(tree.area, 1)
    share, first = np.zeros(len(tree)), len(tree.frame)
    above = tree.parent[first:]
    # Shares are of the sum of the siblings, so that they add up to 1 where cells are cut.
    total = sum_by(above, mass[first:], len(tree))[above]
    area = tree.clipped_area[first:] / np.maximum(tree.clipped_area[above], _TINY)
    share[first:] = np.where(total > 0, mass[first:] / np.maximum(total, _TINY), area)
    return share


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateDensity:
    """Share of a leaf's count in a part of it: the share of the leaf's mass there."""

    covariate: Covariate

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it; see `psd.estimation.density.Density`."""
        leaf = tree.boxes[node].astype(np.float64)
        corner, size = leaf[:, :2], leaf[:, 2:] - leaf[:, :2]
        box = np.concatenate([corner + low * size, corner + high * size], axis=1)
        mass, leaf_mass = self.covariate.mass(box), self.covariate.mass(leaf)
        return _share(mass, leaf_mass, (high - low).prod(axis=1))

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: ClippedPolygons,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in a polygon, divided along the lines of the raster."""
        covariate, leaf = self.covariate, tree.boxes[node]
        mass, covered = np.zeros(len(node)), np.zeros(len(node))
        boxes = covariate.to_raster(leaf)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        # A polygon becomes boxes of raster lines with the share of each that it covers.
        for part in cover_by_pieces(outlines, which, boxes, covariate.from_raster_units):
            inside = covariate.raster_mass(part.boxes) * part.fraction
            mass += np.bincount(part.owner, inside, len(node))
            size = (part.boxes[:, 2:] - part.boxes[:, :2]).prod(axis=1) * part.fraction
            covered += np.bincount(part.owner, size, len(node))
        return _share(mass, covariate.mass(leaf), covered / area)


def _share(mass: Floats, leaf_mass: Floats, even: Floats) -> Floats:
    """Share of the mass, or of the area if the mass is 0."""
    share = np.where(leaf_mass > 0, mass / np.where(leaf_mass > 0, leaf_mass, 1.0), even)
    return np.clip(share, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Products:
    """By family: deviations times what the covariate moved, and squares of the latter."""

    level: Integers
    along: Floats
    square: Floats


def covariate_error(tree: Tree, estimates: Estimates, share: Floats, even: Floats) -> float:
    """Estimate the relative error of what a covariate moves inside the leaves.

    share, even: (nodes,) float64, of its parent's records that each node has by the covariate, and
    without it; returns a number in [0, 1]: 0 for a covariate that is right, 1 if it should move
    twice as much, or nothing.

    The deviations z - g Z of children from their shares g of a family of Z records are regressed on
    (g - a) Z, where a is the share without the covariate. What the noise adds to both products is
    subtracted. For the leaves of a level, both are summed over the families on the levels just
    above it, as in `psd.estimation.nonuniformity.overdispersion_of_leaves`; the result is the mean
    over the records of the leaves.
    """
    products = join_parts(
        _Products,
        [_products_of(tree, estimates, share, even, parents) for parents in family_batches(tree)],
    )
    levels = len(tree.levels)
    along = sum_by(products.level, products.along, levels)
    square = sum_by(products.level, products.square, levels)
    families = np.bincount(products.level, minlength=levels).astype(np.float64)
    # Two estimates by one product, the one of each sign: the larger states no error too small.
    error = np.maximum(
        overdispersion_of_leaves(along, square, families),
        overdispersion_of_leaves(-along, square, families),
    )
    # Levels weigh as many records as their leaves hold.
    count = np.maximum(estimates.count, 0.0) * tree.is_leaf
    total = float(count.sum())
    return float((count * error[tree.level]).sum()) / total if total > 0 else 0.0


def _products_of(
    tree: Tree, estimates: Estimates, share: Floats, even: Floats, parents: Integers
) -> _Products:
    """Products of the families whose children are all measured."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]
    noise, count = (sum_by(owner, values, len(parents)) for values in (variance, value))
    # A family with a child that was not measured says nothing, but keeps its place.
    measured = np.isfinite(noise)
    noise = np.where(measured, noise, 0.0)
    variance = np.where(measured[owner], variance, 0.0)
    moved, total = g - even[child], count[owner]
    # Products of noisy numbers, less what their common noise adds on average.
    along = moved * ((value - g * total) * total - (variance - g * noise[owner]))
    square = moved**2 * (total**2 - noise[owner])
    along, square = (sum_by(owner, values, len(parents)) for values in (along, square))
    return _Products(
        level=tree.level[parents[measured]].astype(np.int64),
        along=along[measured],
        square=square[measured],
    )
