"""Cells of H3, hexagons of the earth, by their index; levels above are unions by the same index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.extras import needs_extra
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, NO_REGION, RegionGeometry, RegionHierarchy, RegionLevel
from psd.regions.kinds._aligned import NumberedLevels, cell_column
from psd.space.domain import Domain
from psd.space.even_odd import EdgeIndex

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.boundary import Boundary


MAX_RESOLUTION = 15
"""The finest cells, of about a square metre."""

# Where an index has its resolution, and its digits of three bits, the coarsest first.
_RESOLUTION_BIT, _DIGIT_BITS = 52, 3

# Degrees of longitude in which polygons are searched for cells; wider ones would be taken as those
# across the antimeridian.
_STRIP = 60.0

# Points along the bounds for each side of a cell.
_POINTS_PER_SIDE = 4

# The sphere of H3, in kilometres.
_RADIUS = 6371.007180918475


class H3Codes(Sequence[str]):
    """Indexes of cells, (n,) int64, as hexadecimal text, each written when it is read."""

    def __init__(self, cells: Integers) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> H3Codes: ...
    def __getitem__(self, index: int | slice) -> str | H3Codes:
        if isinstance(index, slice):
            return H3Codes(self._cells[index])
        return f"{int(self._cells[index]):x}"


def h3_library() -> Any:
    """The library h3, whose cells are integers."""
    with needs_extra("h3", "cells of H3 need the library h3"):
        import h3.api.basic_int as library
    return library


def cell_parents(cells: Integers, resolution: int, coarser: int) -> Integers:
    """Parents of cells of a resolution, by their index; in the same order."""
    # An index of a coarser resolution has all bits set in the digits that it does not use.
    unused = 0
    for digit in range(coarser + 1, resolution + 1):
        unused |= 7 << _DIGIT_BITS * (MAX_RESOLUTION - digit)
    level = np.int64((coarser - resolution) << _RESOLUTION_BIT)
    return np.asarray((cells + level) | np.int64(unused))


def are_cells(cells: Integers, resolution: int) -> bool:
    """Whether numbers are cells of a resolution."""
    library = h3_library()
    return bool((cells >= 0).all()) and all(
        library.is_valid_cell(cell) and library.get_resolution(cell) == resolution
        for cell in cells.tolist()
    )


def expected_cells(domain: Domain, resolution: int) -> float:
    """Number of cells that bounds have room for."""
    west, south, east, north = domain.bounds
    # Share of the sphere: a zone between two latitudes, and a part of its longitudes.
    zone = (np.sin(np.radians(north)) - np.sin(np.radians(south))) / 2 * (east - west) / 360
    area = h3_library().average_hexagon_area(resolution, unit="km^2")
    return float(zone * 4 * np.pi * _RADIUS**2 / area)


def cell_polygons(cells: Integers) -> tuple[NDArray[np.object_], Floats]:
    """Polygons of cells in degrees, and how far their sides may be from straight lines."""
    import shapely

    boundary = h3_library().cell_to_boundary
    rings = [boundary(cell) for cell in cells.tolist()]
    # Vertices of all cells in a row, as longitude and latitude, and the first of each.
    number = np.array([len(ring) for ring in rings], np.int64)
    vertices = np.array([vertex[::-1] for ring in rings for vertex in ring]).reshape(-1, 2)
    owner = np.repeat(np.arange(len(cells)), number)
    first = np.cumsum(number) - number
    # A cell across longitude 180 goes on beyond it, so that only cells around a pole are wider than
    # 180 degrees; those have no outline of longitudes and latitudes.
    if len(cells):
        ends = (ends.reduceat(vertices[:, 0], first) for ends in (np.maximum, np.minimum))
        is_across = np.subtract(*ends) > 180
        vertices[is_across[owner] & (vertices[:, 0] < 0), 0] += 360
    # Next vertex of each, around its ring.
    following = np.arange(1, len(vertices) + 1)
    following[first + number - 1] = first
    # Sides are arcs of great circles. The bound is twice the distance of the middle of the arc from
    # the middle of the straight line.
    bend = np.zeros(len(cells))
    np.maximum.at(bend, owner, _bends(vertices, vertices[following]))
    closed = np.insert(vertices, first + number, vertices[first], axis=0)
    rows = np.insert(owner, first + number, np.arange(len(cells)))
    linear = shapely.linearrings(closed, indices=rows)
    return np.asarray(shapely.polygons(linear), dtype=object), 2 * bend + 1e-9


def _bends(start: Floats, stop: Floats) -> Floats:
    """Distance in degrees between the middle of arcs and the middle of straight lines."""
    # Half the sum of two directions points to the middle of the arc between them.
    middle = (_directions(start) + _directions(stop)) / 2
    lon = np.degrees(np.arctan2(middle[:, 1], middle[:, 0]))
    lat = np.degrees(np.arctan2(middle[:, 2], np.hypot(middle[:, 0], middle[:, 1])))
    straight = (start + stop) / 2
    east = lon - straight[:, 0]
    return np.asarray(np.hypot(east - 360 * np.round(east / 360), lat - straight[:, 1]))


def _directions(vertices: Floats) -> Floats:
    """Unit vectors of longitudes and latitudes."""
    lon, lat = np.radians(vertices).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def cells_in_bounds(domain: Domain, resolution: int) -> tuple[Integers, Integers]:
    """Cells with their centre in the bounds, and those along the outline; each ascending.

    P1. Every cell with a part in the bounds is among them: its centre is inside, or the outline
    passes through it. The outline is followed in steps shorter than a cell, so each such cell is
    the cell of a step or beside one.
    """
    library = h3_library()
    west, south, east, north = domain.bounds
    # Cells whose centre lies in the bounds, strip by strip.
    strips = np.linspace(west, east, int(np.ceil((east - west) / _STRIP)) + 1)
    inside: set[int] = set()
    for a, b in zip(strips[:-1].tolist(), strips[1:].tolist(), strict=True):
        strip = library.LatLngPoly([(south, a), (south, b), (north, b), (north, a)])
        inside.update(library.h3shape_to_cells(strip, resolution))
    # Cells along the outline: those of its points, and their neighbours.
    step = np.degrees(library.average_hexagon_edge_length(resolution, unit="km") / _RADIUS)
    beside: set[int] = set()
    for x0, y0, x1, y1 in (
        (west, south, east, south),
        (east, south, east, north),
        (east, north, west, north),
        (west, north, west, south),
    ):
        points = int(np.ceil(max(abs(x1 - x0), abs(y1 - y0)) / step * _POINTS_PER_SIDE)) + 1
        lon, lat = np.linspace(x0, x1, points), np.linspace(y0, y1, points)
        on_line = {library.latlng_to_cell(*at, resolution) for at in zip(lat, lon, strict=True)}
        for cell in on_line:
            beside.update(library.grid_disk(cell, 1))
    return _sorted(inside), _sorted(beside - inside)


def _sorted(cells: set[int]) -> Integers:
    """Ascending array."""
    return np.sort(np.fromiter(cells, np.int64, len(cells)))


_CRS = "EPSG:4326"

_LEVELS = NumberedLevels(
    argument="h3", noun="resolutions", example="5..9 or 5,7,9", largest=MAX_RESOLUTION
)

# Regions whose outlines are held in memory together.
_PER_BATCH = 2**16


@dataclass(frozen=True, kw_only=True, eq=False)
class H3Cells(RegionGeometry):
    """Cells of H3 over a domain in degrees.

    P2. One record, one region, decided by this record alone: the library h3 computes the index of
    its longitude and latitude, rounded where there is a coordinate resolution.
    """

    kind: ClassVar[str] = "h3"
    domain: Domain  # of the release
    cells: Integers  # (n,) int64; ascending
    resolutions: tuple[int, ...]  # of each level, top first

    def __len__(self) -> int:
        return len(self.cells)

    def assign(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """See `RegionHierarchy.assign`, and the guarantees of this class."""
        if self.domain.coordinate_resolution is not None:
            columns, rows, _ = self.domain.quantise(x, y)
            x, y = self.domain.centres(0, columns), self.domain.centres(1, rows)
        index, resolution = h3_library().latlng_to_cell, self.resolutions[-1]
        numbers = [index(lat, lon, resolution) for lat, lon in zip(y.tolist(), x.tolist())]  # noqa: B905
        cells = np.array(numbers, np.int64)
        region = np.minimum(np.searchsorted(self.cells, cells), len(self) - 1)
        return np.where(self.cells[region] == cells, region, NO_REGION).astype(np.int32)

    def boxes(self) -> Integers:
        """See `RegionHierarchy.boxes`."""
        import shapely

        boxes = np.empty((len(self), 4), np.int64)
        for part in self._parts(np.arange(len(self))):
            polygons, reach = cell_polygons(self.cells[part])
            # Sides are arcs, which are outside the straight ones by at most the reach.
            bounds = shapely.bounds(polygons) + reach[:, None] * np.array([-1, -1, 1, 1])
            low, _, high, _ = self.domain.bounds
            bounds[:, ::2] = _around(bounds[:, ::2], low, high)
            for side in range(4):
                line = self.domain.axes[side % 2]
                edge = np.clip(bounds[:, side], line.low, line.high)
                boxes[part, side] = line.find_cells(edge) + (side >= 2)
        return boxes

    def meets(self, region: Integers, boxes: Integers) -> NDArray[np.bool_]:
        """See `RegionHierarchy.meets`."""
        met = np.zeros(len(boxes), bool)
        for rows, outline, polygons, reach in self._outlines(region):
            corners = self.domain.from_lattice(boxes[rows])
            corners += reach[outline][:, None] * np.array([-1, -1, 1, 1])
            sides = EdgeIndex.from_polygons(polygons)
            met[rows] = sides.meets(outline, corners)
            for which, turned in _turned(polygons, outline, corners):
                met[rows[which]] |= sides.meets(outline[which], turned)
        return met

    def clipped_area(self, region: Integers, boxes: Integers) -> Floats:
        """See `RegionHierarchy.clipped_area`; sides are taken as straight."""
        area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1).astype(np.float64)
        for rows, outline, polygons, _ in self._outlines(region):
            corners = self.domain.from_lattice(boxes[rows])
            sides = EdgeIndex.from_polygons(polygons)
            share = sides.fractions(outline, corners)
            for which, turned in _turned(polygons, outline, corners):
                share[which] += sides.fractions(outline[which], turned)
            area[rows] *= np.minimum(share, 1.0)
        return np.asarray(area)

    def _outlines(self, region: Integers) -> Any:
        """Yield rows, the number of the outline of each, outlines and their reach, in batches."""
        unique, number = np.unique(region, return_inverse=True)
        # Rows by their region, so that those of a batch of regions are a range.
        order = np.argsort(number, kind="stable")
        for part in self._parts(unique):
            low, high = np.searchsorted(number[order], [part.start, part.stop])
            rows = order[low:high]
            yield rows, number[rows] - part.start, *cell_polygons(self.cells[unique[part]])

    def _parts(self, regions: Integers) -> list[slice]:
        """Slices of so many regions as are looked at together."""
        starts = range(0, len(regions), _PER_BATCH)
        return [slice(start, min(start + _PER_BATCH, len(regions))) for start in starts]

    def shapes(self, region: Integers) -> NDArray[np.object_]:
        """See `RegionGeometry.shapes`."""
        import shapely

        polygons, _ = cell_polygons(self.cells[region])
        own = np.arange(len(polygons))
        whole = np.tile(np.array(self.domain.bounds), (len(polygons), 1))
        clipped: NDArray[np.object_] = shapely.intersection(polygons, shapely.box(*whole.T))
        # Parts of a cell a turn further east or west are moved back, and joined to those here.
        for which, turned in _turned(polygons, own, whole):
            turn = turned[0, 0] - whole[0, 0]
            beyond = shapely.intersection(polygons[which], shapely.box(*turned.T))
            beyond = shapely.transform(beyond, lambda xy, turn=turn: xy - [turn, 0])
            has_area = shapely.area(beyond) > 0
            clipped[which[has_area]] = shapely.union(clipped[which[has_area]], beyond[has_area])
        return clipped

    def part_outside(self) -> Floats:
        """See `RegionHierarchy.part_outside`."""
        import shapely

        inside = shapely.area(self.shapes(np.arange(len(self))))
        whole = shapely.area(cell_polygons(self.cells)[0])
        return np.asarray(np.maximum(1 - inside / whole, 0.0))

    def parameters(self) -> dict[str, Any]:
        """See `RegionGeometry.parameters`."""
        return {"resolutions": list(self.resolutions)}

    def to_table(self, levels: tuple[RegionLevel, ...]) -> pa.Table:
        """See `RegionGeometry.to_table`; the cells, which rounding could find otherwise."""
        import pyarrow as pa

        return pa.table({"cell": self.cells})

    @classmethod
    def read(
        cls,
        domain: Domain,
        names: tuple[str, ...],
        parameters: Mapping[str, Any],
        table: pa.Table | None,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """See `RegionGeometry.read`."""
        values = parameters.get("resolutions")
        if set(parameters) != {"resolutions"} or not isinstance(values, list) or table is None:
            raise ReleaseFormatError("cells of H3 must have resolutions and a table")
        if not all(type(value) is int for value in values):
            raise ReleaseFormatError("resolutions must be integers")
        _LEVELS.check(values)
        _check_crs(domain)
        if tuple(_level_name(value) for value in values) != names:
            raise ReleaseFormatError("levels of H3 must be named by their resolutions")
        cells = cell_column(table)
        if (np.diff(cells) <= 0).any() or not are_cells(cells, values[-1]):
            raise ReleaseFormatError("regions must be cells of H3 in their order")
        return cls.from_cells(domain, tuple(values), cells)

    @classmethod
    def from_cells(
        cls, domain: Domain, resolutions: tuple[int, ...], cells: Integers
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """Levels and regions of the lowest cells, which ascend."""
        levels = []
        above = np.zeros(len(cells), np.int64)
        for resolution in resolutions:
            # The cells ascend, so those of one parent follow each other.
            parent = cell_parents(cells, resolutions[-1], resolution)
            first = np.flatnonzero(np.diff(parent, prepend=-1))
            name, ids = _level_name(resolution), H3Codes(parent[first])
            levels.append(RegionLevel(name=name, ids=ids, parent=above[first].astype(np.int32)))
            above = np.repeat(np.arange(len(first)), np.diff(first, append=len(cells)))
        return tuple(levels), cls(domain=domain, cells=cells, resolutions=resolutions)


kind = H3Cells


def hierarchy_from_h3(
    resolutions: str | tuple[int, ...], domain: Domain, *, boundary: Boundary | None = None
) -> RegionHierarchy:
    """Make cells of H3 of ``"5..9"`` or ``"5,7,9"``: those of the bounds or of a boundary."""
    values: tuple[int, ...] = (
        _LEVELS.parse(resolutions) if isinstance(resolutions, str) else tuple(resolutions)
    )
    _LEVELS.check(values)
    _check_crs(domain)
    # Cells of all coarser resolutions together are a sixth of the finest.
    room = [r for r in range(values[-1] + 1) if expected_cells(domain, r) < MAX_NODES * 0.85]
    if values[-1] not in room:
        raise ParameterError(
            f"h3 must have at most {MAX_NODES:,} cells in all levels, got more of resolution "
            f"{values[-1]}; the finest that fits is {max(room, default=0)}"
        )
    cells = _cells_of(domain, values[-1], boundary)
    levels, geometry = H3Cells.from_cells(domain, values, cells)
    return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)


hierarchy = hierarchy_from_h3


def _cells_of(domain: Domain, resolution: int, boundary: Boundary | None) -> Integers:
    """Cells in which a record of the bounds, or of the boundary, may be."""
    inside, beside = (
        _without_poles(cells, domain) for cells in cells_in_bounds(domain, resolution)
    )
    geometry = H3Cells(domain=domain, cells=beside, resolutions=(resolution,))
    lattice = np.tile(np.array([0, 0, *domain.lattice]), (len(beside), 1))
    # Cells along the outline may lie outside all the same.
    met = beside[geometry.meets(np.arange(len(beside)), lattice)]
    cells = np.sort(np.concatenate([inside, met]))
    if boundary is None:
        return cells
    geometry = H3Cells(domain=domain, cells=cells, resolutions=(resolution,))
    within: Integers = cells[boundary.mask.mass(geometry.boxes()) > 0]
    return within


def _without_poles(cells: Integers, domain: Domain) -> Integers:
    """Cells but those around a pole; bounds that such a cell has a part of are refused."""
    import shapely

    kept = []
    for start in range(0, len(cells), _PER_BATCH):
        part = cells[start : start + _PER_BATCH]
        west, south, east, north = shapely.bounds(cell_polygons(part)[0]).T
        is_polar = east - west > 180
        # Sides are arcs that bend to the pole, so a vertex is the farthest from it.
        met = np.where(north > 0, domain.bounds[3] > south, domain.bounds[1] < north)
        if (is_polar & met).any():
            latitude = np.where(north > 0, south, north)[is_polar & met][0]
            latitude = np.trunc(latitude * 1e6) / 1e6  # with which the bounds are accepted
            raise DomainError(
                "bounds must have no part of a cell of h3 around a pole, whose outline is no "
                f"polygon of longitudes and latitudes; end them at latitude {latitude:.6f}, or "
                "take finer cells"
            )
        kept.append(part[~is_polar])
    return np.concatenate(kept) if kept else cells


def _around(spans: Floats, low: float, high: float) -> Floats:
    """Ends along x of outlines in bounds, in which they may be again a turn further."""
    west, east = spans.T
    ends = spans
    for turn in (360.0, -360.0):
        # Ends here, a turn further, or both, by where the cell meets the bounds.
        met = (east + turn > low) & (west + turn < high)
        here = (east > low) & (west < high)
        further = np.clip(spans + turn, low, high)
        both = np.clip(ends, low, high)
        both = np.stack(
            [np.minimum(both[:, 0], further[:, 0]), np.maximum(both[:, 1], further[:, 1])], axis=1
        )
        ends = np.where(met[:, None], np.where(here[:, None], both, further), ends)
    return ends


def _turned(
    polygons: NDArray[np.object_], outline: Integers, boxes: Floats
) -> Iterator[tuple[Integers, Floats]]:
    """Boxes that may meet their outline a turn further east or west, and the boxes there."""
    import shapely

    west, _, east, _ = shapely.bounds(polygons).T
    for turn in (360.0, -360.0):
        turned = boxes + np.array([turn, 0, turn, 0])
        which = np.flatnonzero((east[outline] > turned[:, 0]) & (west[outline] < turned[:, 2]))
        if which.size:
            yield which, turned[which]


def _check_crs(domain: Domain) -> None:
    """Refuse coordinates other than longitudes and latitudes of WGS 84."""
    if domain.crs != _CRS:
        raise DomainError(f"h3 needs bounds in {_CRS}, got {domain.crs[:80]}")


def _level_name(resolution: int) -> str:
    """Name of a level."""
    return f"resolution {resolution}"
