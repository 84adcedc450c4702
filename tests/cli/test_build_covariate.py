"""psd build --covariate: a public density, from the command line to the answers."""

import csv
import io
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import BOUNDS, CERTAIN, SQUARE, cli, passes, write_points

POINTS = [(-3 + 0.1 * i, -3 + 0.05 * i) for i in range(20)]


@pytest.fixture
def points(tmp_path):
    return write_points(tmp_path / "points.csv", POINTS)


def polygons(path, **columns):
    """The west in two parts, of which the second may weigh more."""
    shapes = [shapely.box(-4, -4, 0, 0), shapely.box(-4, 0, 0, 4)]
    gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326").to_file(path)
    return path


def estimates(release, *boxes):
    options = [part for box in boxes for part in ("--box", *box)]
    table = csv.DictReader(io.StringIO(passes("query", release, *options, "--format", "csv")))
    return [float(row["estimate"]) for row in table]


@pytest.fixture
def release(tmp_path, points):
    out, land = tmp_path / "r.psd.parquet", polygons(tmp_path / "land.gpkg", people=[1, 3])
    options = ("--covariate", f"{land}:column=people,size=32")
    passes("build", points, "-o", out, *CERTAIN, "--set", "height=0", *BOUNDS, *options)
    return out


def test_answers_follow_the_covariate(release):
    boxes = [(-4, -4, 0, 0), (-4, 0, 0, 4), (0, -4, 4, 4), (-4, -4, -2, 0), (-4, -4, 4, 4)]
    assert estimates(release, *boxes) == pytest.approx([5, 15, 0, 2.5, 20], abs=0.1)


def test_the_release_needs_no_covariate_any_more(release, tmp_path):
    (tmp_path / "land.gpkg").unlink()
    loaded = psd.Release.load(release)
    assert loaded.covariate.raster.shape == (32, 32)
    assert b"land.gpkg" not in release.read_bytes()
    assert estimates(release, (0, -4, 4, 4)) == [0]


def test_info_shows_it(release, tmp_path, points):
    facts = json.loads(passes("info", release, "--format", "json"))
    assert facts["covariate"] == "32 x 32 cells, 50.0% of them not empty"
    assert facts["density"] == "covariate"
    assert facts["covariate"] in passes("info", release)
    plain = tmp_path / "plain.psd.parquet"
    passes("build", points, "-o", plain, *CERTAIN, "--set", "height=0", *BOUNDS)
    assert json.loads(passes("info", plain, "--format", "json"))["covariate"] == "none"


def test_another_density_can_be_asked_for(tmp_path, points):
    out, land = tmp_path / "r.psd.parquet", polygons(tmp_path / "land.geojson")
    options = ("--covariate", land, "--set", "density=uniform", "--set", "height=0")
    passes("build", points, "-o", out, *CERTAIN, *BOUNDS, *options)
    assert estimates(out, (0, -4, 4, 4)) == pytest.approx([10], abs=0.1)
    assert psd.Release.load(out).covariate is not None


def test_the_default_size(tmp_path, points):
    out, land = tmp_path / "r.psd.parquet", polygons(tmp_path / "land.parquet.gpkg")
    passes("build", points, "-o", out, *CERTAIN, *BOUNDS, "--covariate", land)
    assert psd.Release.load(out).covariate.raster.shape == (1024, 1024)


def test_a_cascade_is_steered(tmp_path, points):
    np.save(tmp_path / "land.npy", np.array([[1, 0], [1, 0]]))
    trees = []
    for options in ((), ("--covariate", tmp_path / "land.npy")):
        out = tmp_path / f"{len(options)}.psd.parquet"
        build = ("--method", "cascade", "--epsilon", 1000, *BOUNDS)
        passes("build", points, "-o", out, *build, *options)
        trees.append(psd.Release.load(out).tree)
    east = [tree.boxes[tree.boxes[:, 0] >= 2**19] for tree in trees]
    assert len(east[1]) == 2 < len(east[0])


def test_python_takes_polygons_or_a_covariate():
    table = pd.DataFrame(POINTS, columns=["lon", "lat"])
    west = gpd.GeoDataFrame(geometry=[shapely.box(-4, -4, 0, 4)], crs="EPSG:4326")
    options = {"domain": SQUARE, "epsilon": 1000, "method": psd.decompositions.Quadtree(height=0)}
    made = psd.Covariate.from_polygons(west, SQUARE, size=16)
    for given in (west, west.geometry, made):
        release = psd.build(table, covariate=given, **options)
        assert release.post_processing.density == "covariate"
        assert release.query([(0, -4, 4, 4)])["estimate"].tolist() == [0]
    other = psd.Domain(bounds=(-4, -4, 4, 5))
    with pytest.raises(psd.PsdError, match="the domain of the release"):
        psd.build(table, covariate=made, **{**options, "domain": other})
    with pytest.raises(psd.PsdError, match=r"must be a psd\.Covariate"):
        psd.build(table, covariate=[1], **options)


def test_missing_rasterio_has_an_exit_code_of_its_own(tmp_path, points, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rasterio", None)
    (tmp_path / "land.tif").write_bytes(b"II*\0")
    outcome = cli(
        "build", points, "-o", tmp_path / "r.psd.parquet", *CERTAIN, *BOUNDS,
        "--covariate", tmp_path / "land.tif",
    )  # fmt: skip
    assert outcome.code == 7
    assert "psd-publisher[raster]" in outcome.err
