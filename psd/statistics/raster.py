"""Density rasters: each leaf is divided among equal cells, whose errors are computed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.errors import ParameterError
from psd.estimation.fit import predicts_published
from psd.query.answer_table import COLUMNS, QUALITIES, Threshold
from psd.query.areas import read_areas
from psd.query.index import QueryIndex
from psd.query.joint import part_variance, records_moved
from psd.query.lines import divides_records, line_matrix
from psd.query.region_nodes import clipped_share
from psd.query.totals import WindowFit
from psd.query.windows import answer_areas
from psd.space.ground_areas import area_unit, ground_areas, ground_densities
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from scipy import sparse

    from psd.estimation.fit import Fit

__all__ = ["density_raster"]


MAX_CELLS = 1 << 24
"""Maximum number of cells of a raster."""

# Parts of leaves measured together; bounds the memory, not the result.
_CELLS_PER_BATCH = 1 << 17

# Of the intervals of values.
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlay:
    """Parts of leaves, each in one cell; every cell has all of its parts."""

    fit: Fit  # fit of the leaves
    cells: int  # number of cells; a raster's go row by row from the south-west
    cell: Integers  # (n,) int64; cell of each part, by leaf
    node: Integers  # (n,) int64; leaf of each part
    share: Floats  # (n,) float64; share of the leaf's count in the part
    area: Floats  # (n,) float64; share of the leaf's area in the part
    boxes: Floats  # (cells, 4) float64; cells in lattice units

    def select(self, cells: Integers) -> Overlay:
        """Overlay of selected cells, in their order."""
        # New number of each selected cell, -1 of the others.
        number = np.full(self.cells, -1)
        number[cells] = np.arange(len(cells))
        selected = number[self.cell] >= 0
        return Overlay(
            fit=self.fit,
            cells=len(cells),
            cell=number[self.cell[selected]],
            node=self.node[selected],
            share=self.share[selected],
            area=self.area[selected],
            boxes=self.boxes[cells],
        )

    def counts(self) -> Floats:
        """Estimated records in each cell, shape (cells,)."""
        counted = self.fit.estimates.count[self.node] * self.share
        return sum_by(self.cell, counted, self.cells)

    def perturbation_variance(self) -> Floats:
        """Variance (cells,) of counts from the noise, the same as for a query, of all together."""
        tree, estimates = self.fit.tree, self.fit.noise_covariance
        finite = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
        # Sum of the variances of the children of each node, given the node.
        of_family = np.where(tree.parent >= 0, finite, 0.0)
        family = sum_by(np.maximum(tree.parent, 0), of_family, len(tree))
        # As in `psd.query.traversal`, a cell has a slope and a remainder at each node that it
        # meets; these are (cell, node, slope, rest), each (n,), for the nodes of one level.
        variance, met = np.zeros(self.cells), np.bincount(self.cell, minlength=self.cells)
        level = tree.level[self.node]
        cell, node = np.empty(0, np.int64), np.empty(0, np.int64)
        slope, rest = np.empty(0), np.empty(0)
        for depth in reversed(range(len(tree.levels))):
            # Parts that are nodes of this level join those that came up from below.
            arriving = np.flatnonzero((level == depth) & (self.share > 0))
            cell = np.concatenate([cell, self.cell[arriving]])
            node = np.concatenate([node, self.node[arriving]])
            slope = np.concatenate([slope, self.share[arriving]])
            rest = np.concatenate([rest, np.zeros(len(arriving))])
            # As soon as a cell meets a single node, the variance of that node ends the recursion:
            # most cells are done after one or two levels.
            done = met[cell] == 1 if depth else np.ones(len(cell), bool)
            alone = slope[done] ** 2 * estimates.variance[node[done]] + rest[done]
            variance[cell[done]] = alone
            cell, node, slope, rest = (a[~done] for a in (cell, node, slope, rest))
            if not len(cell):
                continue
            np.subtract.at(met, cell, 1)
            # The parts of a cell below one parent join there.
            key, up = np.unique(cell * len(tree) + tree.parent[node], return_inverse=True)
            mean = sum_by(up, estimates.slope[node] * slope, len(key))
            spread = rest + finite[node] * (slope - mean[up]) ** 2
            cell_up, node_up = np.divmod(key, len(tree))
            # Children that a cell does not meet have slope 0, so each is off by the whole mean.
            beside = np.maximum(family[node_up] - sum_by(up, finite[node], len(key)), 0.0)
            rest = sum_by(up, spread, len(key)) + mean**2 * beside
            cell, node, slope = cell_up, node_up, mean
            np.add.at(met, cell, 1)
        return variance

    def part_variance(self) -> Floats:
        """Variance of the points in each part from uneven leaves, shape (n,)."""
        variance = np.zeros(len(self.node))
        cut = self.area < 1
        part = np.stack([self.share[cut], self.area[cut]])
        variance[cut] = part_variance(self.fit, self.node[cut], part)
        return variance

    def window_variance(self) -> Floats:
        """Variance of each leaf of a window of a cube as a whole, shape (nodes,); else 0."""
        if not isinstance(self.fit, WindowFit):
            return np.zeros(len(self.fit.tree))
        return self.fit.cells.nonuniformity_variance

    def nonuniformity_variance(self) -> Floats:
        """Variance of each cell's count from uneven leaves, shape (cells,)."""
        leaves = sum_by(self.cell, self.part_variance(), self.cells)
        leaves += sum_by(self.cell, self.share**2 * self.window_variance()[self.node], self.cells)
        variance = leaves + self.shift() ** 2
        lines = self.lines()
        return variance if lines is None else variance + lines.power(2).sum(axis=1)

    def lines(self) -> sparse.csr_array | None:
        """Deviations of the cells along lines, shape (cells, lines); see `line_matrix`."""
        cut = divides_records(self.share, self.area)
        return line_matrix(self.fit, self.cell[cut], self.node[cut], self.boxes)

    def shift(self) -> Floats:
        """Records that the density moves into each cell, by its error; see `records_moved`."""
        moved = records_moved(self.fit, self.node, np.stack([self.share, self.area]))
        return sum_by(self.cell, moved, self.cells)


def leaf_overlay(fit: Fit) -> Overlay:
    """Use the leaves as cells, in order. P1. Each cell has one part, all of its leaf."""
    leaves = np.flatnonzero(fit.tree.is_leaf)
    return Overlay(
        fit=fit,
        cells=len(leaves),
        cell=np.arange(len(leaves)),
        node=leaves,
        share=np.ones(len(leaves)),
        area=np.ones(len(leaves)),
        boxes=fit.tree.boxes[leaves].astype(np.float64),
    )


def raster_overlay(fit: Fit, columns: int, rows: int) -> Overlay:
    """Lay equal cells, at most `MAX_CELLS`, over the domain.

    P2. The parts of a leaf have shares that sum to 1, so the counts of all cells sum to the total.
    P3. Counts and errors are those of `Release.query` for the cells. So with a coordinate
    resolution a cell has the values inside it, and no lattice cell is divided.
    """
    size = check_size(columns, rows)
    if fit.domain.coordinate_resolution is not None:
        return _value_overlay(fit, size)
    leaves = np.flatnonzero(fit.tree.is_leaf)
    boxes = fit.tree.boxes[leaves].astype(np.int64)
    # Units in which the sides of leaves and cells are integers, so that edges coincide exactly.
    scaled = boxes * np.array(size * 2)
    side = np.array(fit.domain.lattice, np.int64)
    first, stop = scaled[:, :2] // side, -(-scaled[:, 2:] // side)
    owner, position = _met_cells(first, stop)
    # Corners of each part from that of its leaf, below as shares of its sides.
    low = np.maximum(position * side, scaled[owner, :2]) - scaled[owner, :2]
    high = np.minimum((position + 1) * side, scaled[owner, 2:]) - scaled[owner, :2]
    extent = scaled[owner, 2:] - scaled[owner, :2]
    parts = _Parts(fit=fit, leaves=leaves, owner=owner, low=low / extent, high=high / extent)
    x, y = (np.arange(n + 1) * cells / n for n, cells in zip(size, fit.domain.lattice, strict=True))
    return parts.overlay(position[:, 1] * size[0] + position[:, 0], _mesh_boxes(x, y))


def _value_overlay(fit: Fit, size: tuple[int, int]) -> Overlay:
    """Overlay whose cells have the lattice cells of the values inside them."""
    leaves = np.flatnonzero(fit.tree.is_leaf)
    boxes, axes = fit.tree.boxes[leaves].astype(np.int64), fit.domain.axes
    # Lines of the raster in lattice lines: a value lies in the cell between two of them.
    edges = [np.linspace(axes[axis].low, axes[axis].high, size[axis] + 1) for axis in (0, 1)]
    lines = [axes[axis].to_lines(edges[axis]).astype(np.int64) for axis in (0, 1)]
    pairs = list(zip(lines, boxes.T[:2], boxes.T[2:], strict=True))
    # Columns and rows of the raster that each leaf meets, from `first` to before `stop`.
    first = np.stack([np.searchsorted(line, low, "right") - 1 for line, low, _ in pairs], axis=1)
    stop = np.stack([np.searchsorted(line, high, "left") for line, _, high in pairs], axis=1)
    owner, cell = _met_cells(first, stop)
    # Lattice lines around each cell, cut at the sides of its leaf.
    west, east = (np.stack([lines[axis][cell[:, axis] + n] for axis in (0, 1)], 1) for n in (0, 1))
    low, high = np.maximum(west, boxes[owner, :2]), np.minimum(east, boxes[owner, 2:])
    # A cell between two values holds none, and so no part of a leaf.
    is_filled = (low < high).all(axis=1)
    owner, cell, low, high = owner[is_filled], cell[is_filled], low[is_filled], high[is_filled]
    corner, extent = boxes[owner, :2], boxes[owner, 2:] - boxes[owner, :2]
    low, high = (low - corner) / extent, (high - corner) / extent
    x, y = (axes[axis].position(edges[axis]) for axis in (0, 1))
    parts = _Parts(fit=fit, leaves=leaves, owner=owner, low=low, high=high)
    return parts.overlay(cell[:, 1] * size[0] + cell[:, 0], _mesh_boxes(x, y))


def _met_cells(first: Integers, stop: Integers) -> tuple[Integers, Integers]:
    """Leaf (m,), column and row (m, 2) of the cells that leaves, first to stop (n, 2), meet."""
    across, number = (stop - first)[:, 0], (stop - first).prod(axis=1)
    owner = np.repeat(np.arange(len(first)), number)
    row, column = np.divmod(ranges(np.zeros_like(number), number), across[owner])
    return owner, first[owner] + np.stack([column, row], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """Parts of leaves: the number of the leaf of each, and its corners as shares of the sides."""

    fit: Fit
    leaves: Integers
    owner: Integers
    low: Floats
    high: Floats

    def overlay(self, cell: Integers, boxes: Floats) -> Overlay:
        """Overlay of the parts, each in a cell with a box."""
        tree, node = self.fit.tree, self.leaves[self.owner]
        area: Floats = (self.high - self.low).prod(axis=1)
        if isinstance(tree, RegionTree):
            # Of the area of a leaf only the part inside its region counts.
            corner, far = np.split(tree.boxes[node].astype(np.float64), 2, axis=1)
            ends = [corner + (far - corner) * end for end in (self.low, self.high)]
            area = clipped_share(tree, node, np.concatenate(ends, axis=1), area)
            share = area
        elif self.fit.density is None:
            share = area
        else:  # by the density, where a leaf is cut
            share, cut = area.copy(), np.flatnonzero(area < 1)
            for part in np.split(cut, range(_CELLS_PER_BATCH, len(cut), _CELLS_PER_BATCH)):
                low, high = self.low[part], self.high[part]
                share[part] = self.fit.density.part(tree, node[part], low, high)
        # Parts of a leaf have all of its points, whatever was rounded (P2).
        share = share / sum_by(self.owner, share, len(self.leaves))[self.owner]
        # A cell may meet nothing of a leaf but what lies outside its region.
        met = np.flatnonzero(share > 0) if isinstance(tree, RegionTree) else slice(None)
        return Overlay(
            fit=self.fit,
            cells=len(boxes),
            cell=cell[met],
            node=node[met],
            share=share[met],
            area=area[met],
            boxes=boxes,
        )


def check_size(columns: int, rows: int) -> tuple[int, int]:
    """Check the size of a raster."""
    for value in (columns, rows):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(
                "size must be two integers above 0, the columns and the rows of the raster, got "
                f"{columns} and {rows}"
            )
    if int(columns) * int(rows) > MAX_CELLS:
        raise ParameterError(
            f"size must be at most {MAX_CELLS:,} cells of the raster, got {columns:,} x {rows:,}; "
            "choose fewer columns or rows"
        )
    return int(columns), int(rows)


def _mesh_boxes(x: Floats, y: Floats) -> Floats:
    """Boxes between lines along x and lines along y, row by row from the south-west."""
    columns, rows = len(x) - 1, len(y) - 1
    row, column = np.divmod(np.arange(columns * rows), columns)
    return np.stack([x[column], y[row], x[column + 1], y[row + 1]], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Raster:
    """Counts and errors of the cells of a raster; the first row is in the north.

    Guarantees
    ----------
    - The counts sum to the total of the release, to rounding, and equal the answers of
      `Release.query` for the cells; so do the errors.

    Parameters
    ----------
    count : ndarray, shape (rows, columns), float64
        Estimated records in each cell.
    density : ndarray, shape (rows, columns), float64
        Records per unit of area on the ground; NaN where there is none.
    perturbation_error, nonuniformity_error, error : ndarray, shape (rows, columns), float64
        Predicted standard deviations of the counts, in records.
    unit : {"km2", "square unit"}
        Unit of area; the latter for a local CRS.
    bounds : tuple of float
        West, south, east, north.
    crs : str
        Of the bounds.
    reliable : ndarray of bool, shape (rows, columns), optional
        Whether a count is reliable, in exports that mark it.
    quality : ndarray of int64, shape (rows, columns), optional
        Class of a count, in exports that mark it: 1 good, 2 use with care, 3 poor.
    values : mapping of str to ndarray, shape (rows, columns), float64
        Means and sums of the values of a release, by the names of the columns of `Release.query`;
        the quality of a mean is a number, as that of a count.
    """

    count: Floats
    density: Floats
    perturbation_error: Floats
    nonuniformity_error: Floats
    error: Floats
    unit: str
    bounds: tuple[float, float, float, float]
    crs: str
    reliable: NDArray[np.bool_] | None = None
    quality: Integers | None = None
    values: Mapping[str, Floats] = field(default_factory=dict)


def density_raster(fit: Fit, columns: int, rows: int, threshold: Threshold = 0.3) -> Raster:
    """Count records in equal cells; see `Release.raster`.

    P4. The counts sum to the total of the release, up to rounding. Those of a window of a cube are
    answers to the cells, each cut at 0, and may sum to more.
    """
    overlay = raster_overlay(fit, columns, rows)
    if isinstance(fit, WindowFit):  # which knows the errors of boxes better than its cells do
        totals = fit.totals(_raster_boxes(fit, columns, rows))
        count, nonuniformity = np.maximum(totals.estimate, 0.0), totals.nonuniformity_variance
        noise = totals.noise_variance(predicts_published(fit.record))
    else:
        count = overlay.counts()
        noise, nonuniformity = overlay.perturbation_variance(), overlay.nonuniformity_variance()
    density = ground_densities(count, ground_areas(fit.domain, overlay.boxes))
    bands = (count, density, np.sqrt(noise), np.sqrt(nonuniformity), np.sqrt(noise + nonuniformity))
    values = {}
    if fit.record.values:
        values = _value_bands(fit, columns, rows, threshold)
    # The overlay counts rows from the south, images from the north.
    images = [band.reshape(rows, columns)[::-1] for band in (*bands, *values.values())]
    for image in images:
        image.flags.writeable = False
    return Raster(
        count=images[0],
        density=images[1],
        perturbation_error=images[2],
        nonuniformity_error=images[3],
        error=images[4],
        unit=area_unit(fit.domain),
        bounds=fit.domain.bounds,
        crs=fit.domain.crs,
        values=dict(zip(values, images[len(bands) :], strict=True)),
    )


def _raster_boxes(fit: Fit, columns: int, rows: int) -> Floats:
    """Cells of a raster in the CRS of the release, from the south-west."""
    west, south, east, north = fit.domain.bounds
    return _mesh_boxes(np.linspace(west, east, columns + 1), np.linspace(south, north, rows + 1))


def _value_bands(fit: Fit, columns: int, rows: int, threshold: Threshold) -> dict[str, Floats]:
    """Means and sums in the cells of a raster, from the south-west, (cells,) float64 each."""
    index = QueryIndex(record=fit.record)
    vars(index)["fit"] = fit
    areas = read_areas(_raster_boxes(fit, columns, rows), fit.domain, fit.tree)
    numbers = range(len(fit.record.values))
    both = [(kind, number) for number in numbers for kind in ("mean", "sum")]
    certainty: dict[str, Any] = {"confidence": _CONFIDENCE, "threshold": threshold}
    answers = answer_areas(index, areas, **certainty, values=both)
    found = {name: band for name, band in answers.items() if name not in COLUMNS}
    for name, band in found.items():
        if name.endswith("_quality"):
            found[name] = np.array([1.0 + QUALITIES.index(each) for each in band])
    return found
