"""One axis of the lattice: where its lines are, and which cell holds a value.

Without a coordinate resolution the lines divide the bounds into equal cells. With one, each cell
holds one value that a coordinate can have, a multiple of the resolution, in its middle.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd._util.instances import shown
from psd.errors import DomainError

__all__ = ["EvenAxis", "LatticeAxis", "SteppedAxis"]

MAX_LATTICE = 2**30

# An edge this close to a lattice line, in cells, or to a value, in steps, is taken as that one,
# since callers may copy edges from printed tables.
_SNAP = 1e-6

# A slope that outlines do not have; any irrational number does.
_DIAGONAL = (math.sqrt(5) - 1) / 2

# Rounding moves an edge by less than two units in the last place; a cell keeps its width.
_ULPS = 4

# Largest product of a bound and the denominator of the resolution. Below it, all integers of the
# computation are exact as doubles, and a step is at least 16 units in the last place.
_MAX_PRODUCT = 2**48

_MAX_DIGITS = 15

# Values that are computed at once: they fit into the cache of a processor.
_BLOCK = 2**13


class LatticeAxis(ABC):
    """Lattice lines along one axis, from `low` to `high`."""

    low: float
    high: float
    cells: int

    @abstractmethod
    def inner_line(self, lines: Any, number: Callable[[float], Any] = float) -> Any:
        """Coordinate of inner lines, doubles or an expression, whose constants `number` makes."""

    @abstractmethod
    def guess_cell(self, values: Any, number: Callable[[float], Any] = float) -> Any:
        """Quotient whose floor is the cell of a value, or beside it; see `inner_line`."""

    @abstractmethod
    def centres(self, cells: NDArray[np.integer]) -> Floats:
        """Middle of cells: the value that a record of the cell has, if there is only one."""

    @abstractmethod
    def probe(self, cells: NDArray[np.integer], axis: int) -> Floats:
        """Coordinates by which it is decided whether cells lie in a polygon; see `SteppedAxis`."""

    @abstractmethod
    def to_lines(self, edges: Floats) -> Floats:
        """Convert edges of queries to lattice units, clipped to the axis."""

    def edges(self, lines: NDArray[Any]) -> Floats:
        """Coordinates of lattice lines; the outermost are exactly the bounds."""
        inner = self.inner_line(lines.astype(np.float64))
        return np.where(lines == self.cells, self.high, np.where(lines == 0, self.low, inner))

    def position(self, coordinates: Floats) -> Floats:
        """Lattice units of coordinates inside the bounds: the inverse of `edges`."""
        cell = self.find_cells(coordinates).astype(np.int64)
        low, high = self.edges(cell), self.edges(cell + 1)
        return np.asarray(cell + (coordinates - low) / (high - low))

    def find_cells(self, values: Floats) -> NDArray[np.int32]:
        """Cell of values inside the bounds: a guess, corrected by the published edges."""
        index = np.empty(values.shape, np.int32)
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            part = values[block]
            guess = np.clip(np.floor(self.guess_cell(part)), 0, self.cells - 1)
            cell: NDArray[np.int32] = guess.astype(np.int32)
            # Lines as in `edges`, except the outermost, which no index passes.
            cell -= part < self.inner_line(cell.astype(np.float64))
            cell += part >= self.inner_line((cell + 1).astype(np.float64))
            # The near and the far edge belong to the first and the last cell.
            index[block] = np.clip(cell, 0, self.cells - 1)
        return index


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenAxis(LatticeAxis):
    """Cells of equal width."""

    low: float  # bounds: the first and the last line
    high: float
    cells: int  # number of cells

    @property
    def has_room(self) -> bool:
        """Whether the lattice lines are different floating-point numbers."""
        coarsest = math.ulp(max(abs(self.low), abs(self.high)))
        return self._step >= max(_ULPS * coarsest, sys.float_info.min)

    @property
    def _step(self) -> float:
        """Width of a cell."""
        return (self.high - self.low) / self.cells

    def inner_line(self, lines: Any, number: Callable[[float], Any] = float) -> Any:
        """See `LatticeAxis`."""
        return number(self.low) + lines * number(self._step)

    def guess_cell(self, values: Any, number: Callable[[float], Any] = float) -> Any:
        """See `LatticeAxis`."""
        return (values - number(self.low)) * number(self.cells / (self.high - self.low))

    def centres(self, cells: NDArray[np.integer]) -> Floats:
        """See `LatticeAxis`."""
        return np.asarray((self.edges(cells) + self.edges(cells + 1)) / 2)

    def probe(self, cells: NDArray[np.integer], axis: int) -> Floats:
        """See `LatticeAxis`; the middle of the cells."""
        return self.centres(cells)

    def to_lines(self, edges: Floats) -> Floats:
        """See `LatticeAxis`; an edge close to a line, or published as one, becomes that line."""
        inside = np.clip(edges, self.low, self.high) - self.low
        lines = inside * (self.cells / (self.high - self.low))
        nearest = np.rint(lines)
        on_line = (np.abs(lines - nearest) < _SNAP) | (self.edges(nearest) == edges)
        return np.clip(np.where(on_line, nearest, lines), 0.0, self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedAxis(LatticeAxis):
    """Cells that hold one multiple of the coordinate resolution each, in their middle.

    P1. The values are exactly the doubles nearest to the multiples of the resolution that are
    inside the bounds, as a parser reads them from decimal text.
    P2. Lines are half-way between two values; the first and the last are the bounds.
    """

    low: float  # bounds: the first and the last line
    high: float
    cells: int  # number of values
    first: int  # the first value, in steps from 0
    numerator: int  # the resolution as a fraction; both parts are exact as doubles
    denominator: int

    @classmethod
    def within(cls, low: float, high: float, resolution: str) -> SteppedAxis:
        """Axis of all values between two bounds, these included."""
        step = Fraction(resolution)
        if max(abs(low), abs(high)) * step.denominator > _MAX_PRODUCT:
            raise DomainError(
                f"coordinate_resolution must be coarser than the rounding of floating-point "
                f"numbers from {low} to {high}, got {resolution}",
                name="coordinate_resolution",
                value=resolution,
            )
        first, last = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
        # A bound such as 0.1 is a double, which is not exactly the multiple that it states.
        first -= float((first - 1) * step) >= low
        last += float((last + 1) * step) <= high
        if not 1 <= last - first + 1 <= MAX_LATTICE:
            raise DomainError(
                f"coordinate_resolution must give 1 to 2^30 values along each axis, got "
                f"{max(last - first + 1, 0):,} multiples of {resolution} from {low} to {high}; is "
                "it in units of the CRS?",
                name="coordinate_resolution",
                value=resolution,
            )
        return cls(
            low=low,
            high=high,
            cells=last - first + 1,
            first=first,
            numerator=step.numerator,
            denominator=step.denominator,
        )

    def inner_line(self, lines: Any, number: Callable[[float], Any] = float) -> Any:
        """See `LatticeAxis`; half a step below the value of the cell that begins there."""
        halves = lines * number(2.0) + number(float(2 * self.first - 1))
        return halves * number(float(self.numerator)) / number(float(2 * self.denominator))

    def guess_cell(self, values: Any, number: Callable[[float], Any] = float) -> Any:
        """See `LatticeAxis`."""
        steps = values * number(float(self.denominator)) / number(float(self.numerator))
        return steps - number(self.first - 0.5)

    def centres(self, cells: NDArray[np.integer]) -> Floats:
        """See `LatticeAxis`."""
        return self._values(np.asarray(cells, np.float64) + self.first)

    def probe(self, cells: NDArray[np.integer], axis: int) -> Floats:
        """Points just north-east of the values, so that a value on an outline is on one side of it.

        They are as far from the values as an edge may be to be taken as one, and farther along x
        than along y, so that they leave a diagonal as well. At the far bound they are south-west of
        the value, since nothing lies beyond.
        """
        values, step = self.centres(cells), self.numerator / self.denominator
        aside = max(_SNAP * step, 2 * math.ulp(max(abs(self.low), abs(self.high))))
        aside *= _DIAGONAL if axis else 1.0
        return np.where(values + aside > self.high, values - aside, values + aside)

    def _values(self, steps: Floats) -> Floats:
        """Values at a number of steps from 0."""
        return np.asarray(steps * float(self.numerator) / float(self.denominator))

    def edges(self, lines: NDArray[Any]) -> Floats:
        """Coordinates of lattice lines; between lines, of that part of the cell."""
        # Whole lines first; places between two lines by a part of the cell's width.
        below = np.floor(lines)
        edge = LatticeAxis.edges(self, below)
        if (below == lines).all():
            return edge
        width = LatticeAxis.edges(self, np.minimum(below + 1, self.cells)) - edge
        return np.asarray(edge + (lines - below) * width)

    def to_lines(self, edges: Floats) -> Floats:
        """Move an edge to the line below the first value not below it, the far bound to the last.

        So a box holds the values on its west and south edge, not those on its east and north edge.
        """
        # In steps of the resolution; a value within rounding of an edge counts as on it.
        inside = np.clip(edges, self.low, self.high)
        steps = inside * float(self.denominator) / float(self.numerator)
        nearest, above = np.rint(steps), np.ceil(steps)
        above -= self._values(above - 1) >= inside
        above += self._values(above) < inside
        on_value = (np.abs(steps - nearest) < _SNAP) | (self._values(nearest) == inside)
        lines = np.where(on_value, nearest, above) - self.first
        return np.clip(np.where(edges >= self.high, self.cells, lines), 0.0, self.cells)


def parse_resolution(value: Any) -> str:
    """Canonical decimal text of a coordinate resolution."""
    is_number = isinstance(value, str | int | float | Decimal) and not isinstance(value, bool)
    try:
        step = Decimal(str(value).strip()) if is_number else Decimal("NaN")
    except InvalidOperation:
        step = Decimal("NaN")
    if step.is_finite() and step > 0 and abs(step.adjusted()) <= _MAX_DIGITS:
        _, digits, exponent = step.normalize().as_tuple()
        assert isinstance(exponent, int)
        if exponent >= -_MAX_DIGITS and len(digits) + max(exponent, 0) <= _MAX_DIGITS:
            return f"{step.normalize():f}"
    raise DomainError(
        "coordinate_resolution must be a decimal number above 0 with at most 15 digits, such as "
        f"0.0001, got {shown(value)}; it is the step to which the coordinates are rounded",
        name="coordinate_resolution",
    )
