"""Which cells of a grid are regions, in their order, and the levels above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers, from_arrow
from psd.errors import ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, RegionLevel
from psd.regions.kinds._aligned import AlignedGrid

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.boundary import Boundary

__all__ = ["CellCodes", "kept_cells", "nested_levels", "read_cells"]

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
    ranges = [grid.lattice_range(axis) for axis in (0, 1)]
    inside = [
        boundary.mask.mass(_boxes(ranges, *np.divmod(part, across)[::-1])) > 0
        for part in _batches(cells)
    ]
    rows, columns = np.divmod(cells[np.concatenate(inside)], across)
    return (columns, rows) if len(columns) <= MAX_NODES else None


def _is_small(grid: AlignedGrid, limit: int) -> bool:
    """Whether the cells of the bounds are few enough to be looked at."""
    across, up = grid.counts
    return across * up <= limit and max(across, up) <= _MAX_ACROSS


def _batches(cells: Integers) -> Iterator[Integers]:
    """Cells, batch by batch."""
    for start in range(0, len(cells), _PER_BATCH):
        yield cells[start : start + _PER_BATCH]


def _boxes(
    ranges: list[tuple[Integers, Integers]], columns: Integers, rows: Integers
) -> NDArray[np.int64]:
    """Lattice boxes of cells."""
    (west, east), (south, north) = ranges
    return np.stack([west[columns], south[rows], east[columns], north[rows]], axis=1)


def nested_levels(
    grid: AlignedGrid,
    cells: tuple[Integers, Integers],
    factors: Sequence[int],
    names: Sequence[str],
    codes: Sequence[Callable[[int, int], str]],
) -> tuple[tuple[RegionLevel, ...], Integers]:
    """Levels of nested grids, and the cell of each lowest region, (n,) int64.

    `factors` are lowest cells along a side of a cell of each level, top first, so the last is 1.
    """
    column, row = (cells[axis] + grid.ranges[axis][0] for axis in (0, 1))
    keys = [_key(row // factor, column // factor) for factor in factors]
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
    return tuple(levels), order


def _key(row: Integers, column: Integers) -> Integers:
    """One number for a row and a column, in the order of rows."""
    low, span = int(column.min()), int(column.max() - column.min()) + 1
    return np.asarray((row - int(row.min())) * span + (column - low))


def read_cells(grid: AlignedGrid, table: pa.Table | None) -> tuple[Integers, Integers]:
    """Columns and rows of the cells of a release, which is untrusted."""
    import pyarrow as pa

    across, up = grid.counts
    if not _is_small(grid, MAX_NODES if table is None else _MAX_IN_BOUNDS):
        raise ReleaseFormatError("regions are too many")
    if table is None:
        cell = np.arange(across * up)
    else:
        if table.schema.names != ["cell"] or table.schema.types != [pa.int64()]:
            raise ReleaseFormatError("regions must have a column cell")
        if not 0 < table.num_rows <= MAX_NODES or table.column("cell").null_count:
            raise ReleaseFormatError("regions are too many, or none")
        cell = from_arrow(table.column("cell"))
        if cell[0] < 0 or cell[-1] >= across * up or (np.diff(cell) <= 0).any():
            raise ReleaseFormatError("cells of regions must be in the bounds and in their order")
    rows, columns = np.divmod(cell, across)
    return columns, rows
