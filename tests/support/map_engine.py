"""The engine of the map page in node, and releases of every kind that it has to answer."""

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.api.release import Release
from psd.apps.local.aggregation import counted_groups, release_of
from psd.apps.local.campaign_design import design
from psd.apps.web.map_arrays import cut_arrays, pack_arrays, release_arrays, release_numbers
from psd.apps.web.map_cube import cube_arrays, cube_numbers
from psd.apps.web.map_outlines import lowest_outlines
from psd.apps.web.map_page import ENGINE_SCRIPTS
from psd.decompositions.quadtree import Quadtree
from psd.estimation.cube import fit_cube
from psd.release.post_processing import PostProcessing
from psd.space.covariate import Covariate
from psd.testing import SeededSampler
from support.cubes import cube, town
from support.local import counted_places, places

BOUNDS = (126.4, 37.0, 127.6, 38.0)
DOMAIN = psd.Domain(bounds=BOUNDS)
RUNNER = Path(__file__).with_name("run_map_engine.js")
ASSETS = files("psd.apps.web.assets")
COLUMNS = ["estimate", "perturbation_error", "nonuniformity_error", "error", "lower", "upper"]
NAMES = ["estimate", "perturbation", "nonuniformity", "error", "lower", "upper"]


def points(size=4000, seed=1):
    """Two towns and the country around them."""
    random = np.random.default_rng(seed)
    town = random.normal([126.9, 37.5], [0.05, 0.04], (size // 2, 2))
    valley = random.normal([127.2, 37.7], [0.1, 0.02], (size // 4, 2))
    country = np.column_stack(
        [random.uniform(126.4, 127.6, size // 4), random.uniform(37, 38, size // 4)]
    )
    return pd.DataFrame(np.concatenate([town, valley, country]), columns=["lon", "lat"])


def fares(size=4000, decimals=None):
    """Points with a fare that grows to the east, and a balance of any sign."""
    rows = points(size) if decimals is None else points(size).round(decimals)
    noise = np.random.default_rng(9).normal(0, 3, len(rows))
    return rows.assign(fare=10 + 40 * (rows.lon - 126.4) + noise, balance=5 - 2 * noise)


VALUES = {"values": {"fare": (0, 60), "balance": (-10, 15)}}


def built(data=None, *, domain=DOMAIN, method="auto", **options):
    """Release with seeded noise."""
    data = points() if data is None else data
    return psd.build(
        data, domain=domain, epsilon="1", method=method, sampler=SeededSampler(7), **options
    )


def drawn(release):
    """The same release, or series, as if its noise had not come from a seed."""
    if release.slices is not None:
        releases = tuple(replace(each, source="curator") for each in release.record.releases)
        return Release(replace(release.record, releases=releases))
    return type(release)(replace(release.record, source="curator"))


def viewed(release, **options):
    return release.replace(post_processing=PostProcessing(**options))


def of_raster(**options):
    weights = np.random.default_rng(2).random((90, 130)) ** 3
    weights[:30] = 0
    return built(
        method="cascade", covariate=Covariate.from_raster(weights, DOMAIN, size=128), **options
    )


def of_boundary():
    shape = shapely.Point(127, 37.5).buffer(0.4)
    return built(method="cascade", boundary=gpd.GeoSeries([shape], crs=4326))


def of_metres():
    rows = points() * [100_000, 110_000]
    domain = psd.Domain(bounds=(12.64e6, 4.07e6, 12.76e6, 4.18e6), crs="EPSG:3857")
    return built(rows.set_axis(["x", "y"], axis=1), domain=domain, x="x", y="y")


def of_resolution():
    return built(
        points().round(2), domain=psd.Domain(bounds=BOUNDS, coordinate_resolution="0.01"),
        method="cascade",
    )  # fmt: skip


def of_streets():
    release = built(points(60_000).round(2), method=Quadtree(height=7))
    assert release.index.fit.line_deviation is not None
    return release


def of_columns():
    domain = psd.Domain(bounds=DOMAIN.bounds, crs=DOMAIN.crs, lattice=(48, 40))
    release = built(points(60_000), domain=domain, method=Quadtree(height=4))
    assert release.index.fit.column_records is not None
    return release


def of_slices():
    rows = points().assign(time=pd.Timestamp("2024-02-05"))
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    series = psd.build(
        rows, slices=months, time="time", domain=DOMAIN, epsilon="1", sampler=SeededSampler(7)
    )
    return series["2024-02"]


def of_devices():
    """Release of a local campaign whose counts of reports come from a seed."""
    one, random = design((0, 0, 8, 4), 2, 3000, rounds=1), np.random.default_rng(4)
    counts = [
        replace(each, reports=3000, support=random.integers(400, 2600, len(each.support)))
        for each in counted_places(one, *places(3000))
    ]
    return release_of(one, counted_groups(one, counts))


def of_tiles():
    return of_zooms("9,10,11", method="cascade")


def of_zooms(cells, **options):
    """Release of tiles of some zooms, in metres."""
    rows = (points() * [100_000, 110_000]).set_axis(["x", "y"], axis=1)
    domain = psd.Domain(bounds=(12.64e6, 4.07e6, 12.76e6, 4.18e6), crs="EPSG:3857")
    regions = psd.regions.CellRegions(kind="tiles", cells=cells)
    return built(rows, domain=domain, x="x", y="y", regions=regions, **options)


def of_wards(data=None, level="id", gaps="elsewhere", **options):
    """Release of polygons of unequal size, and of the area between them or without it."""
    random = np.random.default_rng(7)
    seeds = shapely.multipoints(
        np.column_stack([random.uniform(126, 128, 40), random.uniform(36.7, 38.3, 40)])
    )
    area = shapely.box(*BOUNDS)
    cells = shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=area))
    wards = [each for each in shapely.intersection(cells, area) if each.area > 0][:20]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "wards.gpkg")
        ids = [f"w{number}" for number in range(len(wards))]
        gpd.GeoDataFrame({level: ids}, geometry=wards, crs=4326).to_file(path)
        regions = psd.regions.RegionFiles(paths=(path,), ids=(level,), gaps=gaps)
        return built(data, regions=regions, method="cascade", **options)


def of_rounded_wards():
    release = of_wards(points(60_000).round(2))
    assert release.index.fit.line_deviation is not None
    return release


def cube_of_wards(gaps="elsewhere", **options):
    """Cube of polygons of unequal size in four districts, with a part in no ward."""
    random = np.random.default_rng(7)
    area, seeds = shapely.box(0, 0, 16, 16), shapely.MultiPoint(random.uniform(-1, 17, (30, 2)))
    cells = shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=area))
    wards = [each for each in shapely.intersection(cells, area) if each.area > 0][:24]
    rows = {"ward": [f"w{n}" for n in range(24)], "district": [f"d{n // 6}" for n in range(24)]}
    table = gpd.GeoDataFrame(rows, geometry=wards, crs=3857)
    how = {"regions": table, "region_id": "ward", "region_parent": "district", "gaps": gaps}
    return cube(**{"data": town(20_000), **how, **options})


FARES = {"data": fares(), **VALUES}
KINDS = {
    "auto": built,
    "quadtree": lambda: built(method=Quadtree(height=6)),
    "grid": lambda: built(method="grid"),
    "kd-standard": lambda: built(method="kd-standard"),
    "cascade": lambda: built(method="cascade"),
    "hilbert-rtree": lambda: built(method="hilbert-rtree"),
    "signed": lambda: viewed(built(method="cascade"), estimate="signed"),
    "signed and smooth": lambda: viewed(built(), estimate="signed", density="smooth"),
    "least squares and pruned": lambda: viewed(built(method=Quadtree(height=6)), prune=2),
    "covariate": of_raster,
    "boundary": of_boundary,
    "metres": of_metres,
    "resolution": of_resolution,
    "streets": of_streets,
    "columns": of_columns,
    "slice": of_slices,
    "devices": of_devices,
    "tiles": of_tiles,
    "wards": of_wards,
    "wards, rounded": of_rounded_wards,
    "integers of wards": lambda: of_wards(estimate="integer"),
    "values": lambda: built(**FARES),
    "values of a cascade, Gaussian": lambda: built(method="cascade", delta="1e-6", **FARES),
    "values of streets": lambda: built(method=Quadtree(height=7), data=fares(60_000, 2), **VALUES),
    "values of wards": lambda: of_wards(data=fares(), **VALUES),
    "values of a covariate": lambda: of_raster(data=fares(), **VALUES),
    "signed values": lambda: viewed(built(**FARES), estimate="signed"),
}
"""Kinds of releases, and how one is made."""


def random_boxes(release, size, random):
    west, south, east, north = release.domain.bounds
    half = 10 ** -random.uniform(0.2, 2.2, (size, 2)) / 2
    middle = random.random((size, 2))
    low, high = np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
    corner, sides = np.array([west, south]), np.array([east - west, north - south])
    return np.concatenate([corner + low * sides, corner + high * sides], axis=1)


def random_polygons(release, size, random):
    """Stars and boxes around a point inside the domain, some beyond its bounds, some with holes."""
    west, south, east, north = release.domain.bounds
    sides, shapes = np.array([east - west, north - south]), []
    while len(shapes) < size:
        angle = np.sort(random.random(random.integers(3, 12))) * 2 * np.pi
        reach = (0.1 + 0.9 * random.random((len(angle), 1))) * 10 ** -random.uniform(0.2, 2.0)
        middle = [west, south] + random.random(2) * sides
        star = np.column_stack([np.cos(angle), np.sin(angle)]) * reach * sides
        shape = shapely.Polygon(middle + star)
        if len(shapes) % 4 == 1:
            shape = shape.envelope
        if len(shapes) % 3 == 0 and shape.is_valid:
            shape = shape.difference(shapely.affinity.scale(shape, 0.3, 0.3))
        inside = shape.is_valid and shape.intersection(shapely.box(*release.domain.bounds)).area > 0
        if inside and shape.geom_type == "Polygon":
            shapes.append(shape)
    return shapes


def random_strips(release, box, random):
    """Boxes side by side that make up a box."""
    west, south, east, north = box
    cuts = np.sort(west + (east - west) * random.random(random.integers(1, 4)))
    edges = [west, *cuts, east]
    return np.array([(a, south, b, north) for a, b in pairwise(edges)])


def box_of(sides):
    return {"box": [float(side) for side in sides]}


def polygon_of(shape):
    rings = [shape.exterior, *shape.interiors]
    return {"polygons": [[np.array(ring.coords).tolist() for ring in rings]]}


def run_engine(folder, release, queries, pairs=(), level=None):
    """Answers of the engine to lists of shapes, one column each; and what else it computes."""
    arrays = release_arrays(release) if level is None else cut_arrays(release, level)
    given = {"outlines": _exact_outlines(release), "pairs": list(pairs)}
    return _run(folder, arrays, release_numbers(release, level=level), queries, **given)


def run_cube(folder, cube, queries):
    """Answers of the engine to shapes in windows of a cube, and counts of all cells in these.

    queries: of each the shape, and the numbers of the cells of each axis.
    """
    fit = fit_cube(cube.record)
    windows = [[list(map(int, cells)) for cells in axes] for _, axes in queries]
    shapes = [[shape] for shape, _ in queries]
    outlines = _exact_outlines(Release(cube.record.plane))
    given = {"windows": windows, "outlines": outlines}
    return _run(folder, cube_arrays(fit), cube_numbers(fit), shapes, **given)


def _exact_outlines(release):
    """Outlines of the lowest regions, if a release has regions."""
    exact = lowest_outlines(release) if release.levels else {}
    return {name: values.tolist() for name, values in exact.items()}


def _run(folder, arrays, meta, queries, *, outlines=None, pairs=(), windows=()):
    """Run the engine in node."""
    if shutil.which("node") is None:
        if os.environ.get("PSD_REQUIRE_NODE"):
            pytest.fail("node is not installed: apt-get install nodejs")
        pytest.skip("node is not installed")
    packed = pack_arrays(arrays)
    given = {
        "outlines": outlines or {},
        "text": packed.text,
        "directory": packed.directory,
        "meta": meta,
        "queries": queries,
        "pairs": list(pairs),
        "windows": list(windows),
        "z": -NormalDist().inv_cdf(0.025),
    }
    (folder / "queries.json").write_text(json.dumps(given))
    engine = "\n".join(ASSETS.joinpath(name).read_text("utf-8") for name in ENGINE_SCRIPTS)
    (folder / "engine.js").write_text(engine, "utf-8")
    paths = [str(folder / name) for name in ("engine.js", "queries.json", "answers.json")]
    done = subprocess.run(
        ["node", str(RUNNER), *paths], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "answers.json").read_text())
    answers = np.array([[answer[name] for name in NAMES] for answer in result["answers"]])
    return answers, result


def stated(answers):
    """Columns of answers of the library, or of one total."""
    if hasattr(answers, "columns"):
        return answers[COLUMNS].to_numpy(float)
    return np.array([[getattr(answers, name) for name in COLUMNS]])


def joint_totals(release, unions):
    """Totals of unions of disjoint regions; all regions are answered together."""
    joint = release.query(np.concatenate(unions)).joint()
    owner = np.repeat(np.arange(len(unions)), [len(union) for union in unions])
    totals = [joint.combine((owner == number).astype(float)) for number in range(len(unions))]
    return np.concatenate([stated(total) for total in totals])
