"""Density inside the leaves: uniform, or changing smoothly from leaf to leaf.

A leaf keeps its count; only its distribution inside the leaf is estimated. The smooth estimate at a
position is the mean density of a window as large as the leaf. Post-processing: only published
counts are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.estimation._constants import DENSITY_RASTER, EVEN_SHARE, SMOOTHING_PASSES
from psd.space.box_tree import Tree
from psd.space.polygon_areas import Outlines, divide_outlines

__all__ = ["PARTS", "CoordinateTransform", "Density", "SmoothDensity", "smooth_density"]

PARTS = 4
"""A leaf is described by PARTS x PARTS parts of equal area."""

_LEAVES_PER_BATCH = 16384

# Nodes of a tree up to which the shares of all leaves are kept, about 200 MB.
_MOST_KEPT = 2**21

# Lines around a corner: its own, or the next one, in x and in y.
_AROUND = ((0, 0), (1, 0), (0, 1), (1, 1))


CoordinateTransform = Callable[[Floats], Floats]
"""Converts boxes in lattice units, shape (n, 4), to coordinates."""


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
            Index of the polygon in each leaf.
        from_lattice : callable
            Coordinates of boxes in lattice units.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothDensity:
    """Share of each leaf's count in each of its parts.

    Parameters
    ----------
    tree : Tree
        Cells.
    scale : ndarray, shape (4,), float64
        Raster units of a lattice unit, for each side of a box.
    surface : ndarray, shape (DENSITY_RASTER + 1, DENSITY_RASTER + 1), float64
        Mass south and west of every raster line, before the last pass.
    within : bool
        Whether the density changes inside cells of the lattice as well.
    """

    tree: Tree
    scale: Floats
    surface: Floats
    within: bool = True

    @cached_property
    def rank(self) -> Integers:
        """Index of each leaf among the leaves, shape (nodes,); undefined for other nodes."""
        return np.cumsum(self.tree.is_leaf) - 1

    @cached_property
    def share(self) -> Floats:
        """Shares of all leaves, shape (leaves, PARTS, PARTS); see `shares`."""
        leaves = np.flatnonzero(self.tree.is_leaf)
        share = np.empty((len(leaves), PARTS, PARTS))
        for chunk in _chunks(len(leaves)):
            share[chunk] = self._computed(leaves[chunk])
        return share

    def shares(self, leaf: Integers) -> Floats:
        """Shares of leaves, shape (n, PARTS, PARTS); rows from the south, columns from the west.

        Not negative, 1 in all for a leaf. Those of very many leaves are not kept: they take more
        memory than the rest of a release.
        """
        if len(self.tree) <= _MOST_KEPT:
            return self.share[self.rank[leaf]]
        return np.concatenate(
            [np.empty((0, PARTS, PARTS)), *(self._computed(leaf[c]) for c in _chunks(len(leaf)))]
        )

    def _computed(self, leaf: Integers) -> Floats:
        """Shares of leaves from the surface."""
        boxes = self.tree.boxes[leaf]
        shares = _window_shares(self.surface, boxes * self.scale)
        return shares if self.within else _even_in_lattice(shares, boxes)

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it; see `Density`."""
        wide, tall = _part_overlaps(low[:, 0], high[:, 0]), _part_overlaps(low[:, 1], high[:, 1])
        inside: Floats = np.einsum("nyx,ny,nx->n", self.shares(node), tall, wide)
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
        return np.asarray((of_leaves * self.shares(node)).sum(axis=(1, 2)))


def _even_in_lattice(shares: Floats, boxes: NDArray[np.int32]) -> Floats:
    """Shares of the parts of leaves, even along the sides that are one cell of the lattice long."""
    for axis in (0, 1):
        single = np.flatnonzero(boxes[:, axis + 2] - boxes[:, axis] == 1)
        shares[single] = shares[single].mean(axis=2 - axis, keepdims=True)
    return shares


def _part_overlaps(low: Floats, high: Floats) -> Floats:
    """Covered share of each part along one side, shape (n, PARTS), without cancellation."""
    start, number = low[:, None] * PARTS, np.arange(PARTS)
    stop = high[:, None] * PARTS
    inside: Floats = np.maximum(np.minimum(stop, number + 1) - np.maximum(start, number), 0.0)
    return inside


def smooth_density(
    tree: Tree, count: Floats, lattice: tuple[int, int], *, within: bool = True
) -> SmoothDensity:
    """Smooth the density of the leaves, each keeping its count.

    Parameters
    ----------
    tree : Tree
        Cells. Public.
    count : ndarray, shape (nodes,), float64
        Published counts, not negative.
    lattice : tuple of int
        Columns and rows of the lattice of the tree.
    within : bool
        Whether the density changes inside cells of the lattice as well, as in version 1. Later
        versions keep it even there: no position inside a cell of the lattice was recorded.

    Returns
    -------
    SmoothDensity

    Notes
    -----
    Pycnophylactic interpolation [1]_ in two passes: the density of a part becomes the mean over a
    window of the leaf's own size around it, and the parts of a leaf are scaled back to their sum.
    Windows end at the edge of the domain. An empty leaf stays uniform.

    References
    ----------
    .. [1] Tobler. "Smooth Pycnophylactic Interpolation for Geographical Regions." Journal of
       the American Statistical Association 74(367), 1979.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    scale = DENSITY_RASTER / np.array([*lattice, *lattice])

    def even() -> Iterator[tuple[Floats, Floats]]:
        for chunk in _chunks(len(leaves)):
            yield tree.boxes[leaves[chunk]] * scale, count[leaves[chunk]]

    density = SmoothDensity(tree=tree, scale=scale, surface=_summed_mass(even), within=within)
    for _ in range(SMOOTHING_PASSES - 1):
        density = replace(density, surface=_summed_mass(_in_parts(density, leaves, count)))
    return density


Batches = Callable[[], Iterator[tuple[Floats, Floats]]]
"""Boxes in raster units and their mass, some leaves at a time, as often as called."""


def _in_parts(density: SmoothDensity, leaves: Integers, count: Floats) -> Batches:
    """Parts of leaves and their mass by a density."""

    def batches() -> Iterator[tuple[Floats, Floats]]:
        for chunk in _chunks(len(leaves)):
            leaf = leaves[chunk]
            mass = density.shares(leaf) * count[leaf][:, None, None]
            yield _part_boxes(density.tree.boxes[leaf] * density.scale), mass.ravel()

    return batches


def _chunks(size: int) -> list[slice]:
    """Batches of this number of leaves."""
    starts = range(0, size, _LEAVES_PER_BATCH)
    return [slice(start, min(start + _LEAVES_PER_BATCH, size)) for start in starts]


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


def _summed_mass(batches: Batches) -> Floats:
    """Mass south and west of every raster line, shape (DENSITY_RASTER + 1, DENSITY_RASTER + 1).

    Each corner of a box adds a ramp in x times a ramp in y. A ramp that begins between two
    lines is, on the lines, a mixture of the ramps that begin on them; so corners are laid on
    the four lines around them, and adding up twice along each axis makes the ramps. Sums go from
    box to box, so they do not depend on how boxes come in batches.
    """
    side = DENSITY_RASTER + 2
    corners = np.zeros(side * side)
    for x, y, sign in ((0, 1, 1), (2, 1, -1), (0, 3, -1), (2, 3, 1)):
        around = np.zeros((len(_AROUND), side * side))
        for boxes, mass in batches():
            boxes = _widen_to_cells(boxes)
            slope = mass / ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
            column, row = (np.minimum(boxes[:, z].astype(np.int64), DENSITY_RASTER) for z in (x, y))
            east, north = boxes[:, x] - column, boxes[:, y] - row
            for sums, (right, above) in zip(around, _AROUND, strict=True):
                weight = sign * slope * (east if right else 1 - east)
                weight *= north if above else 1 - north
                np.add.at(sums, (row + above) * side + column + right, weight)
        for sums in around:
            corners += sums
        del around
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
    """Mass south and west of the positions x[i, k], y[i, j], shape (n, j, k)."""
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
