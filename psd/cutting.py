"""Ready-made ways to cut: a grid under virtual nodes of at most four children."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from psd.domain import Domain
from psd.errors import ParameterError
from psd.growing import Cells, GrowingTree
from psd.tree import Tree

__all__ = ["Cutter", "cut_grid", "grid_tree"]


class Cutter(Protocol):
    """Anything that cuts cells at lines: `Curator.cut`, or a growing tree without data."""

    def __call__(
        self, cells: Cells, *, x: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> Cells:
        """Children of the cells."""


def cut_grid(cut: Cutter, root: Cells, lattice: tuple[int, int], size: tuple[int, int]) -> Cells:
    """Cut the root into a grid by halving the ranges of its lines.

    A flat root with thousands of children would make each query look at all of them; halving
    keeps it at the cells it cuts, and changes no estimate and no variance.

    Parameters
    ----------
    cut : Cutter
        Cuts cells.
    root : Cells
        The whole domain.
    lattice : tuple of int
        Columns and rows of the lattice.
    size : tuple of int
        Columns and rows of the grid; where the lattice is coarser, those of the lattice.

    Returns
    -------
    Cells
        The grid's cells; never the root itself, which may be measured already.
    """
    size_x, size_y = (min(pair) for pair in zip(size, lattice, strict=True))
    if size_x == size_y == 1:
        return cut(root)
    lines_x, lines_y = (
        np.arange(m + 1) * n // m for m, n in zip((size_x, size_y), lattice, strict=True)
    )
    cells, done = root, []
    while len(cells):
        west, east = (np.searchsorted(lines_x, cells.boxes[:, side]) for side in (0, 2))
        south, north = (np.searchsorted(lines_y, cells.boxes[:, side]) for side in (1, 3))
        single = (east - west == 1) & (north - south == 1)
        done.append(cells[single])
        x, y = lines_x[(west + east) // 2], lines_y[(south + north) // 2]
        cells = cut(cells[~single], x=x[~single], y=y[~single])
    return Cells.join(done)


def grid_tree(domain: Domain, size: int | tuple[int, int]) -> Tree:
    """Grid without measurements, for `Release.from_counts`.

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

    Examples
    --------
    >>> domain = Domain(bounds=(0, 0, 3, 3), crs="EPSG:3857", lattice=(3, 3))
    >>> int(grid_tree(domain, 3).is_leaf.sum())
    9
    """
    growing = GrowingTree(domain.lattice)

    def cut(cells: Cells, *, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Cells:
        return growing.cut(cells, x=x, y=y).cells

    columns, rows = (size, size) if isinstance(size, int) else size
    if columns < 1 or rows < 1:
        raise ParameterError(f"grid of {columns} x {rows} cells; each side needs at least one")
    cut_grid(cut, growing.root(), domain.lattice, (columns, rows))
    return growing.tree()
