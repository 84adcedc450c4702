"""Ten million points in two thousand polygons: the time to assign each to its region.

    python lab/bench_regions.py [--points 1e7] [--regions 2000] [--towns]
        [--builds 3]

Regions are Voronoi cells whose lines were divided and bent, so that neighbours share them; with
`--towns` nine in ten points and regions are near thirty towns. Beside it stand the time of the
lattice cells of the same points, and that of GEOS for some of them. With `--builds` the same points
are built with regions and without, from a CSV and a Parquet file in turn, and the shortest times
are compared. Times are CPU seconds. Exit code 1 if the assignment
takes longer than the limit, or differs from that of GEOS, or a build takes longer with regions than
the limit times that without.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import geopandas as gpd
import numpy as np
import pyarrow as pa
import shapely
from common import cpu_seconds, study, timed
from pyarrow import csv
from pyarrow import parquet as pq

import psd
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

LIMIT = 3.0  # seconds for ten million points
RATIO = 4.0  # of the time of a build with regions to that of the same build without
BATCH, PEER = 2**16, 200_000
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))


def positions(number: int, seed: int, *, towns: bool) -> np.ndarray:
    """Points of the unit square, nine in ten near towns if there are any."""
    rng = np.random.default_rng(seed)
    xy = rng.random((number, 2))
    if towns:
        centres = np.random.default_rng(9).random((30, 2))
        near = rng.random(number) < 0.9
        xy[near] = centres[rng.integers(0, 30, near.sum())] + rng.normal(0, 0.01, (near.sum(), 2))
    return xy[((xy >= 0) & (xy <= 1)).all(axis=1)]


def hierarchy(number: int, *, towns: bool) -> RegionHierarchy:
    """Tiles of the domain with some 100 vertices each."""
    seeds = shapely.MultiPoint(positions(number, 2, towns=towns))
    square = shapely.box(0, 0, 1, 1)
    cells = np.array(shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=square)))
    cells = shapely.segmentize(shapely.intersection(cells, square), 0.2 / np.sqrt(number))
    west, south, _, _ = DOMAIN.bounds

    def bend(vertices: np.ndarray) -> np.ndarray:
        x, y = vertices.T
        room = x * (1 - x) * y * (1 - y) / 50
        moved = vertices + np.stack([room * np.sin(40 * y), room * np.sin(40 * x)], axis=1)
        return moved * [DOMAIN.width, DOMAIN.height] + [west, south]

    table = gpd.GeoDataFrame(
        {"id": np.arange(len(cells))}, geometry=shapely.transform(cells, bend), crs=DOMAIN.crs
    )
    return hierarchy_from_polygons(table, DOMAIN, ids="id")


def build_seconds(path: Path, regions: RegionHierarchy | None) -> float:
    """Processor time of one build of a file."""
    more = {"domain": DOMAIN} if regions is None else {"regions": regions, "method": "auto"}
    return cpu_seconds(lambda: psd.build(str(path), x="x", y="y", epsilon=1, **more))


def ratio_of_builds(points: np.ndarray, regions: RegionHierarchy, repeats: int) -> float:
    """Print shortest times of builds with regions and without; the larger ratio of two files."""
    table, ratios = pa.table({"x": points[0].round(7), "y": points[1].round(7)}), []
    with TemporaryDirectory() as folder:
        parquet, text = Path(folder, "points.parquet"), Path(folder, "points.csv")
        pq.write_table(table, parquet)
        csv.write_csv(table, text)
        for path in (parquet, text):
            times = [
                [build_seconds(path, each) for each in (None, regions)] for _ in range(repeats)
            ]
            plain, cut = np.min(times, axis=0)
            print(
                f"{path.suffix}: built {plain:.2f} s, with regions {cut:.2f} s, {cut / plain:.2f}"
            )
            ratios.append(cut / plain)
    return max(ratios)


def indexed(number: int, *, towns: bool) -> RegionHierarchy:
    """Regions that have found their first point."""
    regions = hierarchy(number, towns=towns)
    regions.assign(np.array([127.0]), np.array([37.5]))
    return regions


def by_geos(regions: RegionHierarchy, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Numbers of points and of their regions."""
    tree = shapely.STRtree(regions.shapes())
    return tree.query(shapely.points(x, y), predicate="within")


def main() -> int:
    parser = study(__doc__)
    parser.add_argument("--points", type=float, default=1e7)
    parser.add_argument("--regions", type=int, default=2000)
    parser.add_argument("--towns", action="store_true", help="most points near towns")
    parser.add_argument("--builds", type=int, default=0, help="of each file, with regions and not")
    chosen = parser.parse_args()
    spent, regions = timed(lambda: indexed(chosen.regions, towns=chosen.towns))
    print(f"{regions.size:,} regions made and indexed: {spent:.2f} s")
    xy = positions(int(chosen.points), 3, towns=chosen.towns)
    x, y = (xy * [DOMAIN.width, DOMAIN.height] + DOMAIN.bounds[:2]).T.copy()
    x, y = x.clip(DOMAIN.bounds[0], DOMAIN.bounds[2]), y.clip(DOMAIN.bounds[1], DOMAIN.bounds[3])
    parts = [slice(begin, begin + BATCH) for begin in range(0, len(x), BATCH)]
    cells = cpu_seconds(lambda: [DOMAIN.quantise(x[part], y[part]) for part in parts])
    assigned, found = timed(lambda: [regions.assign(x[part], y[part]) for part in parts])
    region = np.concatenate(found)
    print(f"{len(x):,} points: lattice cells {cells:.2f} s, regions {assigned:.2f} s")
    few = slice(0, PEER)
    peer, pairs = timed(lambda: by_geos(regions, x[few], y[few]))
    peer, differs = peer * len(x) / len(x[few]), int((region[few][pairs[0]] != pairs[1]).sum())
    print(f"GEOS, scaled from {PEER:,} points: {peer:.1f} s; {differs} differ")
    ratio = ratio_of_builds(np.stack([x, y]), regions, chosen.builds) if chosen.builds else 0.0
    return int(assigned > LIMIT * len(x) / 1e7 or differs > 0 or ratio > RATIO)


if __name__ == "__main__":
    sys.exit(main())
