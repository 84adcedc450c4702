"""Regions that are polygons, such as wards: even-odd at the coordinates of each record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.processes import map_items
from psd.errors import ParameterError, ReleaseFormatError
from psd.regions.hierarchy import NO_REGION, RegionGeometry, RegionLevel, read_levels, write_levels
from psd.regions.raster import RegionRaster
from psd.space.domain import Domain
from psd.space.even_odd import CertainCells, EdgeIndex

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PolygonRegions"]


# Part of the longer side of the bounds; a decimetre in 100 km.
_TOLERANCE = 1e-6


def default_tolerance(domain: Domain) -> float:
    """Width in units of the CRS up to which overlaps and gaps are taken as errors of drawing."""
    return _TOLERANCE * max(domain.width, domain.height)


def overlapping_pairs(polygons: NDArray[np.object_]) -> Integers:
    """Pairs of valid polygons whose interiors overlap, the lower number first."""
    import shapely

    first, second = shapely.STRtree(polygons).query(polygons, predicate="intersects")
    first, second = first[first < second], second[first < second]
    overlaps = shapely.relate_pattern(polygons[first], polygons[second], "T********")
    return np.stack([first[overlaps], second[overlaps]], axis=1).astype(np.int64)


def check_overlaps(
    polygons: NDArray[np.object_], ids: Sequence[str], tolerance: float
) -> tuple[Integers, float]:
    """The `overlapping_pairs`, and their area; refuse any that overlap more than the tolerance."""
    import shapely

    pairs = overlapping_pairs(polygons)
    first, second = pairs.T
    shared = shapely.intersection(polygons[first], polygons[second])
    wide = is_wide(shared, tolerance)
    if wide.any():
        pair = int(wide.argmax())
        a, b = ids[first[pair]], ids[second[pair]]
        raise ParameterError(
            f"regions must not overlap by more than {tolerance:g}, but {a[:80]!r} and {b[:80]!r} "
            f"do ({int(wide.sum()):,} such pairs); remove the overlap, or pass a larger tolerance"
        )
    return pairs, float(shapely.area(shared).sum())


def is_wide(shapes: NDArray[np.object_], tolerance: float) -> NDArray[np.bool_]:
    """Whether shapes have a part that is wider than the tolerance."""
    import shapely

    wide: NDArray[np.bool_] = shapely.area(shapes) > 0
    which = np.flatnonzero(wide)
    wide[which] = ~shapely.is_empty(shapely.buffer(shapes[which], -tolerance / 2, quad_segs=2))
    return wide


def gap_between(
    polygons: NDArray[np.object_], area: Any, tolerance: float, overlap: float = np.inf
) -> Any:
    """The part of an area in no polygon; None if it is nowhere wider than the tolerance.

    `overlap` is the area of all overlaps of two polygons, if it is known.
    """
    import shapely

    # The union, which takes long, has at least the sum of areas without the overlaps. A gap that is
    # wider than the tolerance holds a disc of this width; half of it is left to rounding.
    (west, south, east, north), bounds = area.bounds, shapely.bounds(polygons)
    is_inside = (bounds[:, :2] >= (west, south)).all() and (bounds[:, 2:] <= (east, north)).all()
    whole, half_disc = (east - west) * (north - south), np.pi / 8 * tolerance**2
    most = whole - float(shapely.area(polygons).sum()) + overlap
    if is_inside and most < half_disc and half_disc > _ROUNDING * whole:
        return None
    gap = polygonal_part(np.array([area.difference(shapely.union_all(polygons))], dtype=object))
    return gap[0] if is_wide(gap, tolerance)[0] else None


def polygonal_part(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Polygons of shapes, without lines and points that overlays leave."""
    import shapely

    mixed = np.flatnonzero(~np.isin(shapely.get_type_id(shapes), (3, 6)))
    if not len(mixed):
        return shapes
    shapes = shapes.copy()
    for index in mixed:
        parts = shapely.get_parts(shapes[index])
        areas = parts[np.isin(shapely.get_type_id(parts), (3, 6))]
        shapes[index] = shapely.union_all(areas) if len(areas) else shapely.Polygon()
    return shapes


def share_sides(
    polygons: NDArray[np.object_], sides: EdgeIndex, domain: Domain, tolerance: float
) -> bool:
    """Whether polygons that are beside each other inside the bounds have their sides in common."""
    import shapely

    # Then no point between them is in none. Else rounding may leave gaps that no overlay shows.
    x0, y0, x1, y1, _ = sides.sides
    turned = (x0 == x1) & (y0 > y1)
    ends = x0, np.where(turned, y1, y0), x1, np.where(turned, y0, y1)
    _, group, number = np.unique(_hashes(*ends), return_inverse=True, return_counts=True)
    # A side that has no twin, in either direction; no other polygon may be near its middle.
    alone = number[group] != 2
    x, y, owner = (x0[alone] + x1[alone]) / 2, (y0[alone] + y1[alone]) / 2, sides.owner[alone]
    west, south, east, north = domain.bounds
    inside = (x > west) & (x < east) & (y > south) & (y < north)
    middles, owner = shapely.points(x[inside], y[inside]), owner[inside]
    tree = shapely.STRtree(polygons)
    side, polygon = tree.query(middles, predicate="dwithin", distance=tolerance)
    return bool((owner[side] == polygon).all())


def _hashes(*numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Hash of numbers, row by row."""
    total = np.zeros(len(numbers[0]), np.uint64)
    for column in numbers:
        total ^= (column + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        total *= np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(32)
    return total


# Of the longer side of the bounds: what rounding may move an outline by in an overlay.
_SLACK = 1e-9

# Of the whole: what rounding may add to a sum of areas.
_ROUNDING = 1e-13

_POINTS_PER_THREAD, _BOXES_PER_THREAD = 2**15, 2**12


@dataclass(frozen=True, kw_only=True, eq=False)
class PolygonRegions(RegionGeometry):
    """Polygons over a domain, which may overlap and leave gaps within a tolerance.

    P1. One record, one region, decided by this record alone. `assign` is a function of one point
    and of the polygons, which are public: each point of an array is looked up by itself. It gives
    one number, so a record is in one region or in none.
    The rule, in this order. A point is in the first region whose polygon contains it, even-odd, a
    point on an outline in what continues to the east of it, see `psd.space.even_odd`. Else it is in
    the region within ``margin`` that is nearest, the first of several. Else it is in the region
    elsewhere, or in none if there is no such region. A point on the east or north bound of the
    domain is decided just inside it, as cells are. With a coordinate resolution the value that a
    record is rounded to decides, a little to the north-east of it, as in `psd.space.boundary`.
    """

    kind: ClassVar[str] = "polygons"
    domain: Domain  # of the release
    # (n,); valid polygons in the CRS of the domain, not clipped to its bounds.
    polygons: NDArray[np.object_]
    # Distance up to which a point in no polygon belongs to the nearest; 0 where sides are shared.
    margin: float
    elsewhere: bool  # whether the last region is what lies in no other one
    overlaps: Integers | None = None  # `overlapping_pairs`, where they are known

    def __len__(self) -> int:
        return len(self.polygons)

    @cached_property
    def _sides(self) -> EdgeIndex:
        """Sides of all polygons."""
        return EdgeIndex.from_polygons(self.polygons)

    @cached_property
    def _raster(self) -> RegionRaster:
        """Raster that decides most points."""
        # What is elsewhere overlaps others by rounding alone, far less than a cell.
        overlaps = self.overlaps
        if overlaps is None:
            overlaps = overlapping_pairs(self.polygons[: len(self) - self.elsewhere])
        return RegionRaster.from_polygons(
            self.polygons, self._sides, self.domain, overlaps=overlaps, margin=self.margin
        )

    @property
    def _reach(self) -> Floats:
        """Distance beyond the polygon of each region up to which its records may be."""
        longer = max(self.domain.width, self.domain.height)
        reach = np.full(len(self), self.margin + (_SLACK * longer if self.margin else 0.0))
        if self.elsewhere:
            reach[-1] = self.margin + _SLACK * longer
        return reach

    def assign(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """See `RegionHierarchy.assign`, and the notes of this class."""
        # Rounded coordinates decide where the domain has a resolution.
        if self.domain.coordinate_resolution is None:
            _, _, east, north = self.domain.bounds
            x = np.minimum(x, np.nextafter(east, -np.inf))
            y = np.minimum(y, np.nextafter(north, -np.inf))
        else:
            columns, rows, _ = self.domain.quantise(x, y)
            x, y = self.domain.axes[0].probe(columns, 0), self.domain.axes[1].probe(rows, 1)
        region = map_items(self._raster.find, x, y, least=_POINTS_PER_THREAD)
        rest = np.flatnonzero(region == NO_REGION)
        if self.margin and len(rest):
            # The first of the nearest regions within the margin.
            import shapely

            points = shapely.points(x[rest], y[rest])
            point, near = self._tree.query_nearest(
                points, max_distance=self.margin, all_matches=True
            )
            nearest = np.full(len(rest), len(self), np.int32)
            np.minimum.at(nearest, point, near.astype(np.int32))
            region[rest] = np.where(nearest < len(self), nearest, np.int32(NO_REGION))
        if self.elsewhere:
            region[region == NO_REGION] = len(self) - 1
        return region

    def certain_cells(self) -> CertainCells | None:
        """See `RegionHierarchy.certain_cells`; None if rounded coordinates decide."""
        if self.domain.coordinate_resolution is not None:
            return None
        cells = self._raster.certain_cells()
        if not self.elsewhere:
            return cells
        return replace(cells, part=np.where(cells.part < 0, len(self) - 1, cells.part))

    @cached_property
    def _tree(self) -> Any:
        """Tree of the polygons but that of the region elsewhere."""
        import shapely

        return shapely.STRtree(self.polygons[: len(self) - self.elsewhere])

    def boxes(self) -> Integers:
        """See `RegionHierarchy.boxes`."""
        import shapely

        bounds, reach = shapely.bounds(self.polygons), self._reach
        boxes = np.empty((len(self), 4), np.int64)
        for axis in (0, 1):
            line = self.domain.axes[axis]
            # Ends are widened by the reach, and kept in the bounds.
            low = np.clip(bounds[:, axis] - reach, line.low, line.high)
            far = np.clip(bounds[:, axis + 2] + reach, line.low, line.high)
            boxes[:, axis] = line.find_cells(low)
            # A polygon does not hold its east and north ends.
            boxes[:, axis + 2] = line.find_cells(np.nextafter(far, -np.inf)) + 1
        return boxes

    def meets(self, region: Integers, boxes: Integers) -> NDArray[np.bool_]:
        """See `RegionHierarchy.meets`."""
        reach = self._reach[region][:, None]
        corners = self.domain.from_lattice(boxes) + reach * np.array([-1, -1, 1, 1])
        return map_items(self._sides.meets, region, corners, least=_BOXES_PER_THREAD)

    def clipped_area(self, region: Integers, boxes: Integers) -> Floats:
        """See `RegionHierarchy.clipped_area`."""
        size = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        corners = self.domain.from_lattice(boxes)
        share = map_items(self._sides.fractions, region, corners, least=_BOXES_PER_THREAD)
        return np.asarray(share * size)

    def shapes(self, region: Integers) -> NDArray[np.object_]:
        """See `RegionGeometry.shapes`."""
        import shapely

        bounds = shapely.box(*self.domain.bounds)
        shapes = self.polygons[region]
        clipped = shapes.copy()
        beyond = np.flatnonzero(~shapely.covers(bounds, shapes))
        clipped[beyond] = shapely.intersection(shapes[beyond], bounds)
        return polygonal_part(clipped)

    def part_outside(self) -> Floats:
        """See `RegionHierarchy.part_outside`."""
        import shapely

        inside = shapely.area(self.shapes(np.arange(len(self)))) / shapely.area(self.polygons)
        return np.asarray(np.maximum(1 - inside, 0.0))

    def gap(self) -> Any:
        """See `RegionHierarchy.gap`; what is narrower than the tolerance is an error of drawing."""
        import shapely

        if self.elsewhere:
            return None
        tolerance = max(self.margin, default_tolerance(self.domain))
        return gap_between(self.polygons, shapely.box(*self.domain.bounds), tolerance)

    def parameters(self) -> dict[str, Any]:
        """See `RegionGeometry.parameters`."""
        return {"margin": self.margin, "elsewhere": self.elsewhere}

    def to_table(self, levels: tuple[RegionLevel, ...]) -> pa.Table:
        """See `RegionGeometry.to_table`."""
        return write_levels(levels, self.polygons)

    @classmethod
    def read(
        cls,
        domain: Domain,
        names: tuple[str, ...],
        parameters: Mapping[str, Any],
        table: pa.Table | None,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """See `RegionGeometry.read`."""
        if parameters.keys() != {"margin", "elsewhere"} or table is None:
            raise ReleaseFormatError("polygons need a margin, elsewhere and a table")
        margin, elsewhere = parameters["margin"], parameters["elsewhere"]
        limit = max(domain.width, domain.height)
        if not (type(margin) in (int, float) and 0 <= margin <= limit and type(elsewhere) is bool):
            raise ReleaseFormatError("margin must be a distance in the bounds, elsewhere a flag")
        levels, polygons = read_levels(names, table, domain)
        return levels, cls(
            domain=domain, polygons=polygons, margin=float(margin), elsewhere=elsewhere
        )


kind = PolygonRegions
