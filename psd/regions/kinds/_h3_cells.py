"""Cells of H3: their numbers, parents and outlines, by the library h3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.extras import install_text
from psd.errors import MissingExtraError
from psd.space.domain import Domain

__all__ = [
    "MAX_RESOLUTION",
    "H3Codes",
    "are_cells",
    "cell_parents",
    "cell_polygons",
    "cells_in_bounds",
    "expected_cells",
    "h3_library",
]

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
    try:
        import h3.api.basic_int as library
    except ImportError:
        raise MissingExtraError(
            f"cells of H3 need the library h3; {install_text('h3')}", extra="h3"
        ) from None
    return library


def cell_parents(cells: Integers, resolution: int, coarser: int) -> Integers:
    """Parents of cells of a resolution, by their index; in the same order."""
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
    zone = (np.sin(np.radians(north)) - np.sin(np.radians(south))) / 2 * (east - west) / 360
    area = h3_library().average_hexagon_area(resolution, unit="km^2")
    return float(zone * 4 * np.pi * _RADIUS**2 / area)


def cell_polygons(cells: Integers) -> tuple[NDArray[np.object_], Floats]:
    """Polygons of cells in degrees, and how far their sides may be from straight lines."""
    import shapely

    boundary = h3_library().cell_to_boundary
    rings = [boundary(cell) for cell in cells.tolist()]
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
    strips = np.linspace(west, east, int(np.ceil((east - west) / _STRIP)) + 1)
    inside: set[int] = set()
    for a, b in zip(strips[:-1].tolist(), strips[1:].tolist(), strict=True):
        strip = library.LatLngPoly([(south, a), (south, b), (north, b), (north, a)])
        inside.update(library.h3shape_to_cells(strip, resolution))
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
