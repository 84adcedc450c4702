"""The public domain: bounds, coordinate reference system and the lattice laid over them.

Coordinates become lattice cells once; all later work on true data is in integers. Bounds come
from the caller or a public file, never from the points.
"""

from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.instances import type_text
from psd.errors import DomainError, ParameterError
from psd.space.crs import explain_proj_errors, parse_crs

__all__ = ["DEFAULT_LATTICE", "Domain", "public_domain"]

DEFAULT_LATTICE = (2**20, 2**20)
MAX_LATTICE = 2**30

# An edge this close to a lattice line, in cells, is taken as that line, since callers may copy
# edges from printed tables.
_SNAP = 1e-6

# Rounding moves an edge by less than two units in the last place; a cell keeps its width.
_ULPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A rectangle in a known CRS, cut into a public lattice of columns and rows.

    Guarantees
    ----------
    - Nothing here depends on the points.
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
        object.__setattr__(self, "bounds", _check_bounds(self.bounds))
        crs, geographic = _check_crs(self.crs)
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "geographic", geographic)
        if geographic:
            _check_degrees(self.bounds)
        object.__setattr__(self, "lattice", _check_lattice(self.lattice))
        if not all(self._has_room(axis) for axis in (0, 1)):
            raise DomainError(
                f"bounds {self.bounds} are too narrow for a lattice of {self.lattice[0]} x "
                f"{self.lattice[1]} cells; widen the bounds or use a coarser lattice",
                name="bounds",
                value=self.bounds,
            )
        if not geographic and not _meets_area_of_use(self.bounds, crs):
            raise DomainError(
                f"bounds {self.bounds} lie outside the area of use of {crs}; are they in degrees, "
                "or is the CRS wrong?",
                name="bounds",
                value=self.bounds,
            )

    def _has_room(self, axis: int) -> bool:
        """Whether the lattice lines of an axis are different floating-point numbers."""
        low, high, cells = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        coarsest = math.ulp(max(abs(low), abs(high)))
        return (high - low) / cells >= max(_ULPS * coarsest, sys.float_info.min)

    @classmethod
    def area_of_use(cls, crs: str, *, lattice: tuple[int, int] = DEFAULT_LATTICE) -> Domain:
        """Domain of the area of use of a CRS; the world for EPSG:4326.

        Parameters
        ----------
        crs : str
            Anything that pyproj understands.
        lattice : tuple of int
            Columns and rows of the lattice.

        Raises
        ------
        DomainError
            If the CRS is unknown, or its area of use is.

        Examples
        --------
        >>> Domain.area_of_use("EPSG:4326").bounds
        (-180.0, -90.0, 180.0, 90.0)
        """
        area = _area_of_use(_check_crs(crs)[0])
        if area is None:
            raise DomainError(
                f"crs {crs!r} has no area of use; give bounds=", name="crs", value=crs
            )
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
        """Lattice cell of each point; only here do coordinates become cells.

        Parameters
        ----------
        x, y : ndarray, shape (n,), float64
            Coordinates in the CRS of the domain. Private.

        Returns
        -------
        columns, rows : ndarray, shape (m,), int32
            Cells of the points inside the bounds, in their order.
        inside : ndarray, shape (n,), bool
            Which points are inside; a coordinate that is not finite is outside.
        """
        west, south, east, north = self.bounds
        inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
        if not inside.all():
            x, y = x[inside], y[inside]
        return self._cells(0, x), self._cells(1, y), inside

    def _cells(self, axis: int, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Cell of each value: a floating-point guess, corrected by the published edges."""
        low, high, cells = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        guess = np.clip(np.floor((values - low) * (cells / (high - low))), 0, cells - 1)
        index = guess.astype(np.int32)
        # Lines as in `edges`, except the last, which no index exceeds.
        step = (high - low) / cells
        index -= values < low + index * step
        index += values >= low + (index + 1) * step
        # The far edge belongs to the last cell.
        return np.minimum(index, cells - 1)

    def to_lattice(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert boxes to lattice units, clipped to the domain.

        Parameters
        ----------
        boxes : ndarray, shape (n, 4), float64
            West, south, east, north in the CRS.

        Returns
        -------
        ndarray, shape (n, 4), float64
            The same edges in lattice cells from the south-west corner; an edge within 1e-6 of a
            cell from a lattice line, or published as one, becomes that line.
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
        """Convert boxes of lattice lines to coordinates: west, south, east, north."""
        return np.stack([self.edges(side % 2, boxes[:, side]) for side in range(4)], axis=1)


def public_domain(value: Any) -> Domain:
    """Domain as it is, or of four numbers in degrees.

    Raises
    ------
    ParameterError
        If the value is neither.

    Examples
    --------
    >>> public_domain((126.4, 37, 127.6, 38)).crs
    'EPSG:4326'
    """
    if isinstance(value, Domain):
        return value
    if isinstance(value, tuple | list):
        return Domain(bounds=tuple(value))
    raise ParameterError(
        f"domain must be a psd.Domain or four numbers, got {type_text(value)}; write "
        "psd.Domain(bounds=(west, south, east, north))",
        name="domain",
    )


def _check_bounds(bounds: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Check for four finite numbers, west < east and south < north."""
    try:
        west, south, east, north = (float(edge) for edge in bounds)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            f"bounds must be four numbers, west south east north, got {str(bounds)[:80]}",
            name="bounds",
        ) from None
    if not all(math.isfinite(edge) for edge in (west, south, east, north)):
        raise DomainError(
            f"bounds must be finite, got {west} {south} {east} {north}", name="bounds", value=bounds
        )
    if west >= east:
        raise DomainError(
            f"bounds must have west below east, got {west} and {east}; the order is west south "
            "east north, and a domain across the antimeridian must be split in two",
            name="bounds",
            value=bounds,
        )
    if south >= north:
        raise DomainError(
            f"bounds must have south below north, got {south} and {north}; the order is west south "
            "east north",
            name="bounds",
            value=bounds,
        )
    if not (math.isfinite(east - west) and math.isfinite(north - south)):
        raise DomainError(
            f"bounds must have a finite width and height, got {west} {south} {east} {north}",
            name="bounds",
            value=bounds,
        )
    return west, south, east, north


def _check_lattice(lattice: tuple[int, int]) -> tuple[int, int]:
    """Check for two integers in range."""
    try:
        columns, rows = (operator.index(size) for size in lattice)
    except (TypeError, ValueError):
        columns = rows = 0
    if not (1 <= columns <= MAX_LATTICE and 1 <= rows <= MAX_LATTICE):
        raise DomainError(
            f"lattice must have 1 to 2^30 columns and rows, got {str(lattice)[:80]}",
            name="lattice",
        )
    return columns, rows


def _check_crs(text: str) -> tuple[str, bool]:
    """Canonical text of a CRS and whether its coordinates are degrees."""
    crs = parse_crs(text)
    if not (crs.is_geographic or crs.is_projected or crs.is_engineering):
        raise DomainError(
            f"crs must have coordinates x and y, got {text[:80]!r}; try EPSG:4326",
            name="crs",
            value=text[:80],
        )
    authority = crs.to_authority(min_confidence=100)
    return (":".join(authority) if authority else crs.to_wkt()), bool(crs.is_geographic)


@cache
def _area_of_use(crs: str) -> tuple[float, float, float, float] | None:
    """Area of use of a projected CRS in its own units, if it states one."""
    from pyproj import CRS, Transformer

    parsed = CRS.from_user_input(crs)
    if parsed.area_of_use is None or parsed.geodetic_crs is None:
        return None
    with explain_proj_errors("the area of use", crs):
        projection = Transformer.from_crs(parsed.geodetic_crs, parsed, always_xy=True)
        bounds: tuple[float, float, float, float] = projection.transform_bounds(
            *parsed.area_of_use.bounds
        )
    return bounds if all(map(math.isfinite, bounds)) else None


def _meets_area_of_use(bounds: tuple[float, float, float, float], crs: str) -> bool:
    """Whether bounds overlap the area of use, or a margin of a quarter of it on each side."""
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
    """Refuse bounds beyond the limits of longitude and latitude."""
    west, south, east, north = bounds
    if max(abs(south), abs(north)) > 90:
        raise DomainError(
            f"bounds must have latitudes within 90 degrees, got {south} to {north}; are x and y "
            "swapped, or are these metres of a projected CRS (give crs=)?",
            name="bounds",
            value=bounds,
        )
    if max(abs(west), abs(east)) > 180:
        raise DomainError(
            f"bounds must have longitudes within 180 degrees, got {west} to {east}; are these "
            "metres of a projected CRS (give crs=), or longitudes from 0 to 360?",
            name="bounds",
            value=bounds,
        )
