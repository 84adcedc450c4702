"""Public points that hide what they lie on: ways, traces, colonies, and districts between streets.

A public seed makes them of the points of a set, or of nothing, the same ones in every run.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

import geopandas as gpd
import numpy as np
import shapely
from data_sets import CITIES, Bounds, Points, PointSet, corner_and_size, draw_towns, rows_of_city
from scipy.spatial import cKDTree
from variants import Variant

import psd

__all__ = ["hard_variants"]

SEED = 61
REGIONS = (30, 600)
DECIMALS = (3, 4)

JUNCTIONS, LONGEST, ON_WAYS = 6_000, 0.01, 140_000
TRACE_BOUNDS = (-122.46, 37.74, -122.36, 37.82)
ROADS, CORNERS, ON_ROADS, JITTER = 60, 12, 1_000_000, 5e-5
COLONY_BOUNDS = (-8.0, 50.0, 2.0, 60.0)
WARD_BOUNDS = (3.0, 47.0, 3.4, 47.3)
WARDS, IN_WARDS = 80, 18_000
COUNTRY_BOUNDS = (-180.0, -60.0, 180.0, 75.0)
COUNTRIES, COASTAL, IN_COUNTRIES = 150, 1_500, 150_000
BLOCKS, BESIDE = 5, 1e-5


def hard_variants(sets: Iterable[PointSet]) -> Iterator[Variant]:
    """Ways of the sets, and rows of points that are drawn."""
    for one in sets:
        if one.crs == "EPSG:4326" and not (one.step or one.resolution):
            ways = cache(partial(_ways, one))
            yield from _rounded_rows(f"{one.name}, ways", ways, one.bounds)
    yield from _rounded_rows("towns", _towns, CITIES["city-towns"], decimals=(2, 3))
    traces = cache(_traces)
    for resolution in (None, "1e-5"):
        yield Variant(
            name="traces" + (", declared" if resolution else ""),
            points=lambda: traces().round(5),
            domain=psd.Domain(bounds=TRACE_BOUNDS, coordinate_resolution=resolution),
        )
    yield Variant(name="colonies", points=_colonies, domain=psd.Domain(bounds=COLONY_BOUNDS))
    yield Variant(
        name="wards",
        points=partial(_in_towns, WARD_BOUNDS, 40, IN_WARDS),
        domain=psd.Domain(bounds=WARD_BOUNDS),
        asked=partial(_cells_around, WARDS, WARD_BOUNDS),
    )
    streets = psd.Domain(bounds=CITIES["city-streets"])
    for number in REGIONS:
        yield Variant(
            name=f"streets, {number} regions",
            points=_streets,
            domain=streets,
            regions=partial(_cells_around, number, streets.bounds),
        )
    yield Variant(name="streets, declared", points=_streets_rounded, domain=_declared(streets, 4))
    yield Variant(
        name="streets, districts between streets",
        points=_streets,
        domain=streets,
        asked=_between_streets,
    )
    yield Variant(
        name="streets, regions between streets",
        points=_streets,
        domain=streets,
        regions=_between_streets,
    )
    yield Variant(
        name="countries",
        points=_beside_borders,
        domain=psd.Domain(bounds=COUNTRY_BOUNDS),
        asked=partial(_cells_around, COUNTRIES, COUNTRY_BOUNDS),
    )


def _rounded_rows(
    name: str,
    points: Callable[[], Points],
    bounds: Bounds,
    decimals: Iterable[int] = DECIMALS,
) -> Iterator[Variant]:
    """Points as they are, and rounded: with the resolution declared or not, and with regions."""
    domain = psd.Domain(bounds=bounds)
    yield Variant(name=name, points=points, domain=domain)
    for digits in decimals:
        rounded = lambda digits=digits: np.round(points(), digits)  # noqa: E731
        step, text = 10.0**-digits, f"{name}, {digits} decimals"
        yield Variant(name=text, points=rounded, domain=domain, step=step)
        yield Variant(name=f"{text}, declared", points=rounded, domain=_declared(domain, digits))
        for number in REGIONS:
            yield Variant(
                name=f"{text}, {number} regions",
                points=rounded,
                domain=domain,
                step=step,
                regions=partial(_cells_around, number, bounds),
            )


def _declared(domain: psd.Domain, digits: int) -> psd.Domain:
    """The same bounds with a declared resolution."""
    return psd.Domain(bounds=domain.bounds, coordinate_resolution=f"1e-{digits}")


def _ways(one: PointSet) -> Points:
    """Points along ways: segments between neighbours among some points of a set."""
    random = np.random.default_rng(SEED)
    corner, size = corner_and_size(one.bounds)
    places = np.unique(one.inside, axis=0)
    nodes = places[random.choice(len(places), min(JUNCTIONS, len(places)), replace=False)]
    near = np.asarray(cKDTree((nodes - corner) / size).query((nodes - corner) / size, k=3)[1])
    ends = np.stack([np.repeat(np.arange(len(nodes)), 2), near[:, 1:].ravel()], axis=1)
    length = np.linalg.norm((nodes[ends[:, 0]] - nodes[ends[:, 1]]) / size, axis=1)
    # Weights by length and, as traffic has, by a heavy tail.
    weight = np.minimum(length, LONGEST) * random.pareto(1.2, len(ends))
    way = random.choice(len(ends), ON_WAYS, p=weight / weight.sum())
    share = random.random((ON_WAYS, 1))
    points: Points = nodes[ends[way, 0]] * (1 - share) + nodes[ends[way, 1]] * share
    return points


def _in_towns(bounds: Bounds, towns: int, size: int) -> Points:
    """Points in towns."""
    return draw_towns(bounds, np.random.default_rng(SEED), towns=towns, size=size)


def _towns() -> Points:
    """Points of the made-up country."""
    return rows_of_city("city-towns")[["lon", "lat"]].to_numpy(float)


def _streets() -> Points:
    """Points of the made-up city on streets."""
    return rows_of_city("city-streets")[["lon", "lat"]].to_numpy(float)


def _streets_rounded() -> Points:
    """The same with four decimals."""
    return _streets().round(4)


def _traces() -> Points:
    """Positions along roads that bend, a few metres beside them."""
    random = np.random.default_rng(SEED)
    corner, size = corner_and_size(TRACE_BOUNDS)
    heading = random.uniform(0, 2 * np.pi, (ROADS, 1)) + random.normal(0, 0.3, (ROADS, CORNERS))
    steps = 0.04 * np.stack([np.cos(heading), np.sin(heading)], axis=2)
    roads = random.random((ROADS, 1, 2)) + np.cumsum(steps, axis=1)
    weight = random.pareto(1.5, ROADS) + 0.1
    road = random.choice(ROADS, ON_ROADS, p=weight / weight.sum())
    piece, share = random.integers(0, CORNERS - 1, ON_ROADS), random.random((ON_ROADS, 1))
    xy = corner + size * (roads[road, piece] * (1 - share) + roads[road, piece + 1] * share)
    xy += random.normal(0, JITTER, xy.shape)
    inside: Points = xy[((xy >= corner) & (xy < corner + size)).all(axis=1)]
    return inside


def _colonies() -> Points:
    """Four fifths of the points at three places, the others anywhere."""
    random = np.random.default_rng(SEED)
    corner, size = corner_and_size(COLONY_BOUNDS)
    xy = random.random((20_000, 2))
    places = np.array([[0.3127, 0.4236], [0.5671, 0.7783], [0.8314, 0.1379]])
    chosen = places[random.integers(0, 3, 16_000)] + random.normal(0, 5e-4, (16_000, 2))
    xy[:16_000] = chosen
    return corner + size * xy


def _cells_around(number: int, bounds: Bounds) -> gpd.GeoDataFrame:
    """Polygons around random public seeds, clipped to the bounds."""
    corner, size = corner_and_size(bounds)
    seeds = corner + size * np.random.default_rng(SEED + number).random((number, 2))
    box = shapely.box(*bounds)
    cells = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=box)
    return _named(shapely.intersection(shapely.get_parts(cells), box))


def _between_streets() -> gpd.GeoDataFrame:
    """Districts whose borders are streets: rectangles between some of the streets."""
    west, south, east, north = CITIES["city-streets"]
    xy, random = _streets(), np.random.default_rng(SEED)
    sides = []
    for axis, (low, high) in enumerate(((west, east), (south, north))):
        # Streets are the values that many points have, of which some are taken. Borders run beside
        # them: no record lies on one.
        values, count = np.unique(xy[:, axis], return_counts=True)
        streets = values[count > 50]
        chosen = np.quantile(streets, np.arange(1, BLOCKS) / BLOCKS, method="nearest")
        chosen = chosen + random.choice([-BESIDE, BESIDE], len(chosen))
        sides.append(np.concatenate([[low], chosen, [high]]))
    x, y = sides
    boxes = [
        shapely.box(x[i], y[j], x[i + 1], y[j + 1]) for j in range(BLOCKS) for i in range(BLOCKS)
    ]
    return _named(np.array(boxes, object))


def _beside_borders() -> Points:
    """Points in towns, most of which lie beside a border of the countries that are asked about."""
    random = np.random.default_rng(SEED)
    corner, size = corner_and_size(COUNTRY_BOUNDS)
    lines = shapely.boundary(_cells_around(COUNTRIES, COUNTRY_BOUNDS).geometry.to_numpy())
    line = lines[random.integers(0, COUNTRIES, COASTAL)]
    place = shapely.line_interpolate_point(line, random.random(COASTAL), normalized=True)
    towns = shapely.get_coordinates(place) + random.normal(0, 0.4, (COASTAL, 2))
    weight = random.pareto(1.1, COASTAL) + 0.05
    town = random.choice(COASTAL, IN_COUNTRIES, p=weight / weight.sum())
    xy = towns[town] + random.normal(0, 0.15, (IN_COUNTRIES, 2))
    inside: Points = xy[((xy >= corner) & (xy < corner + size)).all(axis=1)]
    return inside


def _named(shapes: np.ndarray) -> gpd.GeoDataFrame:
    """Polygons with names."""
    names = [f"d{number:03d}" for number in range(len(shapes))]
    return gpd.GeoDataFrame({"district": names}, geometry=shapes, crs="EPSG:4326")
