"""Cells of grids whose lines are multiples of a size, by integers alone, and levels of them."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, from_arrow
from psd.errors import ParameterError, ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, NO_REGION, RegionGeometry, RegionLevel
from psd.space.domain import Domain, probe_points

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.boundary import Boundary


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedGrid:
    """Lines of a grid over a domain, and its cells that have a part in the bounds."""

    domain: Domain  # of the release
    origin: tuple[Fraction, Fraction]  # where the lines 0 are
    size: Fraction  # distance of the lines along both axes

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First and last column, first and last row; none begins at the far bound."""
        ranges = []
        for axis in (0, 1):
            low, high = self.domain.bounds[axis], self.domain.bounds[axis + 2]
            first = int((Fraction(low) - self.origin[axis]) // self.size)
            last = int((Fraction(high) - self.origin[axis]) // self.size)
            first += self._edge(axis, first + 1) <= low
            last -= last > first and self._edge(axis, last) >= high
            ranges.append((first, last))
        return ranges[0], ranges[1]

    def _edge(self, axis: int, number: int) -> float:
        """Coordinate of a line: the double nearest to it."""
        return float(self.origin[axis] + number * self.size)

    @property
    def counts(self) -> tuple[int, int]:
        """Columns and rows in the bounds."""
        (a, b), (c, d) = self.ranges
        return b - a + 1, d - c + 1

    @cached_property
    def lines(self) -> tuple[Floats, Floats]:
        """Coordinates of the lines of the cells in the bounds, along x and along y."""
        x, y = (
            np.array([self._edge(axis, n) for n in range(first, last + 2)])
            for axis, (first, last) in enumerate(self.ranges)
        )
        return x, y

    def find(self, axis: int, values: Floats) -> Integers:
        """Column or row of values in the bounds, counted from the first: a guess, corrected."""
        lines = self.lines[axis]
        last = len(lines) - 2
        # A guess by division may be one off by rounding; the lines themselves decide.
        guess = np.clip((values - lines[0]) * float(1 / self.size), 0, last).astype(np.int64)
        guess -= (values < lines[guess]) & (guess > 0)
        guess += (values >= lines[guess + 1]) & (guess < last)
        return np.asarray(guess)

    def lattice_range(self, axis: int) -> tuple[Integers, Integers]:
        """Lattice cells, half-open, of the records of each column or row; at least one cell."""
        line, edges = self.domain.axes[axis], self.lines[axis]
        # First lattice cell of each column or row, and the one after its last.
        low = line.find_cells(np.clip(edges[:-1], line.low, line.high)).astype(np.int64)
        far = np.nextafter(np.clip(edges[1:], line.low, line.high), -np.inf)
        stop = line.find_cells(np.maximum(far, line.low)).astype(np.int64) + 1
        if self.domain.coordinate_resolution is not None:
            # Only the value in the middle of a lattice cell has records.
            low += (line.probe(low, axis) < edges[:-1]) & (low < stop - 1)
            stop -= (line.probe(stop - 1, axis) >= edges[1:]) & (stop - 1 > low)
        return low, stop


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedCells(RegionGeometry):
    """Cells of a grid over a domain: all of them, or those of a boundary.

    P1. One record, one region, decided by this record alone: its column and its row, each by a
    comparison with the lines of the grid as the same floating-point numbers. A cell holds its west
    and south edge. A point on the east or north bound is decided just inside it. With a coordinate
    resolution the value that a record is rounded to decides.
    """

    domain: Domain  # of the release
    grid: AlignedGrid  # lines of the lowest cells
    columns: Integers  # (n,) int64; of each cell, from the first of the grid in the bounds
    rows: Integers
    restricted: bool  # whether there are fewer cells than those of the bounds

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def _region(self) -> NDArray[np.int32]:
        """Region of each cell of the bounds, -1 for none."""
        across, up = self.grid.counts
        # A table of all cells of the bounds; of a boundary, many have no region.
        region = np.full(across * up, NO_REGION, np.int32)
        region[self.rows * across + self.columns] = np.arange(len(self))
        return region

    def assign(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """See `RegionHierarchy.assign`, and the guarantees of this class."""
        x, y = probe_points(self.domain, x, y)
        cell = self.grid.find(1, y) * self.grid.counts[0] + self.grid.find(0, x)
        region: NDArray[np.int32] = self._region[cell]
        return region

    def boxes(self) -> Integers:
        """See `RegionHierarchy.boxes`."""
        low_x, far_x = self.grid.lattice_range(0)
        low_y, far_y = self.grid.lattice_range(1)
        columns, rows = self.columns, self.rows
        return np.stack([low_x[columns], low_y[rows], far_x[columns], far_y[rows]], axis=1)

    def meets(self, region: Integers, boxes: Integers) -> NDArray[np.bool_]:
        """See `RegionHierarchy.meets`."""
        met = np.ones(len(boxes), bool)
        for axis, number in ((0, self.columns[region]), (1, self.rows[region])):
            line, edges = self.domain.axes[axis], self.grid.lines[axis]
            low, far = boxes[:, axis], boxes[:, axis + 2]
            if self.domain.coordinate_resolution is None:
                met &= line.edges(low) < edges[number + 1]
                met &= line.edges(far) > edges[number]
            else:
                met &= line.probe(low, axis) < edges[number + 1]
                met &= line.probe(far - 1, axis) >= edges[number]
        return met

    def clipped_area(self, region: Integers, boxes: Integers) -> Floats:
        """See `RegionHierarchy.clipped_area`."""
        # Product of the overlaps along both axes.
        area = np.ones(len(boxes))
        for axis, number in ((0, self.columns[region]), (1, self.rows[region])):
            lines = self._lattice_lines[axis]
            low = np.maximum(boxes[:, axis], lines[number])
            area *= np.maximum(np.minimum(boxes[:, axis + 2], lines[number + 1]) - low, 0)
        return area

    @cached_property
    def _lattice_lines(self) -> tuple[Floats, Floats]:
        """Lines of the grid in lattice units, as queries take edges."""
        x, y = (self.domain.axes[axis].to_lines(self.grid.lines[axis]) for axis in (0, 1))
        return x, y

    def shapes(self, region: Integers) -> NDArray[np.object_]:
        """See `RegionGeometry.shapes`."""
        import shapely

        west, south, east, north = self.domain.bounds
        columns, rows = self.columns[region], self.rows[region]
        x, y = np.clip(self.grid.lines[0], west, east), np.clip(self.grid.lines[1], south, north)
        boxes: NDArray[np.object_] = shapely.box(x[columns], y[rows], x[columns + 1], y[rows + 1])
        return boxes

    def part_outside(self) -> Floats:
        """See `RegionHierarchy.part_outside`."""
        inside = []
        for axis in (0, 1):
            low, high = self.domain.bounds[axis], self.domain.bounds[axis + 2]
            lines = self.grid.lines[axis]
            inside.append(np.diff(np.clip(lines, low, high)) / np.diff(lines))
        return np.asarray(1 - inside[0][self.columns] * inside[1][self.rows])

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """See `RegionGeometry.parameters`."""

    def to_table(self, levels: tuple[RegionLevel, ...]) -> pa.Table | None:
        """Numbers of cells in the bounds, ascending, if a boundary leaves some out, else None."""
        import pyarrow as pa

        if not self.restricted:
            return None
        cell = np.sort(self.rows * self.grid.counts[0] + self.columns)
        return pa.table({"cell": cell.astype(np.int64)})

    @classmethod
    def in_levels(
        cls,
        grid: AlignedGrid,
        cells: tuple[Integers, Integers],
        factors: Sequence[int],
        names: Sequence[str],
        codes: Sequence[Callable[[int, int], str]],
        /,
        **own: Any,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """Levels of nested grids, and the lowest cells in the order of their regions.

        factors: lowest cells along a side of a cell of each level, top first; own: other fields.
        """
        column, row = (cells[axis] + grid.ranges[axis][0] for axis in (0, 1))
        # One number for each lowest cell on each level: that of the cell above, row by row.
        keys = []
        for factor in factors:
            up, right = row // factor, column // factor
            low, span = int(right.min()), int(right.max() - right.min()) + 1
            keys.append((up - int(up.min())) * span + (right - low))
        # Children are beside each other.
        order = np.lexsort(keys[::-1])
        levels = []
        above = np.zeros(len(order), np.int64)
        for factor, key, name, code in zip(factors, keys, names, codes, strict=True):
            sorted_key = key[order]
            first = np.flatnonzero(np.diff(sorted_key, prepend=sorted_key[:1] - 1))
            at = order[first]
            # A code is computed of a column and a row, counted from line 0.
            ids = CellCodes(column[at] // factor, row[at] // factor, code)
            parent = above[first].astype(np.int32)
            levels.append(RegionLevel(name=name, ids=ids, parent=parent))
            above = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        columns, rows = (numbers[order] for numbers in cells)
        geometry = cls(domain=grid.domain, grid=grid, columns=columns, rows=rows, **own)
        return tuple(levels), geometry


_RANGE = re.compile(r"\s*(\d{1,2})\s*\.\.\s*(\d{1,2})\s*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class NumberedLevels:
    """Rule for the numbers of the levels of one kind of regions."""

    argument: str  # name of the argument that messages start with
    noun: str  # plural noun of the numbers
    example: str  # texts that messages show
    largest: int  # number of the finest level

    def parse(self, text: str) -> tuple[int, ...]:
        """Numbers of a text: a range such as ``5..9``, or numbers with commas."""
        pair = _RANGE.fullmatch(text)
        if pair is not None:
            return tuple(range(int(pair[1]), int(pair[2]) + 1))
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isdecimal() and part.isascii() and len(part) <= 2 for part in parts):
            raise ParameterError(
                f"{self.argument} must be {self.noun} such as {self.example}, got {text[:80]!r}"
            )
        return tuple(int(part) for part in parts)

    def check(self, numbers: Sequence[int]) -> None:
        """Refuse numbers that are not ascending, or out of range."""
        ascends = all(a < b for a, b in itertools.pairwise(numbers))
        if not numbers or not ascends or numbers[0] < 0 or numbers[-1] > self.largest:
            raise ParameterError(
                f"{self.argument} must be ascending {self.noun} from 0 to {self.largest}, got "
                f"{str(list(numbers))[:80]}"
            )


# Cells of the bounds that are looked at for those inside the boundary.
_MAX_IN_BOUNDS = 2**25

# Columns or rows of a grid.
_MAX_ACROSS = 2**20

_PER_BATCH = 2**20


class CellCodes(Sequence[str]):
    """Codes of cells of columns and rows, both (n,) int64, each computed when it is read."""

    def __init__(self, columns: Integers, rows: Integers, code: Callable[[int, int], str]) -> None:
        self._columns, self._rows, self._code = columns, rows, code

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> CellCodes: ...
    def __getitem__(self, index: int | slice) -> str | CellCodes:
        if isinstance(index, slice):
            return CellCodes(self._columns[index], self._rows[index], self._code)
        return self._code(int(self._columns[index]), int(self._rows[index]))


def kept_cells(grid: AlignedGrid, boundary: Boundary | None) -> tuple[Integers, Integers] | None:
    """Columns and rows of the cells in which a record may be; None if there are too many."""
    across, up = grid.counts
    if not _is_small(grid, MAX_NODES if boundary is None else _MAX_IN_BOUNDS):
        return None
    cells = np.arange(across * up)
    if boundary is None:
        rows, columns = np.divmod(cells, across)
        return columns, rows
    # Cells of the bounds in which the boundary has an area, looked at in batches.
    (west, east), (south, north) = (grid.lattice_range(axis) for axis in (0, 1))
    inside = []
    for start in range(0, len(cells), _PER_BATCH):
        rows, columns = np.divmod(cells[start : start + _PER_BATCH], across)
        boxes = np.stack([west[columns], south[rows], east[columns], north[rows]], axis=1)
        inside.append(boundary.mask.mass(boxes) > 0)
    rows, columns = np.divmod(cells[np.concatenate(inside)], across)
    return (columns, rows) if len(columns) <= MAX_NODES else None


def _is_small(grid: AlignedGrid, limit: int) -> bool:
    """Whether the cells of the bounds are few enough to be looked at."""
    across, up = grid.counts
    return across * up <= limit and max(across, up) <= _MAX_ACROSS


def has_room(grid: AlignedGrid, boundary: Boundary | None) -> bool:
    """Whether the cells of a grid are few enough, with some room for coarser levels."""
    cells = kept_cells(grid, boundary)
    return cells is not None and len(cells[0]) * 4 <= MAX_NODES * 3


def read_cells(grid: AlignedGrid, table: pa.Table | None) -> tuple[Integers, Integers]:
    """Columns and rows of the cells of a release, which is untrusted."""
    across, up = grid.counts
    if not _is_small(grid, MAX_NODES if table is None else _MAX_IN_BOUNDS):
        raise ReleaseFormatError("regions are too many")
    if table is None:
        cell = np.arange(across * up)
    else:
        # Cells that were kept, ascending, so none is there twice.
        cell = cell_column(table)
        if cell[0] < 0 or cell[-1] >= across * up or (np.diff(cell) <= 0).any():
            raise ReleaseFormatError("cells of regions must be in the bounds and in their order")
    rows, columns = np.divmod(cell, across)
    return columns, rows


def cell_column(table: pa.Table) -> Integers:
    """Cells of the table of a release, at least one; their order is not checked."""
    import pyarrow as pa

    if table.schema.names != ["cell"] or table.schema.types != [pa.int64()]:
        raise ReleaseFormatError("regions must have a column cell")
    if not 0 < table.num_rows <= MAX_NODES or table.column("cell").null_count:
        raise ReleaseFormatError("regions are too many, or none")
    return from_arrow(table.column("cell"))
