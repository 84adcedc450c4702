"""Densities on a raster over a domain, from polygons and from other rasters; all public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from psd._util.arrays import Floats, ranges
from psd.errors import DomainError, ParameterError
from psd.space.bounds import are_places
from psd.space.crs import beyond_world
from psd.space.ground_areas import ground_areas
from psd.space.polygon_areas import clip_outlines, cover_by_pieces
from psd.space.regions import describe_polygon, reproject

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain


Bounds = tuple[float, float, float, float]

# Polygons divided together; bounds the memory, not the result.
_POLYGONS_PER_BATCH = 1024

# A raster line this close to another one, in cells, is taken as that line.
_SNAP = 1e-6

# Points along the side of a raster cell that the edge of the world may divide.
_POINTS = 8


def polygon_density(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries,
    domain: Domain,
    *,
    column: str | None,
    size: int,
) -> Floats:
    """Mean weight per area in each cell of a raster, exact, (size, size) float64 from the south.

    Weights of `column`, per area on the ground, add up where polygons overlap. Without it: a mask
    of 0 to 1, of the plane, where records are spread evenly without a covariate.
    """
    weights = _weights(polygons, column)
    shapes = polygons_in_domain(polygons, domain)
    shapes, weights = shapes[weights > 0], weights[weights > 0]
    density = np.zeros((size, size))
    for start in range(0, len(shapes), _POLYGONS_PER_BATCH):
        batch = slice(start, start + _POLYGONS_PER_BATCH)
        density += _batch_density(shapes[batch], weights[batch], domain, size)
    if column is None:
        return np.minimum(density, 1.0)
    # Cells with a weight get as much of it as they have ground.
    row, place = np.nonzero(density)
    boxes = np.stack([place, row, place + 1, row + 1], axis=1) * (
        np.array(domain.lattice * 2) / size
    )
    density[row, place] *= ground_areas(domain, boxes)
    return density


def _batch_density(
    shapes: NDArray[np.object_], weights: Floats, domain: Domain, size: int
) -> Floats:
    """Density of one batch of polygons in every cell."""
    scale = np.array(domain.lattice * 2) / size
    start = np.tile(np.array([0.0, 0.0, size, size]), (len(shapes), 1))
    # Changes of density at the corners of pieces; summed along both axes they are densities.
    steps, touched = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1), np.int64)
    bounds = np.tile(np.array(domain.bounds), (len(shapes), 1))
    number = np.arange(len(shapes))

    def to_crs(boxes: Floats) -> Floats:
        return domain.from_lattice(boxes * scale)

    for part in cover_by_pieces(clip_outlines(shapes, bounds), number, start, to_crs):
        west, south, east, north = part.boxes.astype(np.int64).T
        value = weights[part.owner] * part.fraction
        corners = ((south, west, 1), (north, west, -1), (south, east, -1), (north, east, 1))
        for row, column, sign in corners:
            np.add.at(steps, (row, column), sign * value)
            np.add.at(touched, (row, column), sign)
    density, covered = (a.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] for a in (steps, touched))
    # Sums of floats leave rounding errors in empty cells; the integer counts are exact.
    return np.where(covered > 0, np.maximum(density, 0.0), 0.0)


def _weights(polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, column: str | None) -> Floats:
    """Weights of the polygons, 1 for a mask."""
    if column is None:
        return np.ones(len(polygons))
    columns = list(getattr(polygons, "columns", ()))
    if column not in columns or column == polygons.geometry.name:
        others = ", ".join(str(name) for name in columns if name != polygons.geometry.name)
        raise ParameterError(
            f"column must be one of the covariate ({others or 'it has none'}), got {column!r}"
        )
    try:
        weights: Floats = polygons[column].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ParameterError(f"column {column!r} of the covariate must hold numbers") from None
    _check_values(weights, f"column {column!r} of the covariate")
    return weights


def _check_values(values: Floats, name: str) -> None:
    """Refuse values that are not densities."""
    if not np.isfinite(values).all():
        raise ParameterError(f"{name} must hold finite numbers; a value is missing or not finite")
    if (values < 0).any():
        raise ParameterError(f"{name} must hold densities of at least 0; a value is negative")


def polygons_in_domain(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, domain: Domain, what: str = "covariate"
) -> NDArray[np.object_]:
    """Reproject polygons to the CRS of the domain; polygons far from it become empty."""
    import shapely

    shapes = polygons.geometry
    if shapes.crs is None:
        raise DomainError(
            f"the {what} has no CRS; assign it (set_crs, or in your GIS), since it is never guessed"
        )
    if not len(shapes):
        raise ParameterError(f"the {what} must hold at least one polygon")
    kinds = shapely.get_type_id(shapes.array)
    is_other = ~np.isin(kinds, (3, 6))
    if is_other.any():
        raise ParameterError(
            f"{describe_polygon(polygons, int(is_other.argmax()), what)} is not a polygon"
        )
    is_invalid = ~shapely.is_valid(shapes.array)
    if is_invalid.any():
        index = int(is_invalid.argmax())
        reason = shapely.is_valid_reason(shapes.iloc[index])
        choice = ", or pass repair=True" if what == "boundary" else ""
        raise ParameterError(
            f"{describe_polygon(polygons, index, what)} is not valid ({reason}); repair it first"
            f"{choice}"
        )
    # What PROJ cannot place gets infinite coordinates, and must not be taken for empty.
    projected = reproject(shapes, domain)
    is_lost = ~shapely.is_empty(projected) & ~np.isfinite(shapely.bounds(projected)).all(axis=1)
    if is_lost.any():
        raise DomainError(
            f"{describe_polygon(polygons, int(is_lost.argmax()), what)} cannot be expressed in "
            f"{domain.crs}; {beyond_world(domain.crs)}"
        )
    check_overlap(tuple(shapely.total_bounds(projected)), domain, what)
    return projected


def check_overlap(bounds: Bounds, domain: Domain, what: str = "covariate") -> None:
    """Refuse a covariate, or another layer, outside the domain."""
    west, south, east, north = bounds
    if _overlap(bounds, domain.bounds):
        return
    swapped = _overlap((south, west, north, east), domain.bounds)
    cause = "are longitude and latitude swapped" if swapped else "is its CRS wrong"
    raise DomainError(f"the {what} lies outside the bounds {domain.bounds}; {cause}?")


def _overlap(a: Bounds, b: Bounds) -> bool:
    """Whether boxes share area; false if a number is NaN."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def raster_density(
    values: NDArray[Any], domain: Domain, *, bounds: Bounds | None, size: int
) -> Floats:
    """Resample a raster: mean density in each cell of another one, by exact lengths of overlap.

    values: (rows, columns), the first row in the north, over `bounds`, by default those of the
    domain; returns (size, size) float64, rows from the south, over the bounds of the domain.
    """
    values = np.asarray(values)
    if values.ndim != 2 or not values.size or values.dtype.kind not in "buif":
        raise ParameterError("the raster of the covariate must be two-dimensional and numeric")
    north_up = values[::-1].astype(np.float64)
    _check_values(north_up, "the raster of the covariate")
    bounds = domain.bounds if bounds is None else bounds
    check_overlap(bounds, domain)
    # A mean is a sum over rows and over columns with the shares of overlap, (size, cells) each.
    x, y = (
        _overlaps(
            domain.edges(axis, np.linspace(0, domain.lattice[axis], size + 1)),
            bounds[axis],
            bounds[axis + 2],
            values.shape[1 - axis],
        )
        for axis in (0, 1)
    )
    density: Floats = (x @ (y @ north_up).T).T
    return density


def _overlaps(edges: Floats, low: float, high: float, cells: int) -> sparse.csr_array:
    """Share of each interval between edges that lies in each of equal cells from low to high."""
    # Edges in units of the cells; those on a line within rounding are on it.
    position = (edges - low) * (cells / (high - low))
    near = np.rint(position)
    position = np.where(np.abs(position - near) < _SNAP, near, position)
    width = np.diff(position)
    position = np.clip(position, 0, cells)
    start, stop = position[:-1], position[1:]
    # Each interval with each cell that it touches, one after another.
    first = np.floor(start).astype(np.int64)
    touched = np.where(stop > start, np.ceil(stop).astype(np.int64) - first, 0)
    interval, cell = np.repeat(np.arange(len(first)), touched), ranges(first, touched)
    inside = np.minimum(stop[interval], cell + 1) - np.maximum(start[interval], cell)
    return sparse.csr_array((inside / width[interval], (interval, cell)), shape=(len(first), cells))


def world_density(domain: Domain, size: int) -> Floats:
    """Share of raster cells on earth, (size, size) from the south; to some percent at its edge."""
    x, y = (domain.edges(axis, np.linspace(0, domain.lattice[axis], size + 1)) for axis in (0, 1))
    grid = np.meshgrid(x, y)
    inside = are_places(domain.crs, grid[0].ravel(), grid[1].ravel()).reshape(size + 1, size + 1)
    # How many corners of each cell are on earth, 0 to 4.
    corners = sum(
        inside[rows, columns].astype(np.int64)
        for rows in (slice(None, -1), slice(1, None))
        for columns in (slice(None, -1), slice(1, None))
    )
    density = np.asarray(corners == 4, np.float64)

    # Cells beside one whose corners differ may be divided as well.
    is_divided = ndimage.maximum_filter(np.asarray((corners > 0) & (corners < 4), np.uint8), 3)
    row, column = np.nonzero(is_divided)
    place = (np.arange(_POINTS) + 0.5) / _POINTS
    shape = (len(row), _POINTS, _POINTS)
    along_x = x[column, None] + np.diff(x)[column, None] * place
    along_y = y[row, None] + np.diff(y)[row, None] * place
    points = np.broadcast_to(along_x[:, None], shape), np.broadcast_to(along_y[..., None], shape)
    inside = are_places(domain.crs, points[0].ravel(), points[1].ravel())
    density[row, column] = inside.reshape(len(row), -1).mean(axis=1)
    return density
