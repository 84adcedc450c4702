"""The smallest cell: how small a cell may be on the ground where the data decide the division.

An adaptive method divides cells where records are dense. Without a limit it ends at cells of a few
centimetres, which say where coordinates were rounded and not where people are. `min_cell` is the
limit in metres. It is public, and so are the blocks of lattice columns and rows that follow from
it: they depend on the bounds and the CRS alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.errors import DomainError

__all__ = [
    "DEFAULT_MIN_CELL",
    "Blocks",
    "ground_sides",
    "min_cell_within",
    "parse_min_cell",
    "smallest_blocks",
]

DEFAULT_MIN_CELL: Final = "5"
"""Metres; see docs/measured/smallest-cell.md for the figures by which it was chosen."""

METRES_PER_DEGREE: Final = 110_574.0
"""The shortest degree on the Earth, of latitude at the equator; so no side is overestimated."""

MAX_LATITUDE: Final = 80.0
"""Where a degree of longitude is measured in bounds that reach farther: at a pole it is 0."""

_MAX_METRES = 10**9
_MIN_EXPONENT = -6


def parse_min_cell(value: Any) -> str | None:
    """Canonical decimal text of a smallest cell in metres; None for 0 and None.

    Raises
    ------
    DomainError
        If it is not a decimal number of metres, at least 0.

    Examples
    --------
    >>> parse_min_cell("50.0"), parse_min_cell(12.5), parse_min_cell(0)
    ('50', '12.5', None)
    """
    if value is None:
        return None
    is_number = isinstance(value, str | int | float | Decimal) and not isinstance(value, bool)
    try:
        metres = Decimal(str(value).strip()) if is_number else Decimal("NaN")
    except InvalidOperation:
        metres = Decimal("NaN")
    if metres.is_finite() and 0 <= metres <= _MAX_METRES:
        if metres == 0:
            return None
        exponent = metres.normalize().as_tuple().exponent
        if isinstance(exponent, int) and exponent >= _MIN_EXPONENT:
            return f"{metres.normalize():f}"
    raise DomainError(
        "min_cell must be a decimal number of metres with at most 6 decimals, at least 0, got "
        f"{str(value)[:80]!r}; it is the smallest side of a cell on the ground, and 0 is no limit",
        name="min_cell",
    )


def ground_sides(
    bounds: tuple[float, float, float, float], metres_per_unit: float | None
) -> tuple[float, float]:
    """Width and height of bounds on the ground, in metres.

    Parameters
    ----------
    bounds : tuple of float
        West, south, east, north.
    metres_per_unit : float, optional
        Length of a unit of the CRS; None for degrees. A degree of longitude is measured at the
        latitude of the bounds that is farthest from the equator, and at most 80 degrees from it.

    Examples
    --------
    >>> [round(side) for side in ground_sides((0, 51, 1, 52), None)]
    [68076, 110574]
    """
    west, south, east, north = bounds
    if metres_per_unit is not None:
        return (east - west) * metres_per_unit, (north - south) * metres_per_unit
    farthest = min(max(abs(south), abs(north)), MAX_LATITUDE)
    along = METRES_PER_DEGREE * math.cos(math.radians(farthest))
    return (east - west) * along, (north - south) * METRES_PER_DEGREE


def min_cell_within(sides: tuple[float, float], min_cell: str) -> str:
    """The smallest cell, or the shorter side of the bounds, in whole millimetres, if that is less.

    Examples
    --------
    >>> min_cell_within((120.75, 900.0), "50"), min_cell_within((120.75, 900.0), "500")
    ('50', '120.75')
    """
    if float(min_cell) <= min(sides):
        return min_cell
    return f"{math.floor(min(sides) * 1000) / 1000:.3f}".rstrip("0").rstrip(".")


def smallest_blocks(
    sides: tuple[float, float], lattice: tuple[int, int], min_cell: str | None
) -> tuple[int, int]:
    """Lattice columns and rows of the smallest cell: powers of two, so that halving reaches them.

    Parameters
    ----------
    sides : tuple of float
        Width and height of the bounds on the ground, in metres.
    lattice : tuple of int
        Columns and rows.
    min_cell : str, optional
        In metres; without it every lattice cell may be a cell.

    Examples
    --------
    >>> smallest_blocks((60_000.0, 40_000.0), (2**20, 2**20), "50")
    (1024, 2048)
    >>> smallest_blocks((60_000.0, 40_000.0), (64, 64), "50")
    (1, 1)
    """
    if min_cell is None:
        return 1, 1
    metres = float(min_cell)
    columns, rows = (
        min(_power_of_two(metres * cells / side), cells)
        for side, cells in zip(sides, lattice, strict=True)
    )
    return columns, rows


def _power_of_two(lines: float) -> int:
    """The least power of two that is at least a number of lines; errors of rounding apart."""
    return 1 << max(0, math.ceil(math.log2(lines) - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A lattice in blocks of columns and rows: a coarser lattice, all of whose lines are lines.

    Guarantees
    ----------
    - Each block has exactly `step` columns and rows, but the last of an axis, which also has those
      that are left over. A cell of blocks is never smaller than one block.

    Parameters
    ----------
    lattice : tuple of int
        Columns and rows of the fine lattice.
    step : tuple of int
        Columns and rows of a block.

    Examples
    --------
    >>> blocks = Blocks(lattice=(11, 8), step=(4, 4))
    >>> blocks.coarse_lattice
    (2, 2)
    >>> blocks.to_fine(np.array([[0, 0, 1, 1], [1, 1, 2, 2]])).tolist()
    [[0, 0, 4, 4], [4, 4, 11, 8]]
    """

    lattice: tuple[int, int]
    step: tuple[int, int]

    @property
    def coarse_lattice(self) -> tuple[int, int]:
        """Columns and rows of blocks."""
        columns, rows = (max(1, n // s) for n, s in zip(self.lattice, self.step, strict=True))
        return columns, rows

    def to_blocks(self, cells: NDArray[np.integer], axis: int) -> NDArray[np.int32]:
        """Block of lattice columns or rows."""
        last = self.coarse_lattice[axis] - 1
        return np.asarray(np.minimum(cells // self.step[axis], last), np.int32)

    def to_fine(self, boxes: NDArray[np.integer | np.floating]) -> Integers:
        """Boxes in lines of the fine lattice, from boxes in lines of blocks."""
        fine = np.asarray(boxes, np.int64) * np.array(self.step * 2)
        ends = boxes == np.array(self.coarse_lattice * 2)
        return np.where(ends, np.array(self.lattice * 2), fine)

    def keeps(self, boxes: NDArray[np.integer]) -> bool:
        """Whether no box on the fine lattice has fewer columns or rows than a block."""
        sides = boxes[:, 2:].astype(np.int64) - boxes[:, :2]
        return bool((sides >= np.array(self.step)).all())
