"""A public grid of bins on the lattice: the bin of each cell, and the lines between bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers

__all__ = ["BinGrid"]


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
        return ((cell.astype(np.int64) + 1) * min(self.bins, cells) - 1) // cells

    def reach(self, axis: int, boxes: Integers) -> tuple[Integers, Integers]:
        """First bin that boxes meet, and the one after the last."""
        return self.number(axis, boxes[:, axis]), self.number(axis, boxes[:, axis + 2] - 1) + 1
