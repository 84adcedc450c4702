"""A raster, whose cells in one polygon or none decide their points; nearby sides decide others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges
from psd.regions.hierarchy import NO_REGION
from psd.space.even_odd import CertainCells, EdgeIndex

if TYPE_CHECKING:
    from psd.space.domain import Domain


_MIN_SIDE, _MAX_SIDE = 64, 2048

# Columns of a raster as a table; a power of two, as the others.
_MAX_TABLE_SIDE = 1024

# Cells of the raster for each side of a polygon, at least.
_CELLS_PER_SIDE = 8

_SIDES_PER_BATCH = 2**19

_NONE = np.zeros(0, np.int64)

# What rounding may move an outline by: in cells, in units in the last place of coordinates, and
# in its height in a column, relative to the height of the side.
_MARGIN, _ULPS, _SLOPE_MARGIN = 1e-6, 8, 2e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionRaster:
    """Polygons as raster cells. P1. A point is in the first one that `EdgeIndex.contains` finds."""

    origin: tuple[float, float]  # south-west corner
    scale: tuple[float, float]  # cells per unit of x and of y
    # (side, side) int32; polygon of each cell; -1 for none; -2 - j for the j-th with an outline.
    state: NDArray[np.int32]
    begin: Integers  # (cut + 1,) int64; first candidate of each cell with an outline
    # (k,) int32; polygons that may contain points of the cell, ascending in each.
    candidates: NDArray[np.int32]
    sides: EdgeIndex  # of all polygons

    @classmethod
    def from_polygons(
        cls,
        shapes: NDArray[np.object_],
        sides: EdgeIndex,
        domain: Domain,
        *,
        overlaps: Integers,
        margin: float = 0.0,
    ) -> Self:
        """Make a raster of valid polygons, (n,); overlaps: all pairs that do, (m, 2) int64."""
        side = 2 ** int(np.ceil(np.log2(max(len(sides.owner) * _CELLS_PER_SIDE, 1)) / 2))
        side = min(max(side, _MIN_SIDE), _MAX_SIDE)
        size = domain.width, domain.height
        scale = side / size[0], side / size[1]
        raster = cls(
            origin=domain.bounds[:2],
            scale=scale,
            state=np.full((side, side), NO_REGION, np.int32),
            begin=np.zeros(1, np.int64),
            candidates=np.zeros(0, np.int32),
            sides=sides,
        )
        reach = max(map(abs, domain.bounds))
        # Up to the margin from an outline no cell counts as free of it.
        room = [max(_MARGIN, (_ULPS * np.spacing(reach) + margin) * k) for k in scale]
        # Cells through which each outline may pass: cell x polygons + polygon, ascending.
        batches = [
            _distinct(cell * len(shapes) + sides.owner[side])
            for cell, side in raster._passed_cells(room)
        ]
        keys = batches[0] if len(batches) == 1 else _distinct(np.concatenate([*batches, _NONE]))
        keys = raster._with_covering(keys, shapes, overlaps)
        return raster._filled(keys, shapes)

    def find(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """Index of the first polygon with each point, -1 for none; x, y: (n,) float64, private."""
        # The cell of each point inside the bounds; rounding keeps the order of coordinates.
        rows, columns = self.state.shape
        column = np.minimum(((x - self.origin[0]) * self.scale[0]).astype(np.int64), columns - 1)
        row = np.minimum(((y - self.origin[1]) * self.scale[1]).astype(np.int64), rows - 1)
        row *= columns
        row += column
        region: NDArray[np.int32] = self.state.ravel()[row]
        point = np.flatnonzero(region < NO_REGION)
        cell = -2 - region[point].astype(np.int64)
        region[point] = NO_REGION
        candidate, last = self.begin[cell], self.begin[cell + 1]
        # In rounds: the next candidate of each point, in ascending order, until one contains it.
        while len(point):
            polygon = self.candidates[candidate]
            inside = self.sides.contains(polygon, x[point], y[point])
            region[point[inside]] = polygon[inside]
            further = ~inside & (candidate + 1 < last)
            point, candidate, last = point[further], candidate[further] + 1, last[further]
        return region

    def certain_cells(self) -> CertainCells:
        """Cells without an outline, those of a raster of few enough cells for a table to join."""
        parts = max(self.state.shape[0] // _MAX_TABLE_SIDE, 1)
        side = self.state.shape[0] // parts
        # Blocks of cells, (side, side, cells of a block): certain if all have one state.
        blocks = self.state.reshape(side, parts, side, parts).swapaxes(1, 2).reshape(side, side, -1)
        first = blocks[:, :, 0]
        certain = np.flatnonzero((first >= NO_REGION) & (blocks == first[:, :, None]).all(axis=2))
        return CertainCells(
            origin=self.origin,
            scale=(self.scale[0] / parts, self.scale[1] / parts),
            side=side,
            cell=certain,
            part=first.ravel()[certain].astype(np.int64),
        )

    def _passed_cells(self, room: list[float]) -> Iterator[tuple[Integers, Integers]]:
        """Yield cells and the sides that pass through or beside them."""
        rows, columns = self.state.shape
        for start in range(0, len(self.sides.owner), _SIDES_PER_BATCH):
            x0, y0, x1, y1, _ = self.sides.sides[:, start : start + _SIDES_PER_BATCH]
            x0, x1 = ((x - self.origin[0]) * self.scale[0] for x in (x0, x1))
            y0, y1 = ((y - self.origin[1]) * self.scale[1] for y in (y0, y1))
            # The columns of each side, the heights where it enters and leaves them, the rows
            # between.
            side, column = _covered(x0 - room[0], x1 + room[0], columns)
            x0, x1, y0, y1 = x0[side], x1[side], y0[side], y1[side]
            slope = np.divide(y1 - y0, x1 - x0, out=np.zeros(len(x0)), where=x1 > x0)
            enter = y0 + np.maximum(column - room[0] - x0, 0) * slope
            leave = y1 - np.maximum(x1 - (column + 1 + room[0]), 0) * slope
            # Room for the margin, and for the rounding of the slope.
            slack = room[1] + _SLOPE_MARGIN * np.abs(y1 - y0)
            upright = x1 == x0
            low = np.where(upright, np.minimum(y0, y1), np.minimum(enter, leave)) - slack
            high = np.where(upright, np.maximum(y0, y1), np.maximum(enter, leave)) + slack
            item, row = _covered(low, high, rows)
            yield row * columns + column[item], side[item] + start

    def _with_covering(
        self, keys: Integers, shapes: NDArray[np.object_], overlaps: Integers
    ) -> Integers:
        """Add polygons that cover a cell in which only others have outlines."""
        import shapely

        if not len(overlaps):
            return keys
        polygons = len(shapes)
        # Overlapping pairs both ways; those of polygon p begin at `first[p]`.
        both = np.concatenate([overlaps, overlaps[:, ::-1]])
        both = both[np.argsort(both[:, 0], kind="stable")]
        first = np.searchsorted(both[:, 0], np.arange(polygons + 1))
        # Polygons that overlap one with an outline in the cell, by whether they contain its middle.
        cell, polygon = np.divmod(keys, polygons)
        number = (first[1:] - first[:-1])[polygon]
        cell = np.repeat(cell, number)
        other = both[ranges(first[polygon], number), 1]
        x, y = self._centres(cell)
        west, south, east, north = np.ascontiguousarray(shapely.bounds(shapes).T)
        near = (west[other] <= x) & (x <= east[other])
        near &= (south[other] <= y) & (y <= north[other])
        cell, other = cell[near], other[near]
        covers = self.sides.contains(other, x[near], y[near])
        added = _distinct(cell[covers] * polygons + other[covers])
        return _distinct(np.concatenate([keys, added])) if len(added) else keys

    def _centres(self, cell: Integers) -> tuple[Floats, Floats]:
        """Middle of cells."""
        row, column = np.divmod(cell, self.state.shape[1])
        x = self.origin[0] + (column + 0.5) / self.scale[0]
        return x, self.origin[1] + (row + 0.5) / self.scale[1]

    def _filled(self, keys: Integers, shapes: NDArray[np.object_]) -> Self:
        """The raster with the state of all cells and the candidates of those with outlines."""
        cell, polygon = np.divmod(keys, max(len(shapes), 1))
        begin = np.flatnonzero(np.diff(cell, prepend=-1))
        cut = cell[begin]
        # Runs of cells without an outline, each in one row; those of two rows that have a column in
        # common are side by side, without an outline between them, so in the same polygon.
        rows, columns = self.state.shape
        edges = np.arange(rows + 1) * columns
        start = np.sort(np.concatenate([edges[:-1], cut + 1]), kind="stable")
        stop = np.sort(np.concatenate([edges[1:], cut]), kind="stable")
        start, stop = start[start < stop], stop[start < stop]
        group = _joined(start, stop, columns)
        # The first run of each group decides, by its first cell.
        first = np.flatnonzero(group == np.arange(len(group)))
        region = np.empty(len(group), np.int32)
        region[first] = self._first_containing(start[first], shapes)
        state = np.empty(self.state.size, np.int32)
        is_free = np.ones(self.state.size, bool)
        is_free[cut] = False
        state[is_free] = np.repeat(region[group], stop - start)
        state[cut] = -2 - np.arange(len(cut))
        return type(self)(
            origin=self.origin,
            scale=self.scale,
            state=state.reshape(self.state.shape),
            begin=np.append(begin, len(polygon)),
            candidates=polygon.astype(np.int32),
            sides=self.sides,
        )

    def _first_containing(self, cell: Integers, shapes: NDArray[np.object_]) -> Integers:
        """First polygon that contains the middle of each cell, -1 for none."""
        import shapely

        x, y = self._centres(cell)
        # The index gives pairs by bounding boxes; the sides decide.
        point, polygon = shapely.STRtree(shapes).query(shapely.points(x, y))
        inside = self.sides.contains(polygon, x[point], y[point])
        first = np.full(len(cell), len(shapes))
        np.minimum.at(first, point[inside], polygon[inside])
        return np.where(first < len(shapes), first, NO_REGION)


def _joined(start: Integers, stop: Integers, columns: int) -> Integers:
    """Smallest number of the runs of cells (n,) that each run is joined with from row to row."""
    # Pairs of runs with a column in common, of a row and the next one.
    above = np.searchsorted(stop, start + columns, "right")
    number = np.searchsorted(start, stop + columns) - above
    run, other = np.repeat(np.arange(len(start)), number), ranges(above, number)
    group = np.arange(len(start))
    while len(run):
        # The groups of a pair get the smaller number, and each group that of its first run.
        a, b = group[run], group[other]
        np.minimum.at(group, np.maximum(a, b), np.minimum(a, b))
        while (group[group] != group).any():
            group = group[group]
        apart = group[run] != group[other]
        run, other = run[apart], other[apart]
    return group


def _distinct(keys: Integers) -> Integers:
    """Each key once, ascending; `np.unique` takes ten times as long, by a table of hashes."""
    # A stable sort is a merge, and keys ascend in parts, since sides follow their outline.
    keys = np.sort(keys, kind="stable")
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first]


def _covered(low: Floats, high: Floats, cells: int) -> tuple[Integers, Integers]:
    """Cells from low to high along one axis, and the item of each; none outside the axis."""
    meets = (high >= 0) & (low < cells)
    first = np.floor(np.clip(low, 0, cells - 1)).astype(np.int64)
    last = np.floor(np.clip(high, 0, cells - 1)).astype(np.int64)
    length = np.where(meets, last - first + 1, 0)
    return np.repeat(np.arange(len(low)), length), ranges(first, length)
