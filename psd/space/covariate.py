"""Public covariates: densities on a raster that are known before any record is read.

Such as a land mask; public, so it costs no epsilon. It describes how points lie inside leaves, and
a cascade divides no cells where it is 0. A release has it resampled once, to integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.space.domain import Blocks, Domain

if TYPE_CHECKING:
    import geopandas

__all__ = ["Covariate"]

MAX_SIDE = 1024
"""Limit of columns, and of rows, of the raster."""

TOP = 2**16 - 1

# Columns and rows of a mask of the world; its edge is smooth.
_WORLD_SIDE = 512

_BOXES_PER_BATCH = 2**15


@dataclass(frozen=True, kw_only=True, eq=False)
class Covariate:
    """A public density, constant within each cell of a raster over the domain.

    Guarantees
    ----------
    - Made of public input alone; no method reads points.
    - Masses are sums of products of integers with lengths, none of them negative: a box has
      the mass 0 if and only if every raster cell that it overlaps has the density 0.

    Parameters
    ----------
    domain : Domain
        Whose bounds the raster covers. Public.
    raster : ndarray, shape (rows, columns), uint16
        Density, in any unit; rows from the south, columns from the west. Public.
    blocks : Blocks, optional
        Boxes are then in lines of these blocks of the lattice. Public.

    Raises
    ------
    ParameterError
        If the raster is another array, or 0 everywhere.

    Examples
    --------
    >>> domain = Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
    >>> covariate = Covariate(domain=domain, raster=np.array([[0, 1], [2, 1]], np.uint16))
    >>> covariate.mass(np.array([[1.0, 0, 3, 2]])).tolist()
    [2.0]
    """

    domain: Domain
    raster: NDArray[np.uint16]
    blocks: Blocks | None = None

    def __post_init__(self) -> None:
        """Check the raster and make it read-only."""
        raster = np.ascontiguousarray(self.raster)
        if raster.dtype != np.uint16 or raster.ndim != 2:
            raise ParameterError("raster of a covariate must be two-dimensional of 16-bit integers")
        if not all(1 <= side <= MAX_SIDE for side in raster.shape):
            raise ParameterError(
                f"raster of a covariate must have 1 to {MAX_SIDE:,} columns and rows, got "
                f"{raster.shape[1]} x {raster.shape[0]}"
            )
        if not raster.any():
            raise ParameterError("the covariate is 0 everywhere inside the bounds")
        raster = raster.copy()
        raster.flags.writeable = False
        object.__setattr__(self, "raster", raster)

    def __repr__(self) -> str:
        return f"<Covariate: {self.columns} x {self.rows} cells, {self.covered:.1%} not empty>"

    @property
    def columns(self) -> int:
        """Columns of the raster."""
        return int(self.raster.shape[1])

    @property
    def rows(self) -> int:
        """Rows of the raster."""
        return int(self.raster.shape[0])

    @property
    def covered(self) -> float:
        """Share of the domain that is not empty."""
        return float((self.raster > 0).mean())

    @classmethod
    def from_density(cls, domain: Domain, density: Floats) -> Covariate:
        """Make a covariate of a density, rounded up to 65535ths of its maximum.

        Parameters
        ----------
        domain : Domain
            Whose bounds the raster covers.
        density : ndarray, shape (rows, columns), float64
            Rows from the south, columns from the west.
        """
        if not (np.isfinite(density).all() and (density >= 0).all()):
            raise ParameterError("densities of a covariate must be finite and at least 0")
        top = max(float(density.max(initial=0.0)), np.finfo(float).tiny)
        # Rounding up keeps thinly populated cells above 0; six digits first, so that errors of
        # floats do not add 1.
        scaled = np.ceil(np.round(density / top * TOP, 6))
        raster = np.where(density > 0, np.clip(scaled, 1, TOP), 0).astype(np.uint16)
        return cls(domain=domain, raster=raster)

    @classmethod
    def from_polygons(
        cls,
        polygons: geopandas.GeoDataFrame | geopandas.GeoSeries,
        domain: Domain,
        *,
        column: str | None = None,
        size: int = MAX_SIDE,
    ) -> Covariate:
        """Make a covariate of polygons: 0 outside all of them.

        Parameters
        ----------
        polygons : GeoDataFrame or GeoSeries
            Polygons with a CRS. Public.
        domain : Domain
            Of the release. Public.
        column : str, optional
            Weights per unit of area on the ground, such as people per square kilometre; where
            polygons overlap they add up. Without it the polygons are a mask.
        size : int
            Columns and rows of the raster. Public.

        Raises
        ------
        ParameterError
            If a weight is missing or negative, a polygon is not valid, or no polygon is inside
            the bounds.
        DomainError
            If the polygons have no CRS.
        """
        from psd.space.raster_density import polygon_density

        density = polygon_density(polygons, domain, column=column, size=check_size(size))
        return cls.from_density(domain, density)

    @classmethod
    def from_raster(
        cls,
        values: NDArray[Any],
        domain: Domain,
        *,
        bounds: tuple[float, float, float, float] | None = None,
        size: int = MAX_SIDE,
    ) -> Covariate:
        """Make a covariate of a raster in the CRS of the domain: the mean density of each cell.

        Parameters
        ----------
        values : ndarray, shape (rows, columns)
            Densities per unit of area in the plane of the CRS, such as the people in each cell of
            the raster; the first row in the north as in an image. Public.
        domain : Domain
            Of the release. Public.
        bounds : tuple of float, optional
            West, south, east, north of the raster; by default those of the domain. Outside, the
            density is 0.
        size : int
            Columns and rows of the covariate. Public.

        Raises
        ------
        ParameterError
            If a value is missing or negative, or the raster lies outside the domain.
        """
        from psd.space.raster_density import raster_density

        density = raster_density(values, domain, bounds=bounds, size=check_size(size))
        return cls.from_density(domain, density)

    @classmethod
    def of_world(cls, domain: Domain) -> Covariate:
        """Mask of the places on earth, for bounds that reach beyond the world of their CRS.

        Parameters
        ----------
        domain : Domain
            Of the release. Public.

        Raises
        ------
        ParameterError
            If no part of the bounds is on earth.
        """
        from psd.space.raster_density import world_density

        return cls.from_density(domain, world_density(domain, min(_WORLD_SIDE, *domain.lattice)))

    @cached_property
    def surface(self) -> Integers:
        """Exact sums of the raster south and west of each line, shape (rows + 1, columns + 1)."""
        sums = np.zeros((self.rows + 1, self.columns + 1), np.int64)
        # In integers, so that a box of the raster has its sum exactly, by four corners.
        sums[1:, 1:] = self.raster.cumsum(axis=0, dtype=np.int64).cumsum(axis=1)
        return sums

    def to_raster(self, boxes: NDArray[np.integer | np.floating]) -> Floats:
        """Convert boxes from lattice units to raster cells; lines on raster lines stay exact."""
        if self.blocks is not None:
            boxes = self.blocks.to_fine(boxes)
        inside: Floats = boxes * self._shape / np.array(self.domain.lattice * 2, float)
        return inside

    def from_raster_units(self, boxes: Floats) -> Floats:
        """Convert boxes from raster cells to coordinates: west, south, east, north."""
        return self.domain.from_lattice(boxes * np.array(self.domain.lattice * 2) / self._shape)

    @property
    def _shape(self) -> Floats:
        """Columns and rows, twice: for both corners of a box."""
        return np.array([self.columns, self.rows] * 2, float)

    def mass(self, boxes: NDArray[np.integer | np.floating]) -> Floats:
        """Mass of boxes: density times area in raster cells.

        Parameters
        ----------
        boxes : ndarray, shape (n, 4)
            Inside the domain, in lattice units.
        """
        mass = np.empty(len(boxes))
        # In batches: corners and blocks take many times the memory of the boxes.
        for start in range(0, len(boxes), _BOXES_PER_BATCH):
            chunk = slice(start, start + _BOXES_PER_BATCH)
            mass[chunk] = self._mass_of(self.to_raster(boxes[chunk]))
        return mass

    def raster_mass(self, boxes: Floats) -> Floats:
        """Mass of boxes in units of raster cells.

        A box consists of up to 3 x 3 blocks of raster cells, of which the outer ones may be cut.
        The sums of blocks are exact, and no product is subtracted from another.
        """
        chunks = np.split(boxes, range(_BOXES_PER_BATCH, len(boxes), _BOXES_PER_BATCH))
        return np.concatenate([self._mass_of(chunk) for chunk in chunks])

    def _mass_of(self, boxes: Floats) -> Floats:
        """Mass of one batch of boxes."""
        (columns, wide), (rows, high) = (_blocks(boxes[:, a], boxes[:, a + 2]) for a in (0, 1))
        # (n, 4, 4) sums to the corners; their differences are the sums of 3 x 3 blocks.
        corners = self.surface[rows[:, :, None], columns[:, None, :]]
        blocks = np.diff(np.diff(corners, axis=1), axis=2)
        # Each block weighs the part of its cells that lies inside the box, on both axes.
        mass: Floats = np.einsum("nyx,ny,nx->n", blocks.astype(float), high, wide)
        return mass


def check_covariate(covariate: Covariate | None, domain: Domain, density: str) -> None:
    """Refuse a covariate of another domain, or a missing one that the density needs."""
    if covariate is None and density == "covariate":
        raise ParameterError("density must not be 'covariate' without a covariate; pass covariate=")
    if covariate is not None and covariate.domain != domain:
        raise ParameterError("covariate must have the domain of the release; make it with that")


def check_size(size: object) -> int:
    """Check the number of columns and rows of a covariate."""
    from psd._util.declared_parameters import integer_between

    checked: int = integer_between(1, MAX_SIDE)("size of the covariate", size)
    return checked


def _blocks(low: Floats, high: Floats) -> tuple[Integers, Floats]:
    """Lines of the first, inner and last cells of intervals, and the length inside each."""
    first, last = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
    # First cell, cells between, last cell; in a short interval some of them are empty.
    second = np.minimum(first + 1, last)
    third = np.maximum(last - 1, second)
    inside = (np.minimum(high, second) - low, np.ones(len(low)), high - third)
    return np.stack([first, second, third, last], axis=1), np.stack(inside, axis=1)
