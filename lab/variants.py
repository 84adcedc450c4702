"""Public points of which a public seed makes other ones: rounded, snapped, thinned, heaped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import geopandas as gpd
import numpy as np
import shapely
from accuracy import BOUNDS
from numpy.typing import NDArray

import psd
from psd.ingest.sources import Columns, read
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate

__all__ = ["Bounds", "Points", "Variant", "changed_rows", "points_inside", "variants"]

Bounds = tuple[float, float, float, float]
Points = NDArray[np.float64]

DECIMALS = (2, 3, 4, 5)
SEED = 17
STREETS = 300
HEAVY = 300
GRID = 256
SETTLED = 40
ROUGH = 48
TOWNS = 400
CITIES = 3000
CITY_BOUNDS = (-25.0, 34.0, 45.0, 72.0)
TOWN_BOUNDS = {2: (0.0, 40.0, 20.0, 50.0), 4: (10.0, 50.0, 10.6, 50.4), 5: (2.0, 48.0, 2.2, 48.1)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """A row of the matrix.

    Parameters
    ----------
    name : str
        Data set and what was done with it.
    points : callable
        Makes the points, shape (n, 2); always the same ones.
    domain : Domain
        Of the releases.
    step : float
        Distance between the values that a coordinate can have; 0 where it is not known.
    aligned : bool
        Whether the sides of queries lie on lines of the lattice.
    outline : callable, optional
        Makes the polygon of a boundary, outside of which there are no points and no districts.
    density : callable, optional
        Makes the densities of a covariate, from the southern row on.
    """

    name: str
    points: Callable[[], Points]
    domain: psd.Domain
    step: float = 0.0
    aligned: bool = False
    outline: Callable[[], shapely.Geometry] | None = None
    density: Callable[[], Points] | None = None

    @cached_property
    def boundary(self) -> Boundary | None:
        """Boundary of the releases."""
        if self.outline is None:
            return None
        return Boundary.from_polygons(
            gpd.GeoSeries([self.outline()], crs=self.domain.crs), self.domain
        )

    @cached_property
    def covariate(self) -> Covariate | None:
        """Covariate of the releases."""
        if self.density is None:
            return None
        return Covariate.from_density(self.domain, self.density())


def variants(folder: Path) -> dict[str, Variant]:
    """All rows by name."""
    rows = [row for name in BOUNDS for row in _of_set(folder, name)]
    return {row.name: row for row in (*rows, *_of_towns())}


def _of_set(folder: Path, name: str) -> Iterator[Variant]:
    """Rows made of one data set."""
    domain = psd.Domain(bounds=BOUNDS[name])
    yield from changed_rows(
        name, lambda: points_inside(folder / f"{name}.csv", domain), BOUNDS[name]
    )


def changed_rows(name: str, points: Callable[[], Points], bounds: Bounds) -> Iterator[Variant]:
    """Points in longitude and latitude as they are, and with every change."""
    domain = psd.Domain(bounds=bounds)

    def row(what: str, change: Callable[[Points, Bounds, np.random.Generator], Points]) -> Variant:
        return Variant(
            name=f"{name}, {what}",
            points=lambda: change(points(), bounds, np.random.default_rng(SEED)),
            domain=domain,
        )

    yield Variant(name=f"{name}, as it is", points=points, domain=domain)
    for decimals in DECIMALS:
        yield Variant(
            name=f"{name}, {decimals} decimals",
            points=lambda decimals=decimals: np.round(points(), decimals),  # type: ignore[misc]
            domain=domain,
            step=10.0**-decimals,
        )
        yield Variant(
            name=f"{name}, {decimals} decimals, declared",
            points=lambda decimals=decimals: np.round(points(), decimals),  # type: ignore[misc]
            domain=psd.Domain(bounds=bounds, coordinate_resolution=f"1e-{decimals}"),
        )
    yield row("streets", _snap_to_streets)
    yield row("tenth", lambda xy, _, random: xy[random.random(len(xy)) < 0.1])
    yield row("tenfold", _jitter_copies)
    yield row("line", _press_on_line)
    yield row("heavy places", _heap_up)
    yield Variant(
        name=f"{name}, grid",
        points=lambda: _snap_to_grid(points(), bounds),
        domain=domain,
        step=max((bounds[2] - bounds[0]) / GRID, (bounds[3] - bounds[1]) / GRID),
    )
    yield Variant(
        name=f"{name}, public grid",
        points=lambda: _snap_to_grid(points(), bounds),
        domain=psd.Domain(bounds=bounds, lattice=(GRID, GRID)),
        aligned=True,
    )
    yield Variant(
        name=f"{name}, public grid, sides anywhere",
        points=lambda: _snap_to_grid(points(), bounds),
        domain=psd.Domain(bounds=bounds, lattice=(GRID, GRID)),
    )
    yield Variant(
        name=f"{name}, boundary",
        points=points,
        domain=domain,
        outline=lambda: _settled_area(points(), bounds),
    )
    yield Variant(
        name=f"{name}, covariate",
        points=points,
        domain=domain,
        density=lambda: _rough_density(points(), bounds),
    )


def _of_towns() -> Iterator[Variant]:
    """Rows of points that are drawn: towns whose sizes follow a power law, rounded."""
    for decimals, bounds in TOWN_BOUNDS.items():
        yield Variant(
            name=f"towns, {decimals} decimals",
            points=lambda decimals=decimals, bounds=bounds: np.round(  # type: ignore[misc]
                _draw_towns(bounds, np.random.default_rng(SEED)), decimals
            ),
            domain=psd.Domain(bounds=bounds),
            step=10.0**-decimals,
        )
    yield Variant(
        name="cities",
        points=lambda: _draw_cities(CITY_BOUNDS, np.random.default_rng(SEED)),
        domain=psd.Domain(bounds=CITY_BOUNDS),
    )


def points_inside(path: Path, domain: psd.Domain) -> Points:
    """Points of a file inside the domain."""
    batches = [
        np.stack([batch.x, batch.y], axis=1)
        for batch in read(path, Columns(x="lon", y="lat"), domain)
    ]
    xy = np.concatenate(batches)
    return xy[domain.quantise(xy[:, 0], xy[:, 1])[2]]


def _size(bounds: Bounds) -> tuple[Points, Points]:
    """South-west corner and sides of a box."""
    corner = np.array(bounds[:2])
    return corner, np.array(bounds[2:]) - corner


def _snap_to_streets(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """Move each point to the nearest of straight streets along both axes."""
    corner, size = _size(bounds)
    lines = corner + np.sort(random.random((STREETS, 2)), axis=0) * size
    snapped = np.stack([_nearest(lines[:, axis], xy[:, axis]) for axis in (0, 1)], axis=1)
    along_y = np.abs(snapped - xy)[:, 0] * size[1] < np.abs(snapped - xy)[:, 1] * size[0]
    return np.where(np.stack([along_y, ~along_y], axis=1), snapped, xy)


def _nearest(lines: Points, values: Points) -> Points:
    """Nearest of sorted lines to each value."""
    after = np.clip(np.searchsorted(lines, values), 1, len(lines) - 1)
    before = after - 1
    return np.where(values - lines[before] < lines[after] - values, lines[before], lines[after])


def _jitter_copies(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """Ten copies of each point, moved by a thousandth of the domain."""
    corner, size = _size(bounds)
    moved = np.repeat(xy, 10, axis=0) + random.normal(0, 1e-3, (10 * len(xy), 2)) * size
    return np.clip(moved, corner, corner + size * (1 - 1e-9))


def _press_on_line(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """All points on one line from west to east."""
    corner, size = _size(bounds)
    return np.stack([xy[:, 0], np.full(len(xy), corner[1] + size[1] * (2**0.5 - 1))], axis=1)


def _heap_up(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """All points at a few hundred of them, with weights that follow a power law."""
    weight = np.arange(1, HEAVY + 1) ** -1.0
    places = xy[random.choice(len(xy), HEAVY, replace=False)]
    return places[random.choice(HEAVY, len(xy), p=weight / weight.sum())]


def _snap_to_grid(xy: Points, bounds: Bounds) -> Points:
    """Points in the middle of the cells of a grid."""
    corner, size = _size(bounds)
    cell = np.floor((xy - corner) / size * GRID)
    return corner + (np.minimum(cell, GRID - 1) + 0.5) / GRID * size


def _settled_area(xy: Points, bounds: Bounds) -> shapely.Geometry:
    """One polygon around the more populated cells of a coarse grid."""
    corner, size = _size(bounds)
    side = size / SETTLED
    cells, count = np.unique(np.floor((xy - corner) / side), axis=0, return_counts=True)
    middles = (cells[count >= np.quantile(count, 0.3)] + 0.5) * side + corner
    discs = shapely.buffer(shapely.points(middles), 0.9 * side.max())
    area = shapely.union_all(discs).simplify(0.1 * side.max())
    return shapely.intersection(area, shapely.box(*bounds))


def _rough_density(xy: Points, bounds: Bounds) -> Points:
    """Square roots of the counts of a coarse grid: more or less where people are."""
    corner, size = _size(bounds)
    columns, rows = np.minimum(np.floor((xy - corner) / size * ROUGH), ROUGH - 1).T.astype(int)
    count = np.bincount(rows * ROUGH + columns, minlength=ROUGH**2).reshape(ROUGH, ROUGH)
    return np.sqrt(count)


def _draw_towns(bounds: Bounds, random: np.random.Generator) -> Points:
    """Towns with a core and a fringe; a twentieth of the points lies anywhere."""
    corner, size = _size(bounds)
    weight = np.arange(1, TOWNS + 1) ** -1.1
    town = random.choice(TOWNS, 100_000, p=weight / weight.sum())
    radius = (
        0.2 * np.sqrt(weight / weight.sum())[town, None] * random.exponential(1, (len(town), 1))
    )
    xy = random.random((TOWNS, 2))[town] + radius * random.normal(0, 1, (len(town), 2))
    anywhere = random.random(len(town)) < 0.05
    xy[anywhere] = random.random((int(anywhere.sum()), 2))
    return corner + size * xy[((xy >= 0) & (xy < 1)).all(axis=1)]


def _draw_cities(bounds: Bounds, random: np.random.Generator) -> Points:
    """Cities that are tiny beside the domain, in groups; their sizes follow a power law."""
    corner, size = _size(bounds)
    groups = random.random((CITIES // 20, 2))
    centres = groups[random.integers(0, len(groups), CITIES)] + random.normal(0, 0.05, (CITIES, 2))
    weight = np.arange(1, CITIES + 1) ** -1.0
    city = random.choice(CITIES, 60_000, p=weight / weight.sum())
    xy = centres[city] + random.normal(0, 1e-3, (len(city), 2))
    return corner + size * xy[((xy >= 0) & (xy < 1)).all(axis=1)]
