"""Areas on the ground: by the ellipsoid of the CRS, inside sides that are straight in its plane.

The ground area of a small part of the plane is its area times the scale of the projection there.
Boxes and polygons are divided until the scale hardly changes inside a part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, ranges, sum_by
from psd.space.bounds import are_places, beyond_the_world
from psd.space.crs import metres_per_unit, offline, parse_crs, radians_per_unit

if TYPE_CHECKING:
    from pyproj import Geod, Transformer

    from psd.space.domain import Domain

__all__ = ["area_unit", "east_west_scale", "ground_areas", "ground_densities", "shape_ground_areas"]

# Longest sides of a part, in half axes of the ellipsoid: with the scale of its middle alone, and
# with 2 x 2 Gauss points. The error of both is below 1e-5 of the area.
_SMALL, _LARGE = 1 / 128, 1 / 8

# Parts along a side of a box, however long it is; Gauss points of a part that reaches over the edge
# of a projection; and places along the sides of a domain at which such an edge is looked for.
_MOST_PARTS, _EDGE_POINTS, _PROBES = 64, 16, 33

# Half the length over which the scale is measured, in half axes, and the points measured together.
_STEP, _BATCH = 1e-5, 1 << 18


def area_unit(domain: Domain) -> str:
    """Unit of `ground_areas`: ``km2``, or ``square unit`` in a local CRS, without an ellipsoid."""
    return "km2" if _plane(domain) is not None else "square unit"


def ground_areas(domain: Domain, boxes: Floats) -> Floats:
    """Areas on the ground of boxes (n, 4) in lattice units: (n,) float64, in the unit `area_unit`.

    P1. To 1e-5 of the area on the ellipsoid of the CRS, across poles and meridians too. A part of
    the plane outside the projection has no ground; a box that its edge cuts is exact to some
    percent.
    P2. In a local CRS, whose scale on the ground is not known, the area in its plane.
    """
    return _box_areas(domain, domain.from_lattice(boxes))


def _box_areas(domain: Domain, boxes: Floats) -> Floats:
    """Areas of boxes in the CRS of a domain."""
    plane = _plane(domain)
    low, sides = boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    if plane is None:
        return np.asarray(sides.prod(axis=1))

    # Parts of equal size of each box.
    pieces = np.clip(np.ceil(sides / (plane.radius * _LARGE)), 1, _MOST_PARTS).astype(np.int64)
    number = pieces.prod(axis=1)
    owner = np.repeat(np.arange(len(boxes)), number)
    place = np.stack(np.divmod(ranges(np.zeros(len(boxes), np.int64), number), pieces[owner, 1]), 1)
    extent = (sides / pieces)[owner]
    low = low[owner] + place * extent

    # Points of the quadrature along each axis: more for large parts, most at the projection's edge.
    points = np.where((extent <= plane.radius * _SMALL).all(axis=1), 1, 2)
    points[plane.cuts(domain, low, extent)] = _EDGE_POINTS
    areas = np.empty(len(owner))
    for order in np.unique(points):
        of_order = np.flatnonzero(points == order)
        nodes, weights = np.polynomial.legendre.leggauss(order)
        # Gauss-Legendre points of the unit square, and weights of sum 1.
        at = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2) / 2 + 0.5
        each = np.outer(weights, weights).ravel() / 4
        for part in np.split(of_order, range(_BATCH, len(of_order), _BATCH)):
            mean = sum(
                weight * plane.scales(low[part] + where * extent[part])
                for where, weight in zip(at, each, strict=True)
            )
            areas[part] = mean * extent[part].prod(axis=1)
    return sum_by(owner, areas, len(boxes)) / 1e6


def shape_ground_areas(domain: Domain, shapes: NDArray[np.object_]) -> Floats:
    """Areas of polygons (n,), with sides straight in the plane, as `ground_areas` has them."""
    import shapely

    plane, parts = _plane(domain), np.asarray(shapes)
    if plane is None:
        return np.asarray(shapely.area(parts))
    areas, owner = np.zeros(len(parts)), np.arange(len(parts))
    while True:
        met = shapely.area(parts) > 0
        parts, owner = parts[met], owner[met]
        if not len(parts):
            return areas
        bounds = shapely.bounds(parts)
        sides = bounds[:, 2:] - bounds[:, :2]
        # Boxes by quadrature, small parts by the scale at one point; others are halved.
        is_box = shapely.area(parts) > sides.prod(axis=1) * (1 - 1e-9)
        is_large = ~is_box & (sides > _SMALL * plane.radius).any(axis=1)
        areas += sum_by(owner[is_box], _box_areas(domain, bounds[is_box]), len(areas))

        is_small = ~is_box & ~is_large
        small = parts[is_small]
        # The scale at the centroid is the mean scale, but for its curvature.
        middle = shapely.centroid(small)
        scale = plane.scales(np.column_stack([shapely.get_x(middle), shapely.get_y(middle)]))
        areas += sum_by(owner[is_small], shapely.area(small) * scale / 1e6, len(areas))

        # Across the longer side of the bounds.
        parts, bounds, owner = parts[is_large], bounds[is_large], np.repeat(owner[is_large], 2)
        half, rows = bounds.copy(), np.arange(len(parts))
        axis = sides[is_large].argmax(axis=1)
        half[rows, axis + 2] = (bounds[rows, axis] + bounds[rows, axis + 2]) / 2
        bounds[rows, axis] = half[rows, axis + 2]
        halves = shapely.box(*np.stack([half, bounds], axis=1).reshape(-1, 4).T)
        parts = shapely.intersection(np.repeat(parts, 2), halves)


def ground_densities(counts: Floats, areas: Floats) -> Floats:
    """Counts per unit of area; NaN where there is no ground, and so no density."""
    return np.asarray(counts / np.where(areas > 0, areas, np.nan))


def ground_width(domain: Domain, y: float) -> float:
    """Metres on the ground along a line of constant y; NaN if a part of it has no ground."""
    plane, (west, _, east, _) = _plane(domain), domain.bounds
    if plane is None:
        return math.nan
    # A hundred parts of the line, each along a geodesic.
    x = np.linspace(west, east, 101)
    longitude, latitude = np.degrees(plane.to_radians(x, np.full_like(x, y)))
    if not np.isfinite(longitude + latitude).all():
        return math.nan
    return float(plane.ellipsoid.line_length(longitude, latitude))


def east_west_scale(domain: Domain, y: float | Floats) -> Floats:
    """Length of a unit of x over that of a unit of y, at a latitude; 1 in a projection."""
    latitude = np.asarray(y, np.float64) * radians_per_unit(domain.crs) if domain.geographic else 0
    return np.asarray(np.cos(latitude) * np.ones_like(y, np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """Plane of a CRS and the ellipsoid below it."""

    ellipsoid: Geod  # of the CRS
    radius: float  # its larger half axis in units of the plane
    angle: float  # radians of a unit of longitude and latitude
    transformer: Transformer | None  # to longitude and latitude, if the coordinates are not these
    edged: str | None = None  # the CRS, if points may be no places on earth

    def to_radians(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Longitude and latitude of points; not finite outside the projection."""
        is_place = True if self.edged is None else are_places(self.edged, x, y)
        if self.transformer is not None:
            x, y = self.transformer.transform(x, y)
        x = np.where(is_place, x, np.inf)
        return x * self.angle, y * self.angle

    def scales(self, points: Floats) -> Floats:
        """Square metres of ground per unit of area at points (n, 2); 0 outside the projection."""
        step = _STEP * self.radius
        x, y = points.T
        # Places in space (no seam there) a step west, east, south and north of points, (3, 4, n).
        longitude, latitude = self.to_radians(
            np.concatenate([x - step, x + step, x, x]), np.concatenate([y, y, y - step, y + step])
        )
        with np.errstate(invalid="ignore"):
            sine, cosine = np.sin(latitude), np.cos(latitude)
            across = self.ellipsoid.a / np.sqrt(1 - self.ellipsoid.es * sine**2)
            space = np.stack([
                across * cosine * np.cos(longitude),
                across * cosine * np.sin(longitude),
                across * (1 - self.ellipsoid.es) * sine,
            ]).reshape(3, 4, -1)  # fmt: skip
            # Area of the parallelogram that both differences span.
            along_x, along_y = space[:, 1] - space[:, 0], space[:, 3] - space[:, 2]
            area = np.sqrt((np.cross(along_x, along_y, axis=0) ** 2).sum(axis=0))
        return np.where(np.isfinite(area), area, 0.0) / (2 * step) ** 2

    def cuts(self, domain: Domain, low: Floats, extent: Floats) -> NDArray[np.bool_]:
        """Whether the edge of the projection divides boxes, by their corners and middles."""

        def on_ground(points: Floats) -> NDArray[np.bool_]:
            return np.isfinite(sum(self.to_radians(*points.T)))

        # Places all over the domain: without an edge among them, no box is looked at.
        west, south, east, north = domain.bounds
        sides = np.linspace(west, east, _PROBES), np.linspace(south, north, _PROBES)
        if on_ground(np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)).all():
            return np.zeros(len(low), bool)
        # Corners and middle: some on the ground and some not.
        places = ((0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5))
        inside = np.stack([on_ground(low + np.array(place) * extent) for place in places])
        return np.asarray(inside.any(axis=0) & ~inside.all(axis=0))


def _plane(domain: Domain) -> _Plane | None:
    """Plane of the CRS of a domain; None for a local one, which lies on no ellipsoid."""
    return _plane_of(domain.crs, beyond_the_world(domain.bounds, domain.crs))


@cache
def _plane_of(crs: str, has_edge: bool) -> _Plane | None:
    """Plane of a CRS, and whether it is asked about beyond its edge."""
    from pyproj import Transformer

    parsed = parse_crs(crs)
    base, ellipsoid = parsed.geodetic_crs, parsed.get_geod()
    if base is None or ellipsoid is None:
        return None
    is_plain = parsed.is_geographic and not parsed.is_derived
    if parsed.is_geographic:
        base, radius = parsed.source_crs or parsed, 1 / radians_per_unit(crs)
    else:
        radius = ellipsoid.a / (metres_per_unit(crs) or 1.0)
    with offline():
        transformer = None if is_plain else Transformer.from_crs(parsed, base, always_xy=True)
    angle = base.axis_info[0].unit_conversion_factor
    return _Plane(
        ellipsoid=ellipsoid,
        radius=radius,
        angle=angle,
        transformer=transformer,
        edged=crs if has_edge else None,
    )
