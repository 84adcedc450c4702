"""A public boundary: a polygon outside of which nothing is counted, and nobody is.

Made of public polygons alone. Rows outside are dropped before anything is asked; cells wholly
outside are then empty in every data set, so nothing has to be paid to say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.errors import DomainError, ParameterError
from psd.space.boxes import quadrants
from psd.space.covariate import MAX_SIDE, Covariate
from psd.space.crs import known_crs, transforming

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = ["Boundary", "bounds_of"]


_OUTSIDE, _CUT, _INSIDE = 0, 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Boundary:
    """A polygon over a domain, and a raster of it that decides nearly all points.

    Guarantees
    ----------
    - Made of public input alone.
    - A point that is held lies in the polygon, and in a lattice cell on which the mask is not
      0: no point is ever held in a cell that is known to be empty.

    Parameters
    ----------
    shape : shapely geometry
        The polygon, in the CRS of the domain. Public.
    mask : Covariate
        Share of each cell of a raster that is inside, 0 where nothing of it is.
    state : ndarray, shape (rows, columns), uint8
        Whether each cell of the raster is outside, cut, or wholly inside.

    Notes
    -----
    Why cells outside cost nothing, and what would go wrong. A row outside the polygon is
    dropped by itself, whatever the other rows are, so the data that all questions are about has
    no row there, with or without any one unit: a count of such a cell is 0 on both of two
    neighbouring data sets, and to say so without noise has no loss. That holds only if the rows
    are dropped before every question: dropped at counting alone, they would still move medians,
    totals and shapes at points that were charged nothing.
    """

    shape: Any
    mask: Covariate
    state: NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"<Boundary: {self.mask.covered:.1%} of the bounds>"

    @classmethod
    def from_polygons(
        cls, polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, domain: Domain
    ) -> Boundary:
        """Boundary around some polygons, together one area.

        Parameters
        ----------
        polygons : GeoDataFrame or GeoSeries
            Polygons with a CRS. Public.
        domain : Domain
            Of the release. Public.

        Raises
        ------
        ParameterError
            If a polygon is not valid, or there is none.
        DomainError
            If the polygons have no CRS, or lie outside the bounds.
        """
        import geopandas as gpd
        import shapely

        from psd.space.raster_density import polygon_density, shapes_in

        shape = shapely.union_all(shapes_in(polygons, domain, "boundary"))
        shapely.prepare(shape)
        size = min(MAX_SIDE, *domain.lattice)
        whole = gpd.GeoSeries([shape], crs=domain.crs)
        density = polygon_density(whole, domain, column=None, size=size)
        if not density.any():
            raise ParameterError("the boundary holds nothing of the bounds")
        mask = Covariate.from_density(domain, density)
        return cls(shape=shape, mask=mask, state=_states(shape, mask))

    def holds(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Which points inside the bounds lie in the polygon, its outline included.

        Parameters
        ----------
        x, y : ndarray, shape (n,), float64
            In the CRS of the domain, inside its bounds. Private.
        """
        import shapely

        columns, rows, _ = self.mask.domain.quantise(x, y)
        met = [
            _met(cells, size, side)
            for cells, size, side in zip(
                (columns, rows), self.mask.domain.lattice, self.state.shape[::-1], strict=True
            )
        ]
        states = [self.state[row, column] for row in met[1] for column in met[0]]
        held: NDArray[np.bool_] = np.minimum.reduce(states) == _INSIDE
        asked = np.flatnonzero(~held & (np.maximum.reduce(states) > _OUTSIDE))
        held[asked] = shapely.intersects_xy(self.shape, x[asked], y[asked])
        return held

    def steered(self, covariate: Covariate | None) -> Covariate:
        """A covariate that is 0 outside; the mask itself where there is none.

        Raises
        ------
        ParameterError
            If it is 0 everywhere inside.
        """
        if covariate is None:
            return self.mask
        from psd.space.raster_density import raster_density

        size = self.mask.columns
        density = raster_density(
            covariate.raster[::-1], self.mask.domain, bounds=None, size=size
        ) * (self.mask.raster / self.mask.raster.max())
        if not density.any():
            raise ParameterError("the covariate is 0 everywhere inside the boundary")
        return Covariate.from_density(self.mask.domain, density)

    def published(self, covariate: Covariate | None) -> Covariate:
        """The covariate of the release: 0 outside the boundary and nowhere else.

        A place that a given covariate rules out is counted as well, so that it must not be
        taken for one outside; it gets the least density that there is.
        """
        raster = np.maximum(self.steered(covariate).raster, 1) * (self.mask.raster > 0)
        return Covariate(domain=self.mask.domain, raster=raster.astype(np.uint16))


def bounds_of(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, crs: str
) -> tuple[float, float, float, float]:
    """Box around polygons, in a CRS.

    Raises
    ------
    ParameterError
        If one of them is no polygon.
    DomainError
        If the polygons have no CRS, or there is no box around them.
    """
    shapes = polygons.geometry
    if not shapes.geom_type.isin(["Polygon", "MultiPolygon"]).all():
        raise ParameterError("the boundary holds geometries that are no polygons; give its area")
    if shapes.crs is None:
        raise DomainError("the boundary has no CRS; assign it in your GIS, it is never guessed")
    with transforming("the boundary", crs):
        known_crs(shapes.crs)
        west, south, east, north = map(float, shapes.to_crs(known_crs(crs)).total_bounds)
    if not np.isfinite([west, south, east, north]).all():
        raise DomainError(f"the boundary is empty, or cannot be expressed in {crs}")
    return west, south, east, north


def _met(cells: NDArray[np.int32], size: int, side: int) -> list[NDArray[np.int64]]:
    """First and last of so many raster cells that each of so many lattice cells meets."""
    wide = cells.astype(np.int64)
    ends = [wide * side // size, ((wide + 1) * side - 1) // size]
    return ends[:1] if size % side == 0 else ends


def _states(shape: Any, mask: Covariate) -> NDArray[np.uint8]:
    """State of every raster cell: boxes are halved where the outline passes."""
    import shapely

    inside = np.zeros((mask.rows + 1, mask.columns + 1), np.int64)
    boxes = np.array([[0, 0, mask.columns, mask.rows]])
    while len(boxes):
        there = shapely.box(*mask.from_raster_units(boxes.astype(np.float64)).T)
        full = shapely.covers(shape, there)
        for (x, y), sign in (((0, 1), 1), ((2, 1), -1), ((0, 3), -1), ((2, 3), 1)):
            np.add.at(inside, (boxes[full, y], boxes[full, x]), sign)
        boxes = _divide_boxes(boxes[~full & shapely.intersects(shape, there)])
    whole = inside.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
    met = mask.raster > 0
    return np.where(met, np.where(whole, _INSIDE, _CUT), _OUTSIDE).astype(np.uint8)


def _divide_boxes(boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide boxes in the middle; those of one cell are dropped."""
    boxes = boxes[(boxes[:, 2:] - boxes[:, :2] > 1).any(axis=1)]
    parts = quadrants(boxes, (boxes[:, :2] + boxes[:, 2:] + 1) // 2).reshape(-1, 4)
    filled: NDArray[np.int64] = parts[(parts[:, :2] < parts[:, 2:]).all(axis=1)]
    return filled
