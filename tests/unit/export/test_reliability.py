"""Unreliable cells: kept, marked and dropped, in tables and rasters."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import DomainError, ParameterError
from psd.export import treat_unreliable
from psd.statistics.raster import density_raster
from support.trees import grid_release

COUNTS = [[3_000, 0, 2], [40, 2_000, 1], [900, 0, 3]]


@pytest.fixture(scope="module")
def release():
    return grid_release(COUNTS)


def test_a_cell_is_reliable_if_a_query_of_it_is(release):
    table = release.to_geopandas()
    boxes = table.geometry.bounds.to_numpy()
    answers = release.query(boxes).table
    assert table.relative_error.tolist() == pytest.approx(answers.relative_error.tolist())
    assert table.quality.tolist() == answers.quality.tolist()
    assert table.reliable.tolist() == answers.reliable.tolist()
    stricter = release.to_geopandas(threshold=0.01)
    assert (
        stricter.reliable.tolist() == release.query(boxes, threshold=0.01).table.reliable.tolist()
    )
    assert 0 < stricter.reliable.sum() < 9


@pytest.mark.parametrize("ending", ["csv", "gpkg", "parquet"])
def test_marks_and_gaps(release, tmp_path, ending):
    for treatment in ("mark", "drop"):
        path = tmp_path / f"{treatment}.{ending}"
        release.export(path, unreliable=treatment, threshold=0.01)
        table = {
            "csv": lambda path: pd.read_csv(path, keep_default_na=False),
            "gpkg": lambda path: gpd.read_file(path, layer="cells"),
            "parquet": gpd.read_parquet,
        }[ending](path)
        assert set(table.threshold) == {0.01}
        if treatment == "mark":
            assert (table.flag == "u").tolist() == (~table.reliable.astype(bool)).tolist()
            assert len(table) == 9
        else:
            assert table.reliable.astype(bool).all()
            assert len(table) == release.to_geopandas(threshold=0.01).reliable.sum()


def test_rasters(release, tmp_path):
    error = density_raster(release.index.fit, 3, 3).error
    count = density_raster(release.index.fit, 3, 3).count
    reliable = error <= 0.01 * count
    good = error <= 0.001 * count
    limits = (0.001, 0.01)
    assert 0 < reliable.sum() < 9
    release.export(tmp_path / "m.npy", size=(3, 3), unreliable="mark", threshold=limits)
    assert np.load(tmp_path / "m.npy")[3].tolist() == reliable.tolist()
    rank = np.where(good, 1, np.where(reliable, 2, 3))
    assert np.load(tmp_path / "m.npy")[4].tolist() == rank.tolist()
    assert set(rank.ravel()) == {1, 2, 3}
    drop = {"unreliable": "drop", "threshold": 0.01}
    assert release.export(tmp_path / "d.npy", size=(3, 3), **drop) == (~reliable).sum()
    layers = np.load(tmp_path / "d.npy")
    assert np.isnan(layers).tolist() == [(~reliable).tolist()] * 3
    assert layers[0][reliable].tolist() == count[reliable].tolist()


@pytest.mark.deep
def test_images(release, tmp_path):
    import rasterio

    limits = (0.001, 0.01)
    raster = density_raster(release.index.fit, 3, 3)
    reliable = raster.error <= 0.01 * raster.count
    rank = np.where(raster.error <= 0.001 * raster.count, 1, np.where(reliable, 2, 3))
    release.export(tmp_path / "m.tif", size=(3, 3), unreliable="mark", threshold=limits)
    with rasterio.open(tmp_path / "m.tif") as image:
        assert image.descriptions == ("count", "density", "error", "reliable", "quality")
        assert image.read(4).tolist() == reliable.tolist()
        assert image.read(5).tolist() == rank.tolist()
        assert image.tags()["reliable"] == "relative error at most 0.01, and an interval above 0"
        assert "relative error of at most 0.001;" in image.tags()["quality"]
    release.export(tmp_path / "d.tif", size=(3, 3), unreliable="drop", threshold=0.01)
    with rasterio.open(tmp_path / "d.tif") as image:
        assert (image.read_masks(1) > 0).tolist() == reliable.tolist()


BAD_OPTIONS = [
    ("a.csv", {"unreliable": "hide"}, "unreliable must be one of keep, mark, drop"),
    *(
        ("a.csv", {"threshold": value}, "threshold must be above 0")
        for value in (0, float("nan"), float("inf"), "0.3")
    ),
    ("a.csv", {"threshold": (0.3, 0.12)}, "the limit of good estimates and then that of"),
    ("a.csv", {"threshold": (0.1, 0.2, 0.3)}, "threshold must be one or two"),
    ("a.csv", {"crs": "EPSG:4326"}, "crs must be EPSG:3857, that of the release, or left out"),
    ("a.geojson", {"crs": "EPSG:3857"}, "crs must be EPSG:4326, or left out"),
    ("a.npy", {"crs": "EPSG:3857"}, "crs must be left out if output is a raster"),
    ("a.npy", {"band": "count"}, "band must be left out unless output is a GeoTIFF"),
    ("a.gpkg", {"band": "count"}, "band must be left out unless output is a GeoTIFF"),
    *(
        ("a.gpkg", {"crs": crs}, "crs|CRS")  # to which nothing can be transformed
        for crs in ("nowhere", "EPSG:5802", 'LOCAL_CS["site",UNIT["metre",1]]')
    ),
]


@pytest.mark.deep
def test_another_band_is_refused(release, tmp_path):
    with pytest.raises(ParameterError, match="band must be one of count, density, error, classes"):
        release.export(tmp_path / "a.tif", band="red")


def test_what_is_refused(release, tmp_path, subtests):
    for name, options, words in BAD_OPTIONS:
        with subtests.test(f"{name} {options}"):
            with pytest.raises((DomainError, ParameterError), match=words):
                release.export(tmp_path / name, **options)
            assert list(tmp_path.iterdir()) == []


def test_levels_tile_the_domain(release):
    assert len(release.to_geopandas(level=0)) == 1
    deepest = int(release.tree.level.max())
    assert release.to_geopandas(level=deepest).equals(release.to_geopandas())
    for level in range(deepest + 1):
        table = release.to_geopandas(level=level)
        assert table.estimate.sum() == pytest.approx(release.total)
    for level in (-1, deepest + 1, True, "1", 0.5):
        with pytest.raises(ParameterError, match="level must be an integer from 0"):
            release.to_geopandas(level=level)
    with pytest.raises(ParameterError, match="level must be left out"):
        release.to_geopandas("all", level=0)


def test_levels_are_exported(release, tmp_path):
    release.export(tmp_path / "a.csv", level=0)
    table = pd.read_csv(tmp_path / "a.csv")
    assert table["estimate"].tolist() == pytest.approx([release.total])
    with pytest.raises(ParameterError, match="level must be left out if output is a raster"):
        release.export(tmp_path / "a.npy", level=0)


def test_metadata_bounds_and_crs(release):
    assert release.metadata["epsilon"] == str(release.epsilon)
    assert release.metadata["digest"] == release.digest
    assert release.domain.bounds == release.domain.bounds
    assert release.domain.crs == release.domain.crs
    assert psd.Release.metadata.__doc__


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "gpkg", "fgb", "geojson"])
def test_an_infinite_relative_error_is_infinite_or_has_no_value(release, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    release.export(path)
    reader = {"csv": pd.read_csv, "parquet": gpd.read_parquet, "xlsx": pd.read_excel}
    layer = {"layer": "cells"} if ending == "gpkg" else {}
    table = reader.get(ending, gpd.read_file)(path, **layer)
    relative = table.relative_error.astype(float)
    nothing = (table.estimate == 0).to_numpy()
    assert 0 < nothing.sum() < 9
    assert np.isfinite(relative[~nothing]).all()
    values = relative[nothing]
    has_infinity = ending in ("csv", "parquet")
    assert np.isinf(values).all() if has_infinity else values.isna().all()
    if ending == "xlsx":  # a column of numbers, for sums and sorting
        assert table.relative_error.dtype == float
    assert set(table.quality[nothing]) == {"poor"}
    if ending in ("parquet", "gpkg", "geojson"):  # formats with room, not compressed
        assert b"where the estimate is 0" in path.read_bytes()


def test_unreliable_rows_are_kept_marked_or_dropped():
    table = pd.DataFrame({"estimate": [90.0, 2.0], "reliable": [True, False]})
    assert treat_unreliable(table, "keep", 0.3) is table
    assert treat_unreliable(table, "mark", 0.3)["flag"].tolist() == ["", "u"]
    assert treat_unreliable(table, "drop", 0.3)["estimate"].tolist() == [90.0]
