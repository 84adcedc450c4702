"""The public domain: bounds, coordinate reference system and the lattice laid over them.

Coordinates meet the lattice once; everything that touches true data afterwards is integer.
Bounds come from the caller or a public file, never from the points.
"""

from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd.errors import DomainError
from psd.space.crs import known_crs, transforming

__all__ = ["DEFAULT_LATTICE", "Domain"]

DEFAULT_LATTICE = (2**20, 2**20)
MAX_LATTICE = 2**30

# An edge that a caller typed from a printed table is meant to be the lattice line itself.
_SNAP = 1e-6

# Rounding moves an edge by less than two units in the last place; a cell keeps its width.
_ULPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A rectangle in a known CRS, cut into a public lattice of columns and rows.

    Guarantees
    ----------
    - Nothing here comes from the points; two data sets share the domain of their owner.
    - Each point inside falls in exactly one lattice cell: cells are half-open, they hold their
      west and south edge, and the far edges of the domain belong to the last cells.
    - A point and a published cell edge are compared as the same floating-point numbers, so
      the cell that holds a point is the cell that a map shows it in.

    Parameters
    ----------
    bounds : tuple of float
        West, south, east, north, in units of the CRS, x before y. Public.
    crs : str
        Anything that pyproj understands, such as ``"EPSG:4326"``. Public.
    lattice : tuple of int
        Columns and rows of the lattice, each 1 to 2^30. Public.

    Raises
    ------
    DomainError
        If the bounds are not finite, have no area or lie outside the CRS, or if the CRS is
        unknown.

    Examples
    --------
    >>> domain = Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> domain.width, domain.crs
    (1.1999999999999886, 'EPSG:4326')
    """

    bounds: tuple[float, float, float, float]
    crs: str = "EPSG:4326"
    lattice: tuple[int, int] = DEFAULT_LATTICE
    geographic: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the fields; the CRS is kept in its canonical text."""
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        crs, geographic = _checked_crs(self.crs)
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "geographic", geographic)
        if geographic:
            _check_degrees(self.bounds)
        object.__setattr__(self, "lattice", _checked_lattice(self.lattice))
        if not all(self._has_room(axis) for axis in (0, 1)):
            raise DomainError(
                f"bounds {self.bounds} are too narrow for a lattice of {self.lattice[0]} x "
                f"{self.lattice[1]} cells; widen them or take a coarser lattice"
            )
        if not geographic and not _meets_area_of_use(self.bounds, crs):
            raise DomainError(
                f"bounds {self.bounds} lie outside the area that {crs} is made for; are they in "
                "degrees, or is the CRS another one?"
            )

    def _has_room(self, axis: int) -> bool:
        """Whether floating point tells the lattice lines of an axis apart everywhere."""
        low, high, cells = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        coarsest = math.ulp(max(abs(low), abs(high)))
        return (high - low) / cells >= max(_ULPS * coarsest, sys.float_info.min)

    @classmethod
    def area_of_use(cls, crs: str, *, lattice: tuple[int, int] = DEFAULT_LATTICE) -> Domain:
        """The public area that a CRS is made for; the world for EPSG:4326.

        Parameters
        ----------
        crs : str
            Anything that pyproj understands.
        lattice : tuple of int
            Columns and rows of the lattice.

        Raises
        ------
        DomainError
            If the CRS is unknown, or nobody said where it is meant to be used.

        Examples
        --------
        >>> Domain.area_of_use("EPSG:4326").bounds
        (-180.0, -90.0, 180.0, 90.0)
        """
        area = _area_of_use(_checked_crs(crs)[0])
        if area is None:
            raise DomainError(f"crs {crs!r} has no area of use; give bounds (--bounds)")
        return cls(bounds=area, crs=crs, lattice=lattice)

    @property
    def width(self) -> float:
        """East minus west, in units of the CRS."""
        return self.bounds[2] - self.bounds[0]

    @property
    def height(self) -> float:
        """North minus south, in units of the CRS."""
        return self.bounds[3] - self.bounds[1]

    def edges(self, axis: int, lines: ArrayLike) -> NDArray[np.float64]:
        """Coordinates of lattice lines.

        Parameters
        ----------
        axis : int
            0 for x, 1 for y.
        lines : array_like of int, shape (n,)
            Lattice lines, 0 to columns or rows.

        Returns
        -------
        ndarray, shape (n,), float64
            Coordinates in units of the CRS; the last line is exactly the far bound.
        """
        lines = np.asarray(lines)
        low, high, cells = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        return np.where(lines == cells, high, low + lines * ((high - low) / cells))

    def quantise(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """Lattice cell of each point; the only place where coordinates become cells.

        Parameters
        ----------
        x, y : ndarray, shape (n,), float64
            Coordinates in the CRS of the domain. Private.

        Returns
        -------
        columns, rows : ndarray, shape (m,), int32
            Cells of the points inside the bounds, in their order.
        inside : ndarray, shape (n,), bool
            Which points these are; a coordinate that is not finite is outside.
        """
        west, south, east, north = self.bounds
        inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
        if not inside.all():
            x, y = x[inside], y[inside]
        return self._cells(0, x), self._cells(1, y), inside

    def _cells(self, axis: int, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Cell per value: a float guess, put right against the published edges on both sides."""
        low, high, cells = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        guess = np.clip(np.floor((values - low) * (cells / (high - low))), 0, cells - 1)
        index = guess.astype(np.int32)
        # Lines as `edges` has them, but for the last, which no index goes beyond.
        step = (high - low) / cells
        index -= values < low + index * step
        index += values >= low + (index + 1) * step
        # The far edge belongs to the last cell.
        return np.minimum(index, cells - 1)

    def to_lattice(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Boxes in lattice units, clipped to the domain.

        Parameters
        ----------
        boxes : ndarray, shape (n, 4), float64
            West, south, east, north in the CRS.

        Returns
        -------
        ndarray, shape (n, 4), float64
            The same edges counted in lattice cells from the south-west corner; an edge within
            1e-6 of a cell from a lattice line, or published as one, is taken to be that line.
        """
        columns, rows = self.lattice
        origin = np.array([self.bounds[0], self.bounds[1]] * 2)
        scale = np.array([columns / self.width, rows / self.height] * 2)
        lattice = (np.clip(boxes, origin, self.bounds[2:] * 2) - origin) * scale
        nearest = np.rint(lattice)
        on_line = (np.abs(lattice - nearest) < _SNAP) | (self.from_lattice(nearest) == boxes)
        lattice = np.where(on_line, nearest, lattice)
        clipped: NDArray[np.float64] = np.clip(lattice, 0.0, [columns, rows] * 2)
        return clipped

    def from_lattice(self, boxes: NDArray[np.integer | np.floating]) -> NDArray[np.float64]:
        """Boxes of lattice lines as coordinates: west, south, east, north."""
        return np.stack([self.edges(side % 2, boxes[:, side]) for side in range(4)], axis=1)


def _checked_bounds(bounds: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Four finite numbers, west < east and south < north."""
    try:
        west, south, east, north = (float(edge) for edge in bounds)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            f"bounds take four numbers, west south east north, not {str(bounds)[:80]}"
        ) from None
    if not all(math.isfinite(edge) for edge in (west, south, east, north)):
        raise DomainError(f"bounds {west} {south} {east} {north} are not all finite numbers")
    if west >= east:
        raise DomainError(
            f"bounds: west {west} is not below east {east}; a domain across the antimeridian "
            "has to be split in two, and the order is west south east north"
        )
    if south >= north:
        raise DomainError(
            f"bounds: south {south} is not below north {north}; the order is west south east north"
        )
    if not (math.isfinite(east - west) and math.isfinite(north - south)):
        raise DomainError(f"bounds {west} {south} {east} {north} are too far apart")
    return west, south, east, north


def _checked_lattice(lattice: tuple[int, int]) -> tuple[int, int]:
    """Two plain integers."""
    try:
        columns, rows = (operator.index(size) for size in lattice)
    except (TypeError, ValueError):
        columns = rows = 0
    if not (1 <= columns <= MAX_LATTICE and 1 <= rows <= MAX_LATTICE):
        raise DomainError(f"lattice {str(lattice)[:80]} needs 1 to 2^30 columns and rows")
    return columns, rows


def _checked_crs(text: str) -> tuple[str, bool]:
    """Canonical text of a CRS and whether its coordinates are degrees."""
    crs = known_crs(text)
    if not (crs.is_geographic or crs.is_projected or crs.is_engineering):
        raise DomainError(f"crs {text!r} has no map coordinates x and y; try EPSG:4326")
    authority = crs.to_authority(min_confidence=100)
    return (":".join(authority) if authority else crs.to_wkt()), bool(crs.is_geographic)


@cache
def _area_of_use(crs: str) -> tuple[float, float, float, float] | None:
    """Where a projected CRS is meant to be used, in its own units, if anybody said so."""
    from pyproj import CRS, Transformer

    found = CRS.from_user_input(crs)
    if found.area_of_use is None or found.geodetic_crs is None:
        return None
    with transforming("the area that it is made for", crs):
        there = Transformer.from_crs(found.geodetic_crs, found, always_xy=True)
        bounds: tuple[float, float, float, float] = there.transform_bounds(
            *found.area_of_use.bounds
        )
    return bounds if all(map(math.isfinite, bounds)) else None


def _meets_area_of_use(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether bounds touch the area of use, or a margin of its own size around it."""
    area = _area_of_use(crs)
    if area is None:
        return True
    reach_x, reach_y = (area[2] - area[0]) / 4, (area[3] - area[1]) / 4
    return (
        bounds[0] < area[2] + reach_x
        and bounds[2] > area[0] - reach_x
        and bounds[1] < area[3] + reach_y
        and bounds[3] > area[1] - reach_y
    )


def _check_degrees(bounds: tuple[float, float, float, float]) -> None:
    """Longitude and latitude have limits; numbers beyond them are metres or swapped."""
    west, south, east, north = bounds
    if max(abs(south), abs(north)) > 90:
        raise DomainError(
            f"bounds: latitude {south} to {north} is beyond 90 degrees; are x and y swapped, or "
            "are these metres of a projected CRS (give it with --crs)?"
        )
    if max(abs(west), abs(east)) > 180:
        raise DomainError(
            f"bounds: longitude {west} to {east} is beyond 180 degrees; are these metres of a "
            "projected CRS (give it with --crs), or longitudes counted from 0 to 360?"
        )
