"""Uniform grids under virtual nodes of four children at most, and the Hilbert curve [1]_. Public.

.. [1] Hilbert. "Ueber die stetige Abbildung einer Linie auf ein Flächenstück." Mathematische
   Annalen 38, 1891.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Integers
from psd.errors import ParameterError
from psd.space.box_tree import Tree
from psd.space.domain import Domain, public_domain
from psd.space.growing_tree import Cells, GrowingTree


class Cutter(Protocol):
    """Anything that cuts cells at lines: `Curator.cut`, or a growing tree without data."""

    def __call__(
        self, cells: Cells, /, *, x: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> Cells:
        """Cut the cells; return their children."""


def cut_grid(cut: Cutter, root: Cells, lattice: tuple[int, int], size: tuple[int, int]) -> Cells:
    """Cut the root into a grid by halving the ranges of its lines.

    With a flat root of thousands of children, each query would visit all of them. With halving
    it visits the cells that it cuts; estimates and variances are the same.

    Parameters
    ----------
    cut : Cutter
        Cuts cells.
    root : Cells
        The whole domain.
    lattice : tuple of int
        Columns and rows of the lattice.
    size : tuple of int
        Columns and rows of the grid; those of the lattice if it is coarser.

    Returns
    -------
    Cells
        The grid's cells; never the root itself, which may be measured already.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> method = psd.decompositions.Grid(size=2)  # it cuts so
    >>> run = run_method(method, small_tally(4, [0]), small_domain(4), 1_000, RecordingSampler())
    >>> run.tree.boxes[run.tree.is_leaf].tolist()
    [[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]]
    """
    return cut_grids(cut, root, np.array([np.minimum(size, lattice)]))


def cut_grids(cut: Cutter, cells: Cells, sizes: NDArray[np.int64]) -> Cells:
    """Cut each cell into a grid of its own size, all of them at once.

    Parameters
    ----------
    cut : Cutter
        Cuts cells.
    cells : Cells
        Cells to divide, each once.
    sizes : ndarray, shape (n, 2) or (n, 1), int64
        Columns and rows for each cell, or both in one number; those of the lattice if the cell
        has fewer. Public: numbers of the caller or answers of earlier questions.

    Returns
    -------
    Cells
        The cells of all grids, the larger ones first; a grid of one cell is a separate child,
        because the cell itself may be measured already.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> method = psd.decompositions.method("adaptive-grid", {"size": "2"})  # it cuts so
    >>> run = run_method(method, small_tally(4, [0]), small_domain(4), 1_000, RecordingSampler())
    >>> int(run.tree.is_leaf.sum()) >= 4
    True
    """
    origin, sides = cells.boxes[:, :2], cells.boxes[:, 2:] - cells.boxes[:, :2]
    sizes = np.clip(sizes, 1, sides)
    is_whole = (sizes == 1).all(axis=1)
    # A cell of a grid of one still gets a child: the cell itself may be measured already.
    done = [cut(cells[is_whole])] if is_whole.any() else []
    # Each open cell covers the lines `low` to `high` of the grid number `grid`.
    cells, grid = cells[~is_whole], np.flatnonzero(~is_whole).astype(np.int32)
    low, high = np.zeros((len(grid), 2), np.int32), sizes[grid].astype(np.int32)
    while len(cells):
        # All grids are halved together, along both axes: as many rounds as the longest side needs.
        middle = (low + high) // 2
        lines = origin[grid] + middle * sides[grid] // sizes[grid]
        # A side of one grid cell is not cut, so a cell has two or four children.
        family = np.repeat(
            np.arange(len(cells), dtype=np.int32), np.where(middle > low, 2, 1).prod(axis=1)
        )
        cells = cut(cells, x=lines[:, 0], y=lines[:, 1])
        # Each child has the lines below or above the one that was cut, on each axis by itself.
        beyond = cells.boxes[:, :2] >= lines[family]
        low = np.where(beyond, middle[family], low[family])
        high = np.where(beyond, high[family], middle[family])
        grid = grid[family]
        is_single = (high - low == 1).all(axis=1)
        done.append(cells[is_single])
        cells, grid = cells[~is_single], grid[~is_single]
        low, high = low[~is_single], high[~is_single]
    return Cells.join(done)


def grid_tree(domain: Domain, size: int | tuple[int, int]) -> Tree:
    """Make a grid without measurements, for `Release.from_counts`.

    Parameters
    ----------
    domain : Domain
        Domain to cut.
    size : int or (int, int)
        Cells per side, or columns and rows.

    Returns
    -------
    Tree
        Its leaves are the cells of the grid.

    Raises
    ------
    ParameterError
        If the domain is neither a `Domain` nor four numbers.

    Examples
    --------
    >>> domain = Domain(bounds=(0, 0, 3, 3), crs="EPSG:3857", lattice=(3, 3))
    >>> int(grid_tree(domain, 3).is_leaf.sum())
    9
    """
    domain = public_domain(domain)
    growing = GrowingTree(domain.lattice)

    def cut(cells: Cells, *, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Cells:
        return growing.cut(cells, x=x, y=y).cells

    columns, rows = (size, size) if isinstance(size, int) else size
    if columns < 1 or rows < 1:
        raise ParameterError(f"size must be at least 1 on each side, got {columns} x {rows}")
    cut_grid(cut, growing.root(), domain.lattice, (columns, rows))
    return growing.tree()


@dataclass(frozen=True, slots=True, kw_only=True)
class BinGrid:
    """A grid of bins on the lattice."""

    lattice: tuple[int, int]  # columns and rows
    bins: int  # bins per side; the lattice cells themselves if the lattice is coarser

    def line(self, axis: int, number: Integers) -> Integers:
        """First lattice line of bins."""
        cells = self.lattice[axis]
        return number * cells // min(self.bins, cells)

    def number(self, axis: int, cell: NDArray[np.integer]) -> Integers:
        """Bin of lattice columns or rows: the last bin that begins at or before the cell."""
        cells = self.lattice[axis]
        # The inverse of `line`, by integers: a lattice line is never one bin off.
        return ((cell.astype(np.int64) + 1) * min(self.bins, cells) - 1) // cells

    def bin_range(self, axis: int, boxes: Integers) -> tuple[Integers, Integers]:
        """First bin that boxes meet, and the one after the last."""
        return self.number(axis, boxes[:, axis]), self.number(axis, boxes[:, axis + 2] - 1) + 1


# Codes stay below 2^36; what selects among them needs the rest of the 64 bits for weights.
MAX_ORDER = 18


def encode(x: NDArray[np.int64], y: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """Position on the Hilbert curve of cells of a square of 2^order x 2^order.

    x, y: (n,) int64, columns and rows from 0 to 2^order - 1, order at most 18; returns (n,) int64.
    P1. One to one onto 0 to 4^order - 1; cells that follow each other share an edge.
    P2. Each dyadic square of side 2^j holds the codes of one interval [c 4^j, (c + 1) 4^j), with c
    its own position on the curve of order - j.
    Of each square the curve visits the quarters SW, NW, NE, SE in its own frame: that of the square
    around it, axes swapped in the first and last quarter, both turned round in the last. Only the
    bits above can have set these two flags. So two bits of the code follow from one bit of each
    coordinate and the bits above, which is P2.
    """
    code, swapped, turned = (np.zeros(len(x), np.int64) for _ in range(3))
    for bit in reversed(range(order)):
        # Which quarter, by one bit of each coordinate, then in the frame of the square.
        across, up = x >> bit & 1, y >> bit & 1
        change = (across ^ up) & swapped ^ turned
        across, up = across ^ change, up ^ change
        # SW, NW, NE, SE are 0, 1, 2, 3.
        code = code << 2 | 3 * across ^ up
        swapped ^= 1 - up
        turned ^= across & (1 - up)
    return code


def decode(code: NDArray[np.int64], order: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows of positions on the curve, (n,) int64 each: the inverse of `encode`."""
    x, y, swapped, turned = (np.zeros(len(code), np.int64) for _ in range(4))
    for bit in reversed(range(order)):
        digit = code >> 2 * bit
        across = digit >> 1 & 1
        # The quarter in the frame of the square, then turned back to column and row.
        up = across ^ digit & 1
        change = (across ^ up) & swapped ^ turned
        x = x << 1 | across ^ change
        y = y << 1 | up ^ change
        swapped ^= 1 - up
        turned ^= across & (1 - up)
    return x, y


def lattice_codes(
    columns: NDArray[np.integer], rows: NDArray[np.integer], lattice: tuple[int, int], order: int
) -> NDArray[np.int64]:
    """Codes of lattice cells, with the lattice scaled to 2^order x 2^order, not one to one."""
    x, y = (
        (values.astype(np.int64) << order) // cells
        for values, cells in zip((columns, rows), lattice, strict=True)
    )
    return encode(x, y, order)


def square_lines(positions: NDArray[np.int64], cells: int, order: int) -> NDArray[np.int64]:
    """First lattice line of an axis whose cells, scaled, lie at or beyond each position."""
    # Rounded up, as the negative of what is rounded down.
    return -(-positions * cells >> order)
