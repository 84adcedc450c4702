"""The public domain: bounds, coordinate reference system and the lattice laid over them.

Coordinates become lattice cells once; all later work on true data is in integers. Bounds come from
the caller or a public file, never from points. `min_cell`, metres on the ground, is public: without
it adaptive methods divide down to centimetres, where cells tell how coordinates were rounded.
"""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Floats, Integers
from psd._util.instances import number_text, shown, type_text
from psd.errors import DomainError, ParameterError
from psd.space.bounds import (
    area_of_use,
    check_bounds,
    check_degrees,
    ground_sides,
    meets_area_of_use,
)
from psd.space.crs import check_plane_crs, half_turn, metres_per_unit, offline, parse_crs
from psd.space.lattice_axis import MAX_LATTICE, EvenAxis, LatticeAxis, SteppedAxis, parse_resolution

__all__ = ["DEFAULT_LATTICE", "DEFAULT_MIN_CELL", "MAX_LATTICE", "Domain", "public_domain"]


DEFAULT_MIN_CELL: Final = "5"
"""Metres; see docs/measured/smallest-cell.md for the figures by which it was chosen."""

_MAX_METRES = 10**9
_MIN_EXPONENT = -6


def parse_min_cell(value: Any) -> str | None:
    """Canonical decimal text of a smallest cell in metres; None for 0 and None."""
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
        f"{shown(value)}; it is the smallest side of a cell on the ground, and 0 is no limit",
        name="min_cell",
    )


def min_cell_within(sides: tuple[float, float], min_cell: str) -> str:
    """Smallest cell, in metres as text; the shorter side in whole millimetres if that is less."""
    if float(min_cell) <= min(sides):
        return min_cell
    return f"{math.floor(min(sides) * 1000) / 1000:.3f}".rstrip("0").rstrip(".")


def smallest_blocks(
    sides: tuple[float, float], lattice: tuple[int, int], min_cell: str | None
) -> tuple[int, int]:
    """Columns and rows of the smallest cell, powers of two that halving reaches; in metres."""
    if min_cell is None:
        return 1, 1
    metres = float(min_cell)
    columns, rows = (
        min(1 << max(0, math.ceil(math.log2(metres * cells / side) - 1e-9)), cells)
        for side, cells in zip(sides, lattice, strict=True)
    )
    return columns, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A lattice in blocks of columns and rows: a coarser lattice, all of whose lines are lines.

    P1. Each block has exactly `step` columns and rows, but the last of an axis, which also has
    those left over. A cell of blocks is never smaller than one block.
    """

    lattice: tuple[int, int]  # columns and rows of the fine lattice
    step: tuple[int, int]  # columns and rows of a block

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


DEFAULT_LATTICE = (2**20, 2**20)

USUAL_MIN_CELL = "usual"
"""Word for the default of `Domain.min_cell`, which depends on the other parameters."""


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
        `coordinate_resolution`, from which it follows. Of another lattice than the default, records
        are taken to be in the middle of its cells where errors of queries are computed.
    coordinate_resolution : str, int, float or Decimal, optional
        Step to which the coordinates come rounded, such as ``"0.0001"``, in units of the CRS; kept
        as text. Each lattice cell then holds one multiple of the step, in its middle. Public: a
        fact about the source, never derived from the points.
    min_cell : str, int, float or Decimal, optional
        Smallest side of a cell on the ground, in metres, where the data decide how cells are
        divided; kept as text, or None for 0, which sets no limit. By default ``"usual"``: 5 with
        the default lattice or a coordinate resolution, where the CRS is not a local one and the
        bounds have such sides, else None. Public, never derived from the points. Domains that
        differ in it alone are equal: it does not change the cell of a record.

    Raises
    ------
    DomainError
        If the bounds are not finite, have no area or lie outside the CRS, if the CRS is unknown,
        or if the coordinate resolution or the smallest cell does not fit the bounds.

    Notes
    -----
    The smallest cell has `cell_step` columns and rows of the lattice: the least powers of two with
    which both sides are at least `min_cell` on the ground. The ground is measured as in
    `psd.space.bounds.ground_sides`: a degree of latitude is 110,574 m, one of longitude that
    times the cosine of the latitude of the bounds that is farthest from the equator (at most 80
    degrees); a projected CRS is measured by its units. With a coordinate resolution the side of a
    cell is the number of its values times the resolution.

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
    min_cell: str | None = field(default=USUAL_MIN_CELL, compare=False)
    geographic: bool = field(init=False, repr=False, compare=False)
    axes: tuple[LatticeAxis, LatticeAxis] = field(init=False, repr=False, compare=False)
    cell_step: tuple[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the fields; CRS and coordinate resolution are kept in their canonical text."""
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        crs, geographic = check_plane_crs(self.crs)
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "geographic", geographic)
        if geographic:
            check_degrees(self.bounds, crs)
        # Two integers in range; others may be a column, and are counted.
        is_pair = isinstance(self.lattice, tuple) and len(self.lattice) == 2
        try:
            columns, rows = (operator.index(size) for size in self.lattice)
        except (TypeError, ValueError):
            columns = rows = 0
        if not (1 <= columns <= MAX_LATTICE and 1 <= rows <= MAX_LATTICE):
            raise DomainError(
                "lattice must have 1 to 2^30 columns and rows, got "
                + (f"{self.lattice}"[:80] if is_pair else number_text(self.lattice)),
                name="lattice",
            )
        object.__setattr__(self, "lattice", (columns, rows))
        if self.coordinate_resolution is None:
            # Divide the bounds into equal cells.
            x, y = (
                EvenAxis(
                    low=self.bounds[axis], high=self.bounds[axis + 2], cells=self.lattice[axis]
                )
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
        else:
            self._set_stepped_axes(parse_resolution(self.coordinate_resolution))
        if not geographic and not meets_area_of_use(self.bounds, crs):
            raise DomainError(
                f"bounds {self.bounds} lie outside the area of use of {crs}; are they in degrees, "
                "or is the CRS wrong?",
                name="bounds",
                value=self.bounds,
            )
        # Check the smallest cell, and derive the columns and rows that it has.
        local = not self.geographic and parse_crs(self.crs).is_engineering
        sides = self._ground_sides
        if self.min_cell == USUAL_MIN_CELL:
            chosen = self.lattice != DEFAULT_LATTICE and self.coordinate_resolution is None
            fits = min(sides) >= float(DEFAULT_MIN_CELL)
            min_cell = None if local or chosen or not fits else DEFAULT_MIN_CELL
        else:
            min_cell = parse_min_cell(self.min_cell)
        if min_cell is not None and float(min_cell) > min(sides):
            width, height = sides
            rule = (
                f"at most the sides of the bounds on the ground, {width:,.0f} x {height:,.0f} m, "
                f"got {min_cell}; it is in metres"
            )
            if sides == (0.0, 0.0):
                rule = f"left out or 0 for a CRS without a unit of length, got {min_cell}"
            raise DomainError(f"min_cell must be {rule}", name="min_cell", value=min_cell)
        object.__setattr__(self, "min_cell", min_cell)
        step = smallest_blocks(sides, self.lattice, min_cell)
        object.__setattr__(self, "cell_step", step)

    @property
    def _ground_sides(self) -> tuple[float, float]:
        """Width and height of the bounds in metres; 0 if the CRS has no unit of length."""
        if self.geographic:
            west, south, east, north = (edge * (180 / half_turn(self.crs)) for edge in self.bounds)
            return ground_sides((west, south, east, north), None)
        unit = metres_per_unit(self.crs)
        return (0.0, 0.0) if unit is None else ground_sides(self.bounds, unit)

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
        min_cell: str | None = USUAL_MIN_CELL,
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
        min_cell : str, int, float or Decimal, optional
            Smallest side of a cell on the ground.

        Raises
        ------
        DomainError
            If the CRS is unknown, or its area of use is.

        Examples
        --------
        >>> Domain.area_of_use("EPSG:4326").bounds
        (-180.0, -90.0, 180.0, 90.0)
        """
        area = area_of_use(check_plane_crs(crs)[0])
        if area is None:
            raise DomainError(
                f"crs {crs!r} has no area of use; give bounds=", name="crs", value=crs
            )
        return cls(
            bounds=area,
            crs=crs,
            lattice=lattice,
            coordinate_resolution=coordinate_resolution,
            min_cell=min_cell,
        )

    @property
    def blocks(self) -> Blocks:
        """Lattice in blocks of the smallest cell."""
        return Blocks(lattice=self.lattice, step=self.cell_step)

    @property
    def width(self) -> float:
        """East minus west, in units of the CRS."""
        return self.bounds[2] - self.bounds[0]

    @property
    def height(self) -> float:
        """North minus south, in units of the CRS."""
        return self.bounds[3] - self.bounds[1]

    def with_min_cell(self, min_cell: str | None) -> Domain:
        """Domain with another smallest cell, at most the shorter side of the bounds."""
        if min_cell is None or min_cell == USUAL_MIN_CELL:
            return replace(self, min_cell=min_cell)
        return replace(self, min_cell=min_cell_within(self._ground_sides, min_cell))

    def in_blocks(self, blocks: Blocks) -> Domain:
        """Domain on the coarser lattice of blocks, for a method that does not divide them.

        Its bounds and its number of columns and rows count; where the blocks do not divide the
        lattice evenly, its lines are not exactly those of the blocks.
        """
        return replace(
            self, lattice=blocks.coarse_lattice, coordinate_resolution=None, min_cell=None
        )

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
        # Without a copy where all are inside, as of most files.
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
    """Domain as it is, or of four numbers in degrees."""
    if isinstance(value, Domain):
        return value
    if isinstance(value, tuple | list):
        return Domain(bounds=tuple(value))
    raise ParameterError(
        f"domain must be a psd.Domain or four numbers, got {type_text(value)}; write "
        "psd.Domain(bounds=(west, south, east, north))",
        name="domain",
    )


def probe_points(domain: Domain, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Private coordinates, (n,), that decide in which public area points inside bounds lie."""
    if domain.coordinate_resolution is None:
        # A point on the eastern or northern edge lies in the last cell, and in its area.
        east, north = np.nextafter(domain.bounds[2:], -np.inf)
        return np.minimum(x, east), np.minimum(y, north)
    # With a coordinate resolution the rounded coordinates decide.
    columns, rows, _ = domain.quantise(x, y)
    return domain.axes[0].probe(columns, 0), domain.axes[1].probe(rows, 1)


# Places along a side of the bounds that are looked up, and countries that are named.
_PLACES, _NAMED = 25, 3


def place_text(domain: Domain) -> str:
    """Countries by how much of the bounds they fill, and the middle; empty outside the earth."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    if parse_crs(domain.crs).is_engineering:
        return ""
    west, south, east, north = domain.bounds
    # The middle of each of equal parts, so that a border along the rim names no neighbour.
    share = (np.arange(_PLACES) + 0.5) / _PLACES
    x, y = np.meshgrid(west + share * (east - west), south + share * (north - south))
    places = np.full((x.size, 2), np.nan)  # longitude and latitude
    with offline(), suppress(ProjError):  # of a CRS of another body than the earth
        move = Transformer.from_crs(parse_crs(domain.crs), "EPSG:4326", always_xy=True)
        places = np.column_stack(move.transform(x.ravel(), y.ravel()))
    middle = places[len(places) // 2]  # their number along a side is odd
    places = places[np.isfinite(places).all(axis=1)]
    if not len(places):
        return ""
    if not np.isfinite(middle).all():
        return _countries(places, places[0])
    longitude, latitude = middle
    sides = (
        f"{abs(latitude):.3g} {'S' if latitude < 0 else 'N'} "
        f"{abs(longitude):.4g} {'W' if longitude < 0 else 'E'}"
    )
    return f"{_countries(places, middle)}; middle {sides}"


def _countries(places: Floats, middle: Floats) -> str:
    """Countries of places, those of most places first; or how far the next one is."""
    import shapely
    from pyproj import Geod

    from psd.space.countries import country_shapes

    names, shapes = country_shapes()
    tree = shapely.STRtree(shapes)
    met = tree.query(shapely.points(places), predicate="intersects")[1]
    # Countries by how many of the places they have; the order of the file decides between equals.
    number, times = np.unique(met, return_counts=True)
    order = number[np.argsort(-times, kind="stable")]
    if not len(order):
        point = shapely.Point(middle)
        nearest = shapes[tree.nearest(point)]
        (_, there) = shapely.get_coordinates(shapely.shortest_line(point, nearest))
        _, _, metres = Geod(ellps="WGS84").inv(*middle, *there)
        return f"at sea, {float(f'{metres / 1000:.2g}'):,g} km from {names[tree.nearest(point)]}"
    shown = ", ".join(names[each] for each in order[:_NAMED])
    more = len(order) - _NAMED
    return shown if more <= 0 else f"{shown} and {more:,} more"
