"""1,000 districts on 100,000 leaves with both errors, beside an overlay of districts and leaves.

    python lab/bench_polygons.py [--districts 1000] [--size 320] [--peer 50]

Districts are Voronoi cells whose lines were divided and bent, so that neighbours share them; they
tile the domain. The overlay is the answer without errors that geopandas alone gives; it gets some
of the districts and its time is scaled up. Times are CPU seconds. Exit code 1 if a view of all
districts takes longer than the limit, or if an answer is not that of the overlay.
"""

import sys
import warnings
from functools import partial

import geopandas as gpd
import numpy as np
import shapely
from common import study, timed

import psd
from psd.release.post_processing import DENSITIES, PostProcessing
from psd.space.covariate import Covariate
from support.releases import changed

LIMIT = 15.0
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
WAVES = (2, 7, 25, 90, 300)


def release(size: int) -> psd.Release:
    """Release of a grid with the counts of a few towns, and a covariate."""
    random = np.random.default_rng(1)
    x, y = np.meshgrid(*[(np.arange(size) + 0.5) / size] * 2)
    towns = random.random((30, 2))
    near = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) * 300) for a, b in towns)
    counts = random.poisson(40 * near).astype(np.int64) + random.integers(-3, 4, (size, size))
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(DOMAIN, size), counts, 1.0, domain=DOMAIN
    )
    land = Covariate(domain=DOMAIN, raster=random.integers(0, 1000, (1024, 1024)).astype(np.uint16))
    return changed(made, covariate=land)


def bent(places: np.ndarray) -> np.ndarray:
    """Places of the unit square moved by waves that do not fold it, those on its edge along it."""
    x, y = places.T
    room = 16 * x * (1 - x) * y * (1 - y)
    moved = [
        sum(room * np.sin(2 * np.pi * f * a + 3 * f) / (60 * f) for f in WAVES) for a in (y, x)
    ]
    return places + np.stack(moved, axis=1)


def districts(number: int, domain: psd.Domain = DOMAIN) -> gpd.GeoDataFrame:
    """Tiles of a domain with some 200 vertices each."""
    seeds = shapely.MultiPoint(np.random.default_rng(2).random((number, 2)))
    square = shapely.box(0, 0, 1, 1)
    cells = shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=square))
    cells = shapely.segmentize(shapely.intersection(cells, square), 0.02 / np.sqrt(number))
    corner, size = np.array(domain.bounds[:2]), np.array([domain.width, domain.height])
    shapes = shapely.transform(cells, lambda places: corner + bent(places) * size)
    return gpd.GeoDataFrame({"name": range(number)}, geometry=shapes, crs=domain.crs)


def overlay(made: psd.Release, some: gpd.GeoDataFrame) -> np.ndarray:
    """Counts of leaves times covered areas, by geopandas."""
    leaves = made.to_geopandas()[["estimate", "geometry"]]
    leaves["whole"] = leaves.area.to_numpy()
    parts = gpd.overlay(some, leaves, how="intersection", keep_geom_type=True)
    share = parts["estimate"] * parts.area.to_numpy() / parts["whole"]
    return share.groupby(parts["name"]).sum().reindex(some["name"], fill_value=0.0).to_numpy()


def main() -> int:
    warnings.filterwarnings("ignore", "Geometry is in a geographic CRS")  # areas cancel
    parser = study(__doc__)
    parser.add_argument("--districts", type=int, default=1000)
    parser.add_argument("--size", type=int, default=320, help="columns and rows of leaves")
    parser.add_argument("--peer", type=int, default=50, help="districts for the overlay")
    options = parser.parse_args()
    made, regions = release(options.size), districts(options.districts)
    vertices = int(shapely.get_num_coordinates(regions.geometry.array).sum())
    print(f"{len(regions):,} districts of {vertices:,} vertices on {options.size**2:,} leaves\n")
    print("| answered by | regions | seconds | of the limit 15 s |\n| --- | --- | --- | --- |")
    slowest, estimates = 0.0, {}
    for density in DENSITIES:
        for crs in (DOMAIN.crs, "EPSG:5179"):
            viewed = changed(made, post_processing=PostProcessing(density=density))
            _ = viewed.index.fit, viewed.index.fit.density, viewed.index.fit.dispersion
            given = regions.to_crs(crs)
            seconds, answers = timed(partial(viewed.query, given))
            estimates[density, crs] = answers["estimate"].to_numpy()
            slowest = max(slowest, seconds)
            ratio = f"{seconds / LIMIT:.3f}"
            print(
                f"| psd, {density}, both errors | {len(given)} in {crs} | {seconds:.2f} | {ratio} |"
            )
    some = regions.iloc[: options.peer]
    seconds, peer = timed(lambda: overlay(made, some))
    seconds *= len(regions) / len(some)
    print(f"| geopandas.overlay, no errors | {len(some)}, scaled up | {seconds:.1f} | |")
    ours = estimates["uniform", DOMAIN.crs][: len(some)]
    apart = np.abs(ours - peer).max() / made.total
    print(f"\nlargest difference from the overlay: {apart:.1e} of the total")
    return 0 if slowest <= LIMIT and apart < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
