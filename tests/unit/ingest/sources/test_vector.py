"""GeoPackage, Shapefile, FlatGeobuf and GeoJSON: layers, geometries, CRS, and damage."""

import json
import logging
import shutil
import sqlite3
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely

from psd.errors import DomainError, InputDataError
from psd.ingest.sources import Columns, read, vector
from support.batches import DOMAIN, SECRET, one, refused

EVERY = pytest.mark.parametrize("ending", ["gpkg", "shp", "fgb", "geojson"])
LINE = shapely.LineString([(1, 2), (3, 4)])


def points(size=2, crs="EPSG:4326", **columns):
    shapes = [shapely.Point(127 + i / 8, 37.5) for i in range(size)]
    return gpd.GeoDataFrame(
        columns or {"id": [str(i) for i in range(size)]}, geometry=shapes, crs=crs
    )


@EVERY
def test_points_and_users(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    points().to_file(path)
    batch = one(path, user="id")
    found = dict(zip(batch.user.to_pylist(), batch.x.tolist(), strict=True))
    assert found == {"0": 127.0, "1": 127.125}


@EVERY
def test_columns_that_are_missing(tmp_path, ending):
    points().to_file(tmp_path / f"a.{ending}")
    assert "its columns are id" in refused(tmp_path / f"a.{ending}", user="who")
    assert "no column 'ident'" in refused(tmp_path / f"a.{ending}", user="ident")
    assert "no column 'seen'" in refused(tmp_path / f"a.{ending}", time="seen")


@EVERY
def test_fractions_are_no_ids(tmp_path, ending):
    points(id=[8642.13579, 7.0]).to_file(tmp_path / f"a.{ending}")
    assert "'id' of user ids" in refused(tmp_path / f"a.{ending}", user="id")


@pytest.mark.parametrize("ending", ["gpkg", "shp", "fgb"])
def test_a_crs_is_never_guessed(tmp_path, ending):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points(crs=None).to_file(tmp_path / f"a.{ending}")
    assert "no CRS" in refused(tmp_path / f"a.{ending}", error=DomainError)


def test_a_shapefile_without_its_prj(tmp_path):
    points(crs="EPSG:5179").to_file(tmp_path / "a.shp")
    (tmp_path / "a.prj").unlink()
    assert "no CRS" in refused(tmp_path / "a.shp", error=DomainError)


@EVERY
@pytest.mark.parametrize("mix", [[LINE, LINE], [shapely.Point(1, 2), LINE]], ids=["all", "one"])
def test_other_geometries_are_refused(tmp_path, ending, mix):
    if ending == "shp" and mix[0] is not LINE:
        pytest.skip("a shapefile holds one kind of geometry")
    path = tmp_path / f"a.{ending}"
    gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=mix, crs=4326).to_file(path)
    assert "must hold points" in refused(path)


@EVERY
def test_no_rows(tmp_path, ending):
    points().iloc[:0].to_file(tmp_path / f"a.{ending}", geometry_type="Point")
    assert sum(len(b.x) for b in read(tmp_path / f"a.{ending}", Columns(), DOMAIN)) == 0


@EVERY
@pytest.mark.parametrize("share", [0, 0.3, 0.8], ids=["empty", "begun", "almost"])
def test_truncated_files(tmp_path, ending, share):
    path = tmp_path / f"a.{ending}"
    points(20_000, id=[SECRET] * 20_000).to_file(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert str(path) in refused(path)


def test_a_truncated_table_of_a_shapefile(tmp_path):
    points(1_000).to_file(tmp_path / "a.shp")
    data = (tmp_path / "a.dbf").read_bytes()
    (tmp_path / "a.dbf").write_bytes(data[:-500])
    assert "truncated" in refused(tmp_path / "a.shp", user="id")


def test_a_damaged_page_of_a_geopackage(tmp_path):
    path = tmp_path / "a.gpkg"
    points(20_000).to_file(path)
    data = bytearray(path.read_bytes())
    third = len(data) // 3 // 4096 * 4096
    data[third : third + 8192] = b"\xee" * 8192
    path.write_bytes(data)
    assert "cannot be read as" in refused(path)


def test_a_shapefile_without_its_index(tmp_path):
    points().to_file(tmp_path / "a.shp")
    (tmp_path / "a.shx").unlink()
    assert "is a part of it missing" in refused(tmp_path / "a.shp")


@pytest.mark.parametrize("text", ["{}", '{"a": 1}', "[]", SECRET, ""])
def test_json_that_is_no_geojson(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    assert "cannot be read as" in refused(tmp_path / "a.json")


def two_layers(path):
    points().to_file(path, layer="home")
    points(1).to_file(path, layer="work")
    return path


def test_of_several_layers_one_has_to_be_named(tmp_path):
    path = two_layers(tmp_path / "a.gpkg")
    assert "home, work" in refused(path)
    assert len(one(path, layer="work").x) == 1
    assert len(one(path, layer="home").x) == 2
    assert "its layers are home, work" in refused(path, layer="school")


def test_tables_beside_the_only_layer_do_not_count(tmp_path):
    path = tmp_path / "a.gpkg"
    points().to_file(path, layer="home")
    pyogrio.write_dataframe(pd.DataFrame({"style": ["red"]}), path, layer="layer_styles")
    assert len(one(path).x) == 2


def test_a_table_without_geometries_has_columns(tmp_path):
    path = tmp_path / "a.gpkg"
    pyogrio.write_dataframe(pd.DataFrame({"lon": [127.5], "lat": [37.5], "t": ["a"]}), path)
    assert one(path).x.tolist() == [127.5]
    assert "must be numeric" in refused(path, x="t")


def test_the_layer_of_a_single_file_may_be_named(tmp_path):
    points().to_file(tmp_path / "a.fgb")
    assert len(one(tmp_path / "a.fgb", layer="a").x) == 2
    assert "no layer 'b'" in refused(tmp_path / "a.fgb", layer="b")


def test_times_keep_their_offsets(tmp_path):
    moments = pd.to_datetime(["2024-01-31T10:00:00+09:00", "2024-01-31T10:00:00+09:00"])
    for ending in ("gpkg", "fgb", "geojson"):
        path = tmp_path / f"a.{ending}"
        points(seen=moments).to_file(path)
        for zone, hour in (("Asia/Seoul", 10), ("UTC", 1)):
            batch = one(path, time="seen", time_zone=zone)
            assert {moment.hour for moment in batch.time.tolist()} == {hour}


def test_no_warning_quotes_a_value(tmp_path, recwarn, caplog):
    with caplog.at_level(logging.DEBUG):
        points(seen=pd.to_datetime(["2024-01-31T10:00:00+09:00"] * 2)).to_file(tmp_path / "a.gpkg")
        recwarn.clear()
        caplog.clear()
        one(tmp_path / "a.gpkg", time="seen")
    assert not recwarn.list
    assert "2024" not in caplog.text


def test_batches_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(vector, "_ROWS", 100)
    points(1_000).to_file(tmp_path / "a.gpkg")
    sizes = [len(batch.x) for batch in read(tmp_path / "a.gpkg", Columns(), DOMAIN)]
    assert sum(sizes) == 1_000
    assert max(sizes) <= 100


@pytest.mark.parametrize("part", ["shp", "dbf"])
def test_a_file_that_changes_while_it_is_read(tmp_path, part):
    points().to_file(tmp_path / "a.shp")
    batches = read(tmp_path / "a.shp", Columns(), DOMAIN)
    next(batches)
    shutil.copy(tmp_path / f"a.{part}", tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / f"a.{part}")
    with pytest.raises(InputDataError, match="changed while"):
        list(batches)


def test_a_folder_of_shapefiles(tmp_path):
    points().to_file(tmp_path / "a.shp")
    points()[::-1].to_file(tmp_path / "b.shp")
    assert sum(len(b.x) for b in read(tmp_path, Columns(), DOMAIN)) == 4


def test_missing_points_leave_the_others_alone(tmp_path):
    """A stream of GDAL lets the points behind a missing one overwrite those before it."""
    shapes = [shapely.Point(i, i) for i in range(9)]
    shapes[3], shapes[5] = None, shapely.Point()
    path = tmp_path / "a.fgb"
    data = gpd.GeoDataFrame({"id": list("abcdefghi")}, geometry=shapes, crs=4326)
    data.to_file(path, SPATIAL_INDEX="NO")
    before = pyogrio.get_gdal_config_option(vector._PLAIN_STREAM)
    np.testing.assert_array_equal(one(path).x, [0, 1, 2, np.nan, 4, np.nan, 6, 7, 8])
    assert pyogrio.get_gdal_config_option(vector._PLAIN_STREAM) == before


def test_geojson_of_another_crs(tmp_path):
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Point"}}
    feature["geometry"]["coordinates"] = [1_000_000, 2_000_000]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::5179"}}
    data = {"type": "FeatureCollection", "crs": crs, "features": [feature]}
    (tmp_path / "a.geojson").write_text(json.dumps(data))
    assert one(tmp_path / "a.geojson").x[0] == pytest.approx(127.5, abs=1e-9)


def test_a_geopackage_that_somebody_writes_to(tmp_path):
    """Readers see what was committed; the file itself stays as it is until a checkpoint."""
    path = tmp_path / "a.gpkg"
    points().to_file(path)
    with sqlite3.connect(path) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        assert len(one(path).x) == 2
    writer.close()
