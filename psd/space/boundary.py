"""A public boundary, made of public polygons alone: no record outside of it is counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.errors import DomainError, ParameterError
from psd.space.box_tree import quadrants
from psd.space.covariate import MAX_SIDE, Covariate
from psd.space.crs import beyond_world, explain_proj_errors
from psd.space.domain import probe_points
from psd.space.even_odd import CertainCells, EdgeIndex
from psd.space.shape_transforms import transform_shapes

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = ["Boundary", "bounds_of"]


_OUTSIDE, _CUT, _INSIDE = 0, 1, 2

# Raster cells on each side of one by which its state is certain, see `Boundary.certain_cells`.
_AROUND = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Boundary:
    """A polygon over a domain, and a raster that decides for most points whether they are inside.

    P1. Made of public input alone.
    P2. A point for which `contains` is true lies in a lattice cell on which the mask is not 0: no
    point is counted in a cell that is known to be empty. The point lies in the polygon, and with a
    coordinate resolution its rounded place does.
    P3. Cells outside cost nothing. A record outside the polygon is dropped, and no other record
    decides that. So the data that all questions read has no record there, with or without any one
    unit: the count of such a cell is 0 on both of two neighbouring data sets, and publishing it
    without noise has no loss. This requires that records are dropped before every question: dropped
    only when counting, they would still move medians, totals and shapes at points that were charged
    nothing.
    """

    shape: Any  # the polygon, in the CRS of the domain
    mask: Covariate  # share of each raster cell that is inside, 0 if none of it is
    # (rows, columns) uint8; whether each raster cell is outside, cut, or entirely inside.
    state: NDArray[np.uint8]

    def __repr__(self) -> str:
        return f"<Boundary: {self.mask.covered:.1%} of the bounds>"

    @classmethod
    def from_polygons(
        cls, polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, domain: Domain
    ) -> Boundary:
        """Make a boundary of polygons, whose union is the area."""
        import geopandas as gpd
        import shapely

        from psd.space.raster_density import polygon_density, polygons_in_domain

        shape = shapely.union_all(polygons_in_domain(polygons, domain, "boundary"))
        shapely.prepare(shape)
        size = min(MAX_SIDE, *domain.lattice)
        union = gpd.GeoSeries([shape], crs=domain.crs)
        density = polygon_density(union, domain, column=None, size=size)
        if not density.any():
            raise ParameterError("the boundary covers no part of the bounds")
        mask = Covariate.from_density(domain, density)
        return cls(shape=shape, mask=mask, state=_states(shape, mask))

    def contains(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether points x, y (n,) float64, private, inside the bounds lie in the polygon.

        A point on the outline does where the polygon continues to the east of it, see
        `psd.space.even_odd`: of areas that share an outline one has the point. On the east and
        north bound of the domain a point is decided just inside it. With a coordinate resolution
        rounded coordinates decide, those on the outline by the rule of `psd.query.polygons`.
        """
        domain = self.mask.domain
        columns, rows, _ = domain.quantise(x, y)
        # First and last raster cell that the lattice cell of each point overlaps, along each axis.
        touched = []
        for cells, size, side in zip(
            (columns, rows), domain.lattice, self.state.shape[::-1], strict=True
        ):
            number = cells.astype(np.int64)
            ends = [number * side // size, ((number + 1) * side - 1) // size]
            touched.append(ends[:1] if size % side == 0 else ends)

        # Where all of them are inside, or none is, so is the point.
        states = [self.state[row, column] for row in touched[1] for column in touched[0]]
        inside: NDArray[np.bool_] = np.minimum.reduce(states) == _INSIDE
        rest = np.flatnonzero(~inside & (np.maximum.reduce(states) > _OUTSIDE))

        # Other points are decided by the sides of the polygon.
        x, y = probe_points(domain, x[rest], y[rest])
        inside[rest] = self._sides.contains(np.zeros(len(rest), np.int64), x, y)
        return inside

    def certain_cells(self) -> CertainCells:
        """Raster cells that decide for all of their points: 0 inside, -1 outside. Public.

        P4. They decide as `contains` does. It asks the raster cells that the lattice cell of a
        point meets, at most two beside each other along an axis, since no raster cell is narrower
        than a lattice cell. The cell that `CertainCells` computes is at most two before the first
        or after the last of them: lattice lines of a coordinate resolution are less than a lattice
        cell from evenly spaced ones, and rounding moves all by far less. So all that are asked are
        at most three cells from the computed one, and a cell whose state all cells around it share
        has the state that `contains` finds.
        """
        from scipy import ndimage

        around = 2 * _AROUND + 1
        # All cells that `contains` may ask for a point lie in this window around its cell (P4).
        lowest, highest = (
            find(self.state, size=around, mode="nearest")
            for find in (ndimage.minimum_filter, ndimage.maximum_filter)
        )
        cell = np.flatnonzero((lowest == highest) & (self.state != _CUT))
        domain, side = self.mask.domain, self.state.shape[0]
        return CertainCells(
            origin=domain.bounds[:2],
            scale=(side / domain.width, side / domain.height),
            side=side,
            cell=cell,
            part=np.where(self.state.ravel()[cell] == _INSIDE, 0, -1),
        )

    @cached_property
    def _sides(self) -> EdgeIndex:
        """Sides of the polygon."""
        return EdgeIndex.from_polygons(np.array([self.shape], dtype=object))

    def restrict(self, covariate: Covariate | None) -> Covariate:
        """Set a covariate to 0 outside the boundary; without a covariate return the mask."""
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

    def release_covariate(self, covariate: Covariate | None) -> Covariate:
        """The covariate of the release: 0 outside the boundary and nowhere else."""
        # Cells inside that the covariate rules out are counted as well: they get the least density.
        raster = np.maximum(self.restrict(covariate).raster, 1) * (self.mask.raster > 0)
        return Covariate(domain=self.mask.domain, raster=raster.astype(np.uint16))


def bounds_of(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, crs: str, name: str = "boundary"
) -> tuple[float, float, float, float]:
    """Bounds of polygons, in a CRS; messages call them by the name."""
    import shapely

    shapes = polygons.geometry
    if not shapes.geom_type.isin(["Polygon", "MultiPolygon"]).all():
        raise ParameterError(f"{name} must hold polygons only; give its area")
    if shapes.crs is None:
        raise DomainError(f"the file of the {name} has no CRS; assign it in your GIS")
    with explain_proj_errors(f"the {name}", crs):
        original = np.asarray(shapes.array, dtype=object)
        moved = transform_shapes(original, shapes.crs, crs, tolerance=0.1)
        west, south, east, north = map(float, shapely.total_bounds(moved))
    if not np.isfinite([west, south, east, north]).all():
        raise DomainError(
            f"the {name} is empty, or cannot be expressed in {crs}; {beyond_world(crs)}"
        )
    return west, south, east, north


def _states(shape: Any, mask: Covariate) -> NDArray[np.uint8]:
    """State of every raster cell; boxes are halved where the outline passes."""
    import shapely

    inside = np.zeros((mask.rows + 1, mask.columns + 1), np.int64)
    boxes = np.array([[0, 0, mask.columns, mask.rows]])
    while len(boxes):
        rectangles = shapely.box(*mask.from_raster_units(boxes.astype(np.float64)).T)
        is_covered = shapely.covers(shape, rectangles)
        # Signs at the corners of a covered rectangle; summed along both axes, they count its cells.
        for (x, y), sign in (((0, 1), 1), ((2, 1), -1), ((0, 3), -1), ((2, 3), 1)):
            np.add.at(inside, (boxes[is_covered, y], boxes[is_covered, x]), sign)
        # Boxes that the outline cuts are divided in the middle, unless they are one cell.
        boxes = boxes[~is_covered & shapely.intersects(shape, rectangles)]
        boxes = boxes[(boxes[:, 2:] - boxes[:, :2] > 1).any(axis=1)]
        boxes = quadrants(boxes, (boxes[:, :2] + boxes[:, 2:] + 1) // 2).reshape(-1, 4)
        boxes = boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]
    covered = inside.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
    touched = mask.raster > 0
    return np.where(touched, np.where(covered, _INSIDE, _CUT), _OUTSIDE).astype(np.uint8)
