"""Densities on a raster over a domain, from polygons and from other rasters. All of it public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psd._util.arrays import Floats, ranges
from psd.errors import DomainError, ParameterError
from psd.space.crs import known_crs, transforming
from psd.space.polygon_areas import outlines
from psd.space.polygon_pieces import pieces
from psd.space.region_checks import in_crs

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = ["check_overlap", "polygon_density", "raster_density", "shapes_in"]

Bounds = tuple[float, float, float, float]

# Polygons divided together; bounds the memory, not the result.
_POLYGONS_PER_BATCH = 1024

# A raster line this close to another one, in cells, is meant to be that line.
_SNAP = 1e-6


def polygon_density(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries,
    domain: Domain,
    *,
    column: str | None,
    size: int,
) -> Floats:
    """Mean weight per unit of area in each cell of a raster, by exact areas.

    Parameters
    ----------
    polygons : GeoDataFrame or GeoSeries
        Polygons with a CRS.
    domain : Domain
        Whose bounds the raster covers.
    column : str, optional
        Weights, which add up where polygons overlap; without it a mask of 1, at most.
    size : int
        Columns and rows.

    Returns
    -------
    ndarray, shape (size, size), float64
        Rows from the south.
    """
    weights = _weights(polygons, column)
    shapes = shapes_in(polygons, domain)
    shapes, weights = shapes[weights > 0], weights[weights > 0]
    density = np.zeros((size, size))
    for some in np.split(
        np.arange(len(shapes)), range(_POLYGONS_PER_BATCH, len(shapes), _POLYGONS_PER_BATCH)
    ):
        density += _deposited(shapes[some], weights[some], domain, size)
    capped: Floats = np.minimum(density, np.inf if column else 1.0)
    return capped


def _deposited(shapes: NDArray[np.object_], weights: Floats, domain: Domain, size: int) -> Floats:
    """Density of some polygons in every cell."""
    scale = np.array(domain.lattice * 2) / size
    start = np.tile(np.array([0.0, 0.0, size, size]), (len(shapes), 1))
    steps, touched = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1), np.int64)
    there = np.tile(np.array(domain.bounds), (len(shapes), 1))
    number = np.arange(len(shapes))

    def place(boxes: Floats) -> Floats:
        return domain.from_lattice(boxes * scale)

    for part in pieces(outlines(shapes, there), number, start, place):
        west, south, east, north = part.boxes.astype(np.int64).T
        value = weights[part.owner] * part.fraction
        corners = ((south, west, 1), (north, west, -1), (south, east, -1), (north, east, 1))
        for row, column, sign in corners:
            np.add.at(steps, (row, column), sign * value)
            np.add.at(touched, (row, column), sign)
    density, met = (a.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] for a in (steps, touched))
    # Sums of floats leave dust where nothing is; the whole numbers know.
    found: Floats = np.where(met > 0, np.maximum(density, 0.0), 0.0)
    return found


def _weights(polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, column: str | None) -> Floats:
    """Weights of the polygons, 1 for a mask."""
    if column is None:
        return np.ones(len(polygons))
    columns = list(getattr(polygons, "columns", ()))
    if column not in columns or column == polygons.geometry.name:
        others = ", ".join(str(name) for name in columns if name != polygons.geometry.name)
        raise ParameterError(f"the covariate has no column {column!r}; it has: {others or 'none'}")
    try:
        weights: Floats = polygons[column].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ParameterError(f"column {column!r} of the covariate holds no numbers") from None
    _check_values(weights, f"column {column!r} of the covariate")
    return weights


def _check_values(values: Floats, name: str) -> None:
    """Refuse what is no density."""
    if not np.isfinite(values).all():
        raise ParameterError(f"{name} holds a value that is missing or no finite number")
    if (values < 0).any():
        raise ParameterError(f"{name} holds a negative value; a density is 0 or more")


def shapes_in(
    polygons: geopandas.GeoDataFrame | geopandas.GeoSeries, domain: Domain, what: str = "covariate"
) -> NDArray[np.object_]:
    """Polygons in the CRS of the domain, those far from it empty; what they are called if refused.

    Raises
    ------
    ParameterError
        If a polygon is none, or is not valid, or there is no polygon.
    DomainError
        If they have no CRS, or lie outside the bounds.
    """
    import shapely

    shapes = polygons.geometry
    if shapes.crs is None:
        raise DomainError(
            f"the {what} has no CRS; assign it (set_crs, or in your GIS), it is never guessed"
        )
    if not len(shapes):
        raise ParameterError(f"the {what} holds no polygon")
    kinds = shapely.get_type_id(shapes.array)
    for fault, found in {
        "is no polygon": ~np.isin(kinds, (3, 6)),
        "is not valid; repair it first": ~shapely.is_valid(shapes.array),
    }.items():
        if found.any():
            raise ParameterError(f"polygon {int(found.argmax()) + 1} of the {what} {fault}")
    there = in_crs(_near(shapes, domain), domain)
    check_overlap(tuple(shapely.total_bounds(there)), domain, what)
    return there


def _near(shapes: geopandas.GeoSeries, domain: Domain) -> geopandas.GeoSeries:
    """Shapes cut off at some distance from the domain, beyond which its CRS may not reach."""
    import geopandas as gpd
    import shapely
    from pyproj import Transformer

    if known_crs(shapes.crs) == domain.crs:
        return shapes
    with transforming("the bounds", "the CRS of the polygons"):
        there = Transformer.from_crs(domain.crs, shapes.crs, always_xy=True)
        box = np.array(there.transform_bounds(*domain.bounds))
    reach = 0.1 * np.tile(box[2:] - box[:2], 2) * (-1, -1, 1, 1)
    if not np.isfinite(box).all() or (reach[2:] <= 0).any():
        return shapes
    cut = shapely.intersection(shapes.array, shapely.box(*(box + reach)))
    polygonal = np.isin(shapely.get_type_id(cut), (3, 6))
    return gpd.GeoSeries(np.where(polygonal, cut, shapely.Polygon()), crs=shapes.crs)


def check_overlap(bounds: Bounds, domain: Domain, what: str = "covariate") -> None:
    """Refuse a covariate, or something else, beside the domain.

    Raises
    ------
    DomainError
        With the likely cause.
    """
    west, south, east, north = bounds
    if _meet(bounds, domain.bounds):
        return
    swapped = _meet((south, west, north, east), domain.bounds)
    cause = "are longitude and latitude swapped" if swapped else "is its CRS or place another one"
    raise DomainError(f"the {what} lies outside the bounds {domain.bounds}; {cause}?")


def _meet(a: Bounds, b: Bounds) -> bool:
    """Whether boxes have area in common; no number meets nothing."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def raster_density(
    values: NDArray[Any], domain: Domain, *, bounds: Bounds | None, size: int
) -> Floats:
    """Mean density of a raster in each cell of another one, by exact lengths of overlap.

    Parameters
    ----------
    values : ndarray, shape (rows, columns)
        Densities, the first row in the north.
    domain : Domain
        Whose bounds the result covers.
    bounds : tuple of float, optional
        West, south, east, north of the values; the domain's where not given.
    size : int
        Columns and rows of the result.

    Returns
    -------
    ndarray, shape (size, size), float64
        Rows from the south.
    """
    values = np.asarray(values)
    if values.ndim != 2 or not values.size or values.dtype.kind not in "buif":
        raise ParameterError("the raster of the covariate is no table of numbers")
    north_up = values[::-1].astype(np.float64)
    _check_values(north_up, "the raster of the covariate")
    bounds = domain.bounds if bounds is None else bounds
    check_overlap(bounds, domain)
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
    """Share of each interval between edges that lies in each of so many equal cells."""
    place = (edges - low) * (cells / (high - low))
    near = np.rint(place)
    place = np.where(np.abs(place - near) < _SNAP, near, place)
    width = np.diff(place)
    place = np.clip(place, 0, cells)
    start, stop = place[:-1], place[1:]
    first = np.floor(start).astype(np.int64)
    met = np.where(stop > start, np.ceil(stop).astype(np.int64) - first, 0)
    interval, cell = np.repeat(np.arange(len(first)), met), ranges(first, met)
    inside = np.minimum(stop[interval], cell + 1) - np.maximum(start[interval], cell)
    return sparse.csr_array((inside / width[interval], (interval, cell)), shape=(len(first), cells))
