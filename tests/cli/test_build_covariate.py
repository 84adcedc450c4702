"""psd build --covariate: a public density, from the command line to the answers."""

import sys

import geopandas as gpd
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import BOUNDS, CERTAIN, SQUARE, as_json, as_table, cli, passes, write_points

POINTS = [(-3 + 0.1 * i, -3 + 0.05 * i) for i in range(20)]
BUILD = ("build points.csv -o r.psd.parquet", *CERTAIN, *BOUNDS)
FLAT = (*BUILD, "--set", "height=0")


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", POINTS)


def polygons(path, **columns):
    """The west in two parts, of which the second may weigh more."""
    shapes = [shapely.box(-4, -4, 0, 0), shapely.box(-4, 0, 0, 4)]
    gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326").to_file(path)
    return path


def estimates(*boxes):
    options = [part for box in boxes for part in ("--box", *box)]
    return as_table("query r.psd.parquet", *options)["estimate"].tolist()


def test_answers_follow_the_covariate_which_the_release_needs_no_more(here):
    land = polygons(here / "land.gpkg", people=[1, 3])
    passes(
        *FLAT, "--covariate", f"{land}", "--covariate-column", "people", "--covariate-size", "32"
    )
    land.unlink()
    boxes = [(-4, -4, 0, 0), (-4, 0, 0, 4), (0, -4, 4, 4), (-4, -4, -2, 0), (-4, -4, 4, 4)]
    assert estimates(*boxes) == pytest.approx([5, 15, 0, 2.5, 20], abs=0.1)
    assert estimates((0, -4, 4, 4)) == [0]
    assert psd.load("r.psd.parquet").record.covariate.raster.shape == (32, 32)
    assert b"land.gpkg" not in (here / "r.psd.parquet").read_bytes()
    facts = as_json("info r.psd.parquet")
    assert facts["covariate"] == "32 x 32 cells, 50.0% of them not empty"
    assert facts["density"] == "covariate"
    assert facts["covariate"] in passes("info r.psd.parquet")
    passes(*FLAT, "--overwrite")
    assert as_json("info r.psd.parquet")["covariate"] == "none"


def test_another_density_the_default_size_and_missing_rasterio(here, monkeypatch):
    land = polygons(here / "land.geojson")
    passes(*FLAT, "--covariate", land, "--density", "uniform")
    assert estimates((0, -4, 4, 4)) == pytest.approx([10], abs=0.1)
    assert psd.load("r.psd.parquet").record.covariate is not None
    monkeypatch.setitem(sys.modules, "rasterio", None)
    (here / "land.tif").write_bytes(b"II*\0")
    outcome = cli(*BUILD, "--overwrite", "--covariate", "land.tif")
    assert outcome.code == 7
    assert ".[raster]" in outcome.err
    passes(*BUILD, "--overwrite", "--covariate", polygons(here / "land.parquet.gpkg"))
    assert psd.load("r.psd.parquet").record.covariate.raster.shape == (1024, 1024)


def test_python_takes_polygons_or_a_covariate():
    table = pd.DataFrame(POINTS, columns=["lon", "lat"])
    west = gpd.GeoDataFrame(geometry=[shapely.box(-4, -4, 0, 4)], crs="EPSG:4326")
    options = {"domain": SQUARE, "epsilon": 1000, "method": psd.decompositions.Quadtree(height=0)}
    made = psd.Covariate.from_polygons(west, SQUARE, size=16)
    for given in (west, west.geometry, made):
        release = psd.build(table, covariate=given, **options)
        assert release.record.post_processing.density == "covariate"
        assert release.query([(0, -4, 4, 4)])["estimate"].tolist() == [0]
    other = psd.Domain(bounds=(-4, -4, 4, 5))
    with pytest.raises(psd.PsdError, match="the domain of the release"):
        psd.build(table, covariate=made, **{**options, "domain": other})
    with pytest.raises(psd.PsdError, match=r"must be a psd\.Covariate"):
        psd.build(table, covariate=[1], **options)
