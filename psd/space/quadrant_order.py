"""Order of lattice cells in which all cells of repeated halves are ranges.

Halving both axes of the lattice again and again gives each lattice cell a path: for each level the
quadrant that contains it, south-west, south-east, north-west or north-east. Its code is the path as
a number, two bits per level. On a square lattice of 2^h columns it is the Morton code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers, morton_codes, morton_numbers

__all__ = ["QuadrantOrder"]

# Cells that are computed at once: they fit into the cache of a processor.
_BLOCK = 2**14


class QuadrantOrder:
    """Codes of lattice cells by the quadrants that contain them.

    Guarantees
    ----------
    - The codes of the lattice cells of a node of repeated halves, as `Cells.middle` cuts them, are
      the range of `size` codes that begins with the code of its south-west cell.
    - Codes are below 4^levels, and different cells have different codes.

    Parameters
    ----------
    lattice : tuple of int
        Columns and rows. Public.

    Examples
    --------
    >>> QuadrantOrder((4, 4)).codes(np.array([0, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 0]))
    array([0, 1, 2, 3, 4])
    """

    def __init__(self, lattice: tuple[int, int]) -> None:
        self.lattice = lattice
        self._axes = tuple(_HalvedAxis(cells) for cells in lattice)
        self.levels = max(axis.levels for axis in self._axes)

    def codes(self, columns: NDArray[np.integer], rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Code of each lattice cell."""
        codes = np.empty(len(columns), np.int64)
        for start in range(0, len(codes), _BLOCK):
            block = slice(start, start + _BLOCK)
            codes[block] = morton_codes(
                *(
                    axis.paths(cells[block]) << self.levels - axis.levels
                    for axis, cells in zip(self._axes, (columns, rows), strict=True)
                )
            )
        return codes

    def cells(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Columns and rows of codes of lattice cells."""
        columns, rows = (
            axis.numbers(paths >> self.levels - axis.levels)
            for axis, paths in zip(self._axes, morton_numbers(codes), strict=True)
        )
        return columns, rows

    def size(self, level: Integers) -> Integers:
        """Number of codes of a node that many halvings below the root."""
        return np.int64(1) << 2 * (self.levels - level)


class _HalvedAxis:
    """Paths of the cells of an axis through its repeated halves.

    A part of w cells is divided into floor(w / 2) and the rest; a part of one cell stays as it is,
    in the lower half. So the path inside a part follows from its width and the offset in it, and
    the parts of a level have at most two widths, n and n + 1.

    Parameters
    ----------
    cells : int
        Number of cells.
    """

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self.levels = (cells - 1).bit_length()
        self._is_even = cells == 1 << self.levels
        if self._is_even:
            return
        upper = self.levels // 2
        starts = np.array([0, cells])
        for _ in range(upper):
            middles = (starts[:-1] + starts[1:]) // 2
            starts = np.append(np.stack([starts[:-1], middles], axis=1), cells)
        self._starts = starts
        self._lower = self.levels - upper
        self._narrow = int(np.diff(starts).min())
        # One table for both widths; the last path of the narrow one is not used.
        self._paths = np.zeros((2, self._narrow + 1), np.int64)
        self._offsets = np.zeros((2, 1 << self._lower), np.int64)
        for kind, width in enumerate((self._narrow, self._narrow + 1)):
            paths = _paths_inside(width, self._lower)
            self._paths[kind, :width] = paths
            self._offsets[kind, paths] = np.arange(width)

    def paths(self, cells: NDArray[np.integer]) -> NDArray[np.int64]:
        """Path of each cell, a number of `levels` bits that increases with the cell."""
        wide = cells.astype(np.int64)
        if self._is_even:
            return wide
        # Each start is below its share of all cells by less than the width of a part: by at most
        # a half per level. So a cell is in the part of this share or in the next one.
        part = (wide << self.levels - self._lower) // self._cells
        part += wide >= self._starts[part + 1]
        path: Integers = part << self._lower
        path |= self._paths[self._kind(part), wide - self._starts[part]]
        return path

    def numbers(self, paths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cell of each path."""
        if self._is_even:
            return paths
        part = paths >> self._lower
        inside = self._offsets[self._kind(part), paths & ((1 << self._lower) - 1)]
        return np.asarray(self._starts[part] + inside)

    def _kind(self, part: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whether a part is wide."""
        width: Integers = self._starts[part + 1] - self._starts[part]
        return width - self._narrow


def _paths_inside(width: int, levels: int) -> NDArray[np.int64]:
    """Path of each offset in a part of a width."""
    offsets, paths = np.arange(width), np.zeros(width, np.int64)
    low, high = np.zeros(width, np.int64), np.full(width, width)
    for _ in range(levels):
        middle = np.where(high - low > 1, (low + high) // 2, high)
        is_high = offsets >= middle
        low, high = np.where(is_high, middle, low), np.where(is_high, high, middle)
        paths = paths << 1 | is_high
    return paths
