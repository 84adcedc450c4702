"""Density inside the leaves: uniform, or changing smoothly from leaf to leaf.

A leaf keeps its count; only where in the leaf the count lies is a guess. The smooth guess takes,
at every place, the mean density of a window as large as the leaf. Post-processing: the published
counts alone are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.estimation._constants import DENSITY_RASTER, EVEN_SHARE, SMOOTHING_PASSES
from psd.space.box_tree import Tree
from psd.space.polygon_areas import Outlines, divide_outlines

__all__ = ["PARTS", "CoordinateTransform", "Density", "SmoothDensity", "smooth_density"]

PARTS = 4
"""A leaf is described by PARTS x PARTS parts of equal area."""

_LEAVES_PER_BATCH = 16384


CoordinateTransform = Callable[[Floats], Floats]
"""Coordinates of boxes in lattice units, shape (n, 4)."""


class Density(Protocol):
    """Density of the points inside the leaves."""

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it.

        Parameters
        ----------
        tree : Tree
            Cells.
        node : ndarray, shape (n,), int64
            Leaves.
        low, high : ndarray, shape (n, 2), float64
            South-west and north-east corner of the boxes, 0 to 1 across the leaf, x before y.
        """

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: Outlines,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in a polygon.

        Parameters
        ----------
        tree : Tree
            Cells.
        node : ndarray, shape (n,), int64
            Leaves.
        outlines : Outlines
            Polygons in cells.
        which : ndarray, shape (n,), int64
            Which of them are in these leaves.
        from_lattice : callable
            Coordinates of boxes in lattice units.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothDensity:
    """Share of each leaf's count in each of its parts.

    Parameters
    ----------
    rank : ndarray, shape (nodes,), int64
        Number of each leaf among the leaves; meaningless for other nodes.
    share : ndarray, shape (leaves, PARTS, PARTS), float64
        Not negative, 1 in all for a leaf; rows from the south, columns from the west.
    """

    rank: Integers
    share: Floats

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it; see `Density`."""
        wide, tall = _part_overlaps(low[:, 0], high[:, 0]), _part_overlaps(low[:, 1], high[:, 1])
        inside: Floats = np.einsum("nyx,ny,nx->n", self.share[self.rank[node]], tall, wide)
        return np.asarray(np.minimum(inside, 1.0))

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: Outlines,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in a polygon, by its parts; see `Density`."""
        rows = _strip_boxes(tree.boxes[node].astype(np.float64), 1)
        parts = _strip_boxes(rows, 0)
        in_rows = divide_outlines(outlines, np.repeat(which, PARTS), from_lattice(rows))
        in_parts = divide_outlines(
            in_rows, np.repeat(np.arange(len(rows)), PARTS), from_lattice(parts)
        )
        of_leaves = in_parts.fraction.reshape(len(node), PARTS, PARTS)
        return np.asarray((of_leaves * self.share[self.rank[node]]).sum(axis=(1, 2)))


def _part_overlaps(low: Floats, high: Floats) -> Floats:
    """Covered share of each part along one side, shape (n, PARTS); nothing large cancels."""
    start, number = low[:, None] * PARTS, np.arange(PARTS)
    stop = high[:, None] * PARTS
    inside: Floats = np.maximum(np.minimum(stop, number + 1) - np.maximum(start, number), 0.0)
    return inside


def smooth_density(tree: Tree, count: Floats, lattice: tuple[int, int]) -> SmoothDensity:
    """Smooth the density of the leaves, each keeping its count.

    Parameters
    ----------
    tree : Tree
        Cells. Public.
    count : ndarray, shape (nodes,), float64
        Published counts, not negative.
    lattice : tuple of int
        Columns and rows of the lattice of the tree.

    Returns
    -------
    SmoothDensity

    Notes
    -----
    Pycnophylactic interpolation [1]_ in two passes: the density of a part becomes the mean over
    a window of the leaf's own size around it, and the parts of a leaf are scaled back to their
    sum. Windows end at the edge of the domain. An empty leaf stays even.

    References
    ----------
    .. [1] Tobler. "Smooth Pycnophylactic Interpolation for Geographical Regions." Journal of
       the American Statistical Association 74(367), 1979.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    boxes = tree.boxes[leaves] * (DENSITY_RASTER / np.array([*lattice, *lattice]))
    mass = count[leaves]
    share = np.full((len(leaves), PARTS, PARTS), 1 / PARTS**2)
    for number in range(SMOOTHING_PASSES):
        if number == 0:
            surface = _summed_mass(boxes, mass)
        else:
            surface = _summed_mass(_part_boxes(boxes), (share * mass[:, None, None]).ravel())
        share = np.concatenate(
            [_window_shares(surface, chunk) for chunk in np.split(boxes, _chunk_ends(len(boxes)))]
        )
    rank = np.cumsum(tree.is_leaf) - 1
    return SmoothDensity(rank=rank, share=share)


def _chunk_ends(size: int) -> range:
    """Where to split work on so many leaves."""
    return range(_LEAVES_PER_BATCH, size, _LEAVES_PER_BATCH)


def _part_boxes(boxes: Floats) -> Floats:
    """Boxes of the parts of each box, shape (n PARTS^2, 4), row by row from the south."""
    return _strip_boxes(_strip_boxes(boxes, 1), 0)


def _strip_boxes(boxes: Floats, axis: int) -> Floats:
    """Boxes of PARTS equal strips of each box, shape (n PARTS, 4), side by side along an axis."""
    low, high = boxes[:, axis, None], boxes[:, axis + 2, None]
    edges = low + (high - low) * (np.arange(PARTS + 1) / PARTS)
    strips = np.repeat(boxes, PARTS, axis=0)
    strips[:, axis], strips[:, axis + 2] = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    return strips


def _summed_mass(boxes: Floats, mass: Floats) -> Floats:
    """Mass south and west of every raster line, shape (DENSITY_RASTER + 1, DENSITY_RASTER + 1).

    Each corner of a box adds a ramp in x times a ramp in y. A ramp that begins between two
    lines is, on the lines, a mixture of the ramps that begin on them; so corners are laid on
    the four lines around them, and adding up twice along each axis makes the ramps.
    """
    boxes = _widen_to_cells(boxes)
    slope = mass / ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
    side = DENSITY_RASTER + 2
    corners = np.zeros(side * side)
    for x, y, sign in ((0, 1, 1), (2, 1, -1), (0, 3, -1), (2, 3, 1)):
        column, row = (np.minimum(boxes[:, z].astype(np.int64), DENSITY_RASTER) for z in (x, y))
        east, north = boxes[:, x] - column, boxes[:, y] - row
        for right, above in ((0, 0), (1, 0), (0, 1), (1, 1)):
            weight = sign * slope * (east if right else 1 - east) * (north if above else 1 - north)
            corners += np.bincount((row + above) * side + column + right, weight, side * side)
    sums = corners.reshape(side, side)
    for axis in (0, 1, 0, 1):
        sums = np.cumsum(sums, axis=axis)
    # A ramp that begins on a line is 0 there and 1 on the next; the sums are one line ahead.
    surface = np.zeros((DENSITY_RASTER + 1, DENSITY_RASTER + 1))
    surface[1:, 1:] = sums[:DENSITY_RASTER, :DENSITY_RASTER]
    return surface


def _widen_to_cells(boxes: Floats) -> Floats:
    """Boxes thinner than a raster cell, widened to the cell that they begin in."""
    wide = boxes.copy()
    for axis in (0, 1):
        thin = boxes[:, axis + 2] - boxes[:, axis] < 1
        wide[thin, axis] = np.minimum(np.floor(boxes[thin, axis]), DENSITY_RASTER - 1)
        wide[thin, axis + 2] = wide[thin, axis] + 1
    return wide


def _window_shares(surface: Floats, boxes: Floats) -> Floats:
    """Shares of the parts of each box by the mean density of windows around them."""
    middle = (np.arange(PARTS) + 0.5) / PARTS
    low, high = [], []
    for axis in (0, 1):
        start, width = boxes[:, axis, None], (boxes[:, axis + 2] - boxes[:, axis])[:, None]
        low.append(np.clip(start + width * (middle - 0.5), 0, DENSITY_RASTER))
        high.append(np.clip(start + width * (middle + 0.5), 0, DENSITY_RASTER))
    mass = _surface_at(surface, high[0], high[1]) - _surface_at(surface, low[0], high[1])
    mass += _surface_at(surface, low[0], low[1]) - _surface_at(surface, high[0], low[1])
    area = (high[1] - low[1])[:, :, None] * (high[0] - low[0])[:, None, :]
    density = np.maximum(mass / area, 0.0)
    total = density.sum(axis=(1, 2), keepdims=True)
    even = 1 / PARTS**2
    smooth = np.where(total > 0, density / np.where(total > 0, total, 1.0), even)
    return (1 - EVEN_SHARE) * smooth + EVEN_SHARE * even


def _surface_at(surface: Floats, x: Floats, y: Floats) -> Floats:
    """Mass south and west of places x[i, k], y[i, j], shape (n, j, k)."""
    column, row = (np.minimum(z.astype(np.int64), DENSITY_RASTER - 1) for z in (x, y))
    index = (row[:, :, None], column[:, None, :])
    return _bilinear(surface, index, (x - column)[:, None, :], (y - row)[:, :, None])


def _bilinear(sums: Floats, index: tuple[Integers, ...], x: Floats, y: Floats) -> Floats:
    """Values between four neighbours of an array whose last axes are y and x."""
    *first, row, column = index
    south = sums[(*first, row, column)] * (1 - x) + sums[(*first, row, column + 1)] * x
    north = sums[(*first, row + 1, column)] * (1 - x) + sums[(*first, row + 1, column + 1)] * x
    value: Floats = south * (1 - y) + north * y
    return value
