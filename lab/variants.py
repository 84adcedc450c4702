"""Public points of which a public seed makes other ones: rounded, snapped, thinned, heaped."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import geopandas as gpd
import numpy as np
import shapely
from data_sets import Bounds, Points, PointSet, corner_and_size, draw_towns, snap_to_streets

import psd
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate

__all__ = ["KINDS", "Points", "Variant", "changed_variants"]

DECIMALS = (2, 3, 4, 5)
SEED = 17
HEAVY = 300
GRID = 256
LATTICES = ((100, 70), (256, 256), (1024, 1024))
PLACES_IN_CELLS = {"as it is": None, "in the middle": 0.5, "at a fifth": 0.2}
ROUNDING = 1e-6
SETTLED = 40
ROUGH = 48
TOWNS = 400
CITIES = 3000
CITY_BOUNDS = (-25.0, 34.0, 45.0, 72.0)
TOWN_BOUNDS = {2: (0.0, 40.0, 20.0, 50.0), 4: (10.0, 50.0, 10.6, 50.4), 5: (2.0, 48.0, 2.2, 48.1)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """A row of the matrix: points, and the domain and further parameters of the releases."""

    name: str
    points: Callable[[], Points]  # always the same ones
    domain: psd.Domain
    step: float = 0.0  # distance between the values of a coordinate; 0 where it is not known
    aligned: bool = False  # whether the sides of queries lie on lines of the lattice
    outline: Callable[[], shapely.Geometry] | None = None  # of a boundary
    density: Callable[[], Points] | None = None  # of a covariate, from the southern row on
    regions: Callable[[], gpd.GeoDataFrame] | None = None  # counted by name, ids in ``district``
    asked: Callable[[], gpd.GeoDataFrame] | None = None  # polygons, in place of districts

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

    @cached_property
    def hierarchy(self) -> RegionHierarchy | None:
        """Named regions of the releases."""
        if self.regions is None:
            return None
        return hierarchy_from_polygons(self.regions(), self.domain, ids="district")


def changed_variants(sets: Iterable[PointSet]) -> Iterator[Variant]:
    """Sets with every change, those that are rounded or projected as they are; and drawn towns."""
    for one in sets:
        if one.step or one.resolution or one.crs != "EPSG:4326":
            yield _as_given(one)
        else:
            yield from _changed_rows(one)
    yield from _of_towns()


def given_variants(sets: Iterable[PointSet]) -> Iterator[Variant]:
    """Sets as they are."""
    yield from map(_as_given, sets)


def lattice_variants(sets: Iterable[PointSet]) -> Iterator[Variant]:
    """Sets on lattices that were chosen, records somewhere in the cells."""
    for one in sets:
        for columns, rows in LATTICES:
            domain = psd.Domain(bounds=one.bounds, crs=one.crs, lattice=(columns, rows))
            for what, part in PLACES_IN_CELLS.items():
                yield Variant(
                    name=f"{one.name}, {columns} x {rows}, {what}",
                    points=partial(_move_in_cells, one, domain, part),
                    domain=domain,
                )


KINDS: dict[str, Callable[[Iterable[PointSet]], Iterator[Variant]]] = {
    "changed": changed_variants,
    "given": given_variants,
    "lattices": lattice_variants,
}


def _as_given(one: PointSet) -> Variant:
    """Row of a set; where a resolution is declared, all queries are judged."""
    return Variant(
        name=f"{one.name}, declared" if one.resolution else one.name,
        points=lambda: one.inside,
        domain=one.domain,
        step=0.0 if one.resolution else one.step,
    )


def _move_in_cells(one: PointSet, domain: psd.Domain, part: float | None) -> Points:
    """Points of a set, each at one part of its lattice cell along both axes."""
    if part is None:
        return one.inside
    corner, size = corner_and_size(domain.bounds)
    cells = np.array(domain.lattice)
    lines = np.floor((one.inside - corner) / size * cells) + part
    moved: Points = corner + np.minimum(lines, cells - ROUNDING) / cells * size
    return moved


def _changed_rows(one: PointSet) -> Iterator[Variant]:
    """Points in longitude and latitude as they are, and with every change."""
    name, bounds, domain = one.name, one.bounds, one.domain

    def points() -> Points:
        return one.inside

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
    yield row("streets", snap_to_streets)
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
                draw_towns(bounds, np.random.default_rng(SEED), towns=TOWNS, size=100_000),
                decimals,
            ),
            domain=psd.Domain(bounds=bounds),
            step=10.0**-decimals,
        )
    yield Variant(
        name="cities",
        points=lambda: _draw_cities(CITY_BOUNDS, np.random.default_rng(SEED)),
        domain=psd.Domain(bounds=CITY_BOUNDS),
    )


def _jitter_copies(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """Ten copies of each point, moved by a thousandth of the domain."""
    corner, size = corner_and_size(bounds)
    moved = np.repeat(xy, 10, axis=0) + random.normal(0, 1e-3, (10 * len(xy), 2)) * size
    return np.clip(moved, corner, corner + size * (1 - 1e-9))


def _press_on_line(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """All points on one line from west to east."""
    corner, size = corner_and_size(bounds)
    return np.stack([xy[:, 0], np.full(len(xy), corner[1] + size[1] * (2**0.5 - 1))], axis=1)


def _heap_up(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """All points at a few hundred of them, with weights that follow a power law."""
    weight = np.arange(1, HEAVY + 1) ** -1.0
    places = xy[random.choice(len(xy), HEAVY, replace=False)]
    return places[random.choice(HEAVY, len(xy), p=weight / weight.sum())]


def _snap_to_grid(xy: Points, bounds: Bounds) -> Points:
    """Points in the middle of the cells of a grid."""
    corner, size = corner_and_size(bounds)
    cell = np.floor((xy - corner) / size * GRID)
    return corner + (np.minimum(cell, GRID - 1) + 0.5) / GRID * size


def _settled_area(xy: Points, bounds: Bounds) -> shapely.Geometry:
    """One polygon around the more populated cells of a coarse grid."""
    corner, size = corner_and_size(bounds)
    side = size / SETTLED
    cells, count = np.unique(np.floor((xy - corner) / side), axis=0, return_counts=True)
    middles = (cells[count >= np.quantile(count, 0.3)] + 0.5) * side + corner
    discs = shapely.buffer(shapely.points(middles), 0.9 * side.max())
    area = shapely.union_all(discs).simplify(0.1 * side.max())
    return shapely.intersection(area, shapely.box(*bounds))


def _rough_density(xy: Points, bounds: Bounds) -> Points:
    """Square roots of the counts of a coarse grid: more or less where people are."""
    corner, size = corner_and_size(bounds)
    columns, rows = np.minimum(np.floor((xy - corner) / size * ROUGH), ROUGH - 1).T.astype(int)
    count = np.bincount(rows * ROUGH + columns, minlength=ROUGH**2).reshape(ROUGH, ROUGH)
    return np.sqrt(count)


def _draw_cities(bounds: Bounds, random: np.random.Generator) -> Points:
    """Cities that are tiny beside the domain, in groups; their sizes follow a power law."""
    corner, size = corner_and_size(bounds)
    groups = random.random((CITIES // 20, 2))
    centres = groups[random.integers(0, len(groups), CITIES)] + random.normal(0, 0.05, (CITIES, 2))
    weight = np.arange(1, CITIES + 1) ** -1.0
    city = random.choice(CITIES, 60_000, p=weight / weight.sum())
    xy = centres[city] + random.normal(0, 1e-3, (len(city), 2))
    return corner + size * xy[((xy >= 0) & (xy < 1)).all(axis=1)]
