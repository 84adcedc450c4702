"""The public domain: bounds, coordinate reference system and the lattice laid over them.

Coordinates become lattice cells once; all later work on true data is in integers. Bounds come
from the caller or a public file, never from the points.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.instances import type_text
from psd.errors import DomainError, ParameterError
from psd.space.bounds import area_of_use, check_bounds, check_degrees, meets_area_of_use
from psd.space.crs import parse_crs
from psd.space.lattice_axis import (
    MAX_LATTICE,
    EvenAxis,
    LatticeAxis,
    SteppedAxis,
    parse_resolution,
)

__all__ = ["DEFAULT_LATTICE", "MAX_LATTICE", "Domain", "public_domain"]

DEFAULT_LATTICE = (2**20, 2**20)


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
    - Bounds come first: a point is inside if its coordinates, as they come, are within the bounds.
      Then a `coordinate_resolution` decides its cell, by the nearest value.

    Parameters
    ----------
    bounds : tuple of float
        West, south, east, north, in units of the CRS, x before y. Public.
    crs : str
        Anything that pyproj understands, such as ``"EPSG:4326"``. Public.
    lattice : tuple of int
        Columns and rows of the lattice, each 1 to 2^30. Public. Left out with a
        `coordinate_resolution`, from which it follows.
    coordinate_resolution : str, int, float or Decimal, optional
        Step to which the coordinates come rounded, such as ``"0.0001"``, in units of the CRS; kept
        as text. Each lattice cell then holds one multiple of the step, in its middle. Public: a
        fact about the source, never derived from the points.

    Raises
    ------
    DomainError
        If the bounds are not finite, have no area or lie outside the CRS, if the CRS is unknown,
        or if the coordinate resolution does not fit the bounds.

    Examples
    --------
    >>> domain = Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> domain.width, domain.crs
    (1.1999999999999886, 'EPSG:4326')
    >>> Domain(bounds=(126.40, 37.00, 127.60, 38.00), coordinate_resolution="0.001").lattice
    (1201, 1001)
    """

    bounds: tuple[float, float, float, float]
    crs: str = "EPSG:4326"
    lattice: tuple[int, int] = DEFAULT_LATTICE
    coordinate_resolution: str | None = None
    geographic: bool = field(init=False, repr=False, compare=False)
    axes: tuple[LatticeAxis, LatticeAxis] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the fields; CRS and coordinate resolution are kept in their canonical text."""
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        crs, geographic = _check_crs(self.crs)
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "geographic", geographic)
        if geographic:
            check_degrees(self.bounds)
        object.__setattr__(self, "lattice", _check_lattice(self.lattice))
        if self.coordinate_resolution is None:
            self._set_even_axes()
        else:
            self._set_stepped_axes(parse_resolution(self.coordinate_resolution))
        if not geographic and not meets_area_of_use(self.bounds, crs):
            raise DomainError(
                f"bounds {self.bounds} lie outside the area of use of {crs}; are they in degrees, "
                "or is the CRS wrong?",
                name="bounds",
                value=self.bounds,
            )

    def _set_even_axes(self) -> None:
        """Divide the bounds into equal cells."""
        x, y = (
            EvenAxis(low=self.bounds[axis], high=self.bounds[axis + 2], cells=self.lattice[axis])
            for axis in (0, 1)
        )
        if not (x.has_room and y.has_room):
            raise DomainError(
                f"bounds {self.bounds} are too narrow for a lattice of {self.lattice[0]} x "
                f"{self.lattice[1]} cells; widen the bounds or use a coarser lattice",
                name="bounds",
                value=self.bounds,
            )
        object.__setattr__(self, "axes", (x, y))

    def _set_stepped_axes(self, resolution: str) -> None:
        """Give each multiple of the resolution its cell; the lattice follows from it."""
        x, y = (
            SteppedAxis.within(self.bounds[axis], self.bounds[axis + 2], resolution)
            for axis in (0, 1)
        )
        lattice = (x.cells, y.cells)
        if self.lattice not in (DEFAULT_LATTICE, lattice):
            raise DomainError(
                f"lattice must be left out with coordinate_resolution, from which it follows, got "
                f"{self.lattice}",
                name="lattice",
                value=self.lattice,
            )
        object.__setattr__(self, "coordinate_resolution", resolution)
        object.__setattr__(self, "lattice", lattice)
        object.__setattr__(self, "axes", (x, y))

    @classmethod
    def area_of_use(
        cls,
        crs: str,
        *,
        lattice: tuple[int, int] = DEFAULT_LATTICE,
        coordinate_resolution: str | None = None,
    ) -> Domain:
        """Domain of the area of use of a CRS; the world for EPSG:4326.

        Parameters
        ----------
        crs : str
            Anything that pyproj understands.
        lattice : tuple of int
            Columns and rows of the lattice.
        coordinate_resolution : str, int, float or Decimal, optional
            Step to which the coordinates are rounded.

        Raises
        ------
        DomainError
            If the CRS is unknown, or its area of use is.

        Examples
        --------
        >>> Domain.area_of_use("EPSG:4326").bounds
        (-180.0, -90.0, 180.0, 90.0)
        """
        area = area_of_use(_check_crs(crs)[0])
        if area is None:
            raise DomainError(
                f"crs {crs!r} has no area of use; give bounds=", name="crs", value=crs
            )
        return cls(
            bounds=area, crs=crs, lattice=lattice, coordinate_resolution=coordinate_resolution
        )

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
        return self.axes[axis].edges(np.asarray(lines))

    def centres(self, axis: int, cells: ArrayLike) -> NDArray[np.float64]:
        """Coordinates of the middle of lattice cells.

        Parameters
        ----------
        axis : int
            0 for x, 1 for y.
        cells : array_like of int, shape (n,)
            Columns or rows.

        Returns
        -------
        ndarray, shape (n,), float64
            With a coordinate resolution, exactly the values of the cells.
        """
        return self.axes[axis].centres(np.asarray(cells))

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
        """Cell of each value inside the bounds."""
        return self.axes[axis].find_cells(values)

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
            cell from a lattice line, or published as one, becomes that line. With a coordinate
            resolution every edge becomes a line, such that a box has the records whose rounded
            coordinates lie in it: it holds the values on its west and south edge, and not those
            on its east and north edge, except at the far bounds of the domain. A box between two
            values becomes empty.
        """
        return np.stack([self.axes[side % 2].to_lines(boxes[:, side]) for side in range(4)], axis=1)

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
