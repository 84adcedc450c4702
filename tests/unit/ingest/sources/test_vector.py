"""GeoPackage, Shapefile, FlatGeobuf and GeoJSON: layers, geometries, CRS, and damage."""

import json
import logging
import shutil
import sqlite3
from contextlib import closing

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
    columns = columns or {"id": [str(i) for i in range(size)]}
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=crs)


@EVERY
def test_points_and_users(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    points().to_file(path)
    batch = one(path, user="id")
    found = dict(zip(batch.user.to_pylist(), batch.x.tolist(), strict=True))
    assert found == {"0": 127.0, "1": 127.125}
    assert "its columns are id" in refused(path, user="who")
    assert "no column 'ident'" in refused(path, user="ident")
    assert "no column 'seen'" in refused(path, time="seen")
    points(id=[8642.13579, 7.0]).to_file(path)  # fractions are no ids
    assert "'id' of user ids" in refused(path, user="id")
    points().iloc[:0].to_file(path, geometry_type="Point")
    assert sum(len(b.x) for b in read(path, Columns(), DOMAIN)) == 0
    mixes = [[LINE, LINE], [shapely.Point(1, 2), LINE]]
    for mix in mixes[: 1 if ending == "shp" else 2]:  # a shapefile holds one kind of geometry
        gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=mix, crs=4326).to_file(path)
        assert "must hold points" in refused(path)


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_crs_is_never_guessed(tmp_path):
    for ending in ("gpkg", "shp", "fgb"):
        points(crs=None).to_file(tmp_path / f"a.{ending}")
        assert "no CRS" in refused(tmp_path / f"a.{ending}", error=DomainError)
    points(crs="EPSG:5179").to_file(tmp_path / "b.shp")
    (tmp_path / "b.prj").unlink()
    assert "no CRS" in refused(tmp_path / "b.shp", error=DomainError)


@pytest.mark.deep
@EVERY
def test_truncated_files(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    points(20_000, id=[SECRET] * 20_000).to_file(path)
    data = path.read_bytes()
    for share in (0, 0.3, 0.8):
        path.write_bytes(data[: int(share * len(data))])
        assert str(path) in refused(path)


def test_damaged_parts(tmp_path):
    path = tmp_path / "a.shp"
    points(1_000).to_file(path)
    data = path.with_suffix(".dbf").read_bytes()
    path.with_suffix(".dbf").write_bytes(data[:-500])
    assert "truncated" in refused(path, user="id")
    path.with_suffix(".shx").unlink()
    assert "is a part of it missing" in refused(path)
    path = tmp_path / "a.gpkg"
    points(20_000).to_file(path)
    data = bytearray(path.read_bytes())
    third = len(data) // 3 // 4096 * 4096
    data[third : third + 8192] = b"\xee" * 8192
    path.write_bytes(data)
    assert "cannot be read as" in refused(path)
    for text in ("{}", '{"a": 1}', "[]", SECRET, ""):
        (tmp_path / "a.json").write_text(text)
        assert "cannot be read as" in refused(tmp_path / "a.json")


def test_of_several_layers_one_has_to_be_named(tmp_path):
    path = tmp_path / "a.gpkg"
    points().to_file(path, layer="home")
    style = pd.DataFrame({"style": ["red"]})  # a table beside the only layer does not count
    pyogrio.write_dataframe(style, path, layer="layer_styles")
    assert len(one(path).x) == 2
    points(1).to_file(path, layer="work")
    assert "home, work" in refused(path)
    assert len(one(path, layer="work").x) == 1
    assert len(one(path, layer="home").x) == 2
    assert "its layers are home, work" in refused(path, layer="school")
    points().to_file(tmp_path / "a.fgb")
    assert len(one(tmp_path / "a.fgb", layer="a").x) == 2
    assert "no layer 'b'" in refused(tmp_path / "a.fgb", layer="b")
    table = pd.DataFrame({"lon": [127.5], "lat": [37.5], "t": ["a"]})
    pyogrio.write_dataframe(table, tmp_path / "b.gpkg")  # a table without geometries has columns
    assert one(tmp_path / "b.gpkg").x.tolist() == [127.5]
    assert "must be numeric" in refused(tmp_path / "b.gpkg", x="t")


def test_times_keep_their_offsets_and_no_warning_quotes_one(tmp_path, recwarn, caplog):
    moments = pd.to_datetime(["2024-01-31T10:00:00+09:00", "2024-01-31T10:00:00+09:00"])
    for ending in ("gpkg", "fgb", "geojson"):
        path = tmp_path / f"a.{ending}"
        points(seen=moments).to_file(path)
        recwarn.clear()
        with caplog.at_level(logging.DEBUG):
            caplog.clear()
            for zone, hour in (("Asia/Seoul", 10), ("UTC", 1)):
                batch = one(path, time="seen", time_zone=zone)
                assert {moment.hour for moment in batch.time.tolist()} == {hour}
        assert not recwarn.list
        assert "2024" not in caplog.text


def test_a_file_that_changes_while_it_is_read(tmp_path):
    points().to_file(tmp_path / "a.shp")
    points()[::-1].to_file(tmp_path / "b.shp")
    assert sum(len(b.x) for b in read(tmp_path, Columns(), DOMAIN)) == 4
    for part in ("shp", "dbf"):
        batches = read(tmp_path / "a.shp", Columns(), DOMAIN)
        next(batches)
        shutil.copy(tmp_path / f"a.{part}", tmp_path / "copy")
        (tmp_path / "copy").replace(tmp_path / f"a.{part}")
        with pytest.raises(InputDataError, match="changed while"):
            list(batches)


def test_missing_points_an_open_file_and_another_crs(tmp_path):
    """A stream of GDAL lets the points behind a missing one overwrite those before it."""
    shapes = [shapely.Point(i, i) for i in range(9)]
    shapes[3], shapes[5] = None, shapely.Point()
    path = tmp_path / "a.fgb"
    data = gpd.GeoDataFrame({"id": list("abcdefghi")}, geometry=shapes, crs=4326)
    data.to_file(path, SPATIAL_INDEX="NO")
    before = [pyogrio.get_gdal_config_option(name) for name in vector._OPTIONS]
    np.testing.assert_array_equal(one(path).x, [0, 1, 2, np.nan, 4, np.nan, 6, 7, 8])
    assert [pyogrio.get_gdal_config_option(name) for name in vector._OPTIONS] == before
    # Readers see what was committed; the file itself stays as it is until a checkpoint.
    points().to_file(tmp_path / "a.gpkg")
    with closing(sqlite3.connect(tmp_path / "a.gpkg")) as writer, writer:
        writer.execute("PRAGMA journal_mode = WAL")
        assert len(one(tmp_path / "a.gpkg").x) == 2
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Point"}}
    feature["geometry"]["coordinates"] = [1_000_000, 2_000_000]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::5179"}}
    data = {"type": "FeatureCollection", "crs": crs, "features": [feature]}
    (tmp_path / "a.geojson").write_text(json.dumps(data))
    assert one(tmp_path / "a.geojson").x[0] == pytest.approx(127.5, abs=1e-9)


def feature(*place, **properties):
    geometry = {"type": "Point", "coordinates": place} if place else None
    return json.dumps({"type": "Feature", "properties": properties, "geometry": geometry})


A, B = feature(127, 37.5, id="a"), feature(127.5, 37.5, 9, id="b")
SEQUENCES = {
    "lines.geojsonl": f"{A}\n{B}\n",
    "lines.geojson": f"{A}\n{B}",
    "lines.json": f"{A}\n{B}\n",
    "blank.ndjson": f"\n{A}\r\n\n{B}\r\n\n",
    "lines.jsonl": f"{A}\n{B}\n",
    "separators.geojsons": f"\x1e{A}\n\x1e{B}\n",
    "indented.geojsonseq": f"\x1e{json.dumps(json.loads(A), indent=1)}\n\x1e{B}\n",
}
TORN = {
    "middle.geojsonl": f"{A}\n{{{SECRET}\n{B}\n",
    "end.geojsonl": f"{A}\n{B[:40]}",
    "end.geojson": f"{A}\n{B[:40]}",
    "others.ndjson": f'{A}\n{{"lon": 1, "lat": 2}}\n[1, 2]\n"x"\n',
    "a mark.geojsonl": f"\ufeff{A}\n{B}\n",
    "a mark.geojson": f"\ufeff{A}\n{B}\n",
    "separators.geojsons": f"\x1e{A}\n\x1e{{{SECRET}\n\x1e{B}\n",
}


def test_lines_of_geojson(tmp_path, subtests):
    """GDAL passes over lines that it cannot read, and over all but one after a mark."""
    for name, content in SEQUENCES.items():
        (tmp_path / name).write_bytes(content.encode())
        with subtests.test(name):
            batch = one(tmp_path / name, user="id")
            assert (batch.x.tolist(), batch.user.to_pylist()) == ([127, 127.5], ["a", "b"])
    path = tmp_path / "missing.geojsonl"
    path.write_text(f"{A}\n{feature(id='c')}\n")
    np.testing.assert_array_equal(one(path).x, [127, np.nan])
    for name, content in TORN.items():
        (tmp_path / name).write_bytes(content.encode())
        with subtests.test(name):
            message = refused(tmp_path / name)
            assert "one feature of GeoJSON on each line" in message
            assert SECRET not in message


def made(**members):
    shape = {"type": "Point", "coordinates": [127, 37.5]}
    return {"type": "Feature", "geometry": shape, "properties": {}} | members


GEOCOUCH = {"_id": "", "_rev": "", "type": "Feature", "properties": {}}
EPSG = "http://www.opengis.net/def/crs/EPSG/0/5179"
PLAIN = [made(properties={"age": 20 + i}) for i in range(3)]
CAPITAL = [made(properties={"Age": 20 + i}) for i in range(3)]
NUMBERED = [made(id=i) for i in range(3)]
BARE = [made(properties={"age": 5}), *[made(age=18.9) for _ in range(3)]]
for each in BARE[1:]:
    del each["properties"]
OTHERS = {
    "GeoCouch": (PLAIN, made(properties=GEOCOUCH), {}),
    "CRS of JSON-FG": (PLAIN, made(coordRefSys=EPSG), {}),
    "place of JSON-FG": (PLAIN, made(place={"type": "Point", "coordinates": [1, 2]}), {}),
    "spelling": (CAPITAL, made(properties={"age": 1}), {"where": "age > 18"}),
    "capitals": (CAPITAL, made(properties={"age": 1}), {"where": "Age > 18"}),
    "spelling of bids": (CAPITAL, made(properties={"age": 1}), {"bid": "age"}),
    "id of a feature": ([*NUMBERED, made(properties={"id": 5})], made(id="a"), {"where": "id < 9"}),
    "id as a bid": ([*NUMBERED, made(properties={"id": 5})], made(id="a"), {"bid": "id"}),
    "id as a user": (
        [made(properties={"id": 5}), made(id="a"), made(id="b")],
        made(properties={"id": "c"}),
        {"user": "id"},
    ),
    "no properties": (BARE, made(properties={"age": 0.5}), {"where": "age > 18"}),
}


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_no_feature_of_geojson_changes_what_is_read_of_others(tmp_path, name, lines):
    """Another feature, before or after, changes nothing of the others, or the file is refused."""
    features, other, columns = OTHERS[name]
    path = tmp_path / ("a.geojsonl" if lines else "a.geojson")

    def read_of(chosen, others):
        if lines:
            path.write_text("".join(json.dumps(each) + "\n" for each in chosen))
        else:
            path.write_text(json.dumps({"type": "FeatureCollection", "features": chosen}))
        try:
            batch = one(path, **columns)
        except InputDataError:
            return None
        values = [batch.x, batch.y]
        values += [each for each in (batch.bid, batch.match) if each is not None]
        values += [] if batch.user is None else [np.array(batch.user.to_pylist())]
        return [each[others].tolist() for each in values]

    size = len(features)
    alone = read_of(features, slice(size))
    before = read_of([other, *features], slice(1, None))
    after = read_of([*features, other], slice(size))
    assert alone is None or {str(alone)} | {"None"} >= {str(before), str(after)}
    assert columns or alone is not None


def test_times_of_geojson_are_read_by_the_rule_for_text(tmp_path):
    """GDAL would drop UTC, and read other forms of dates."""
    texts = ("2024-06-30 10:15:00 UTC", "2024-06-30T10:15:00Z", "2024-06-30T19:15:00+09:00")
    path = tmp_path / "times.geojson"
    features = ",".join(feature(127, 37.5, seen=text) for text in texts)
    path.write_text(f'{{"type": "FeatureCollection", "features": [{features}]}}')
    times = one(path, time="seen", time_zone="Asia/Seoul").time
    assert set(times.astype("M8[m]").astype(str)) == {"2024-06-30T19:15"}
    path.write_text(feature(127, 37.5, seen="2024/06/30"))
    assert "not a time in ISO 8601" in refused(path, time="seen")


def test_xml_is_refused_by_what_it_is_under_any_name(tmp_path, subtests):
    """GDAL would read it by its content, and leave out points without a word."""
    point = "<Placemark><Point><coordinates>127,37.5</coordinates></Point></Placemark>"
    kml = f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{point}</Document></kml>'
    contents = {
        "KML": kml.encode(),
        "KML; save": ("\ufeff" + kml).encode("utf-16-le"),
        "GPX": b'<?xml version="1.0"?>\n<gpx><wpt lat="37.5" lon="127"/></gpx>',
        "XML": b"<gml:Points/>",
    }
    for ending in ("json", "geojson", "geojsonl", "gpkg", "fgb"):
        for told, content in contents.items():
            with subtests.test(told, ending=ending):
                path = tmp_path / f"a.{ending}"
                path.write_bytes(content)
                message = refused(path)
                assert message.startswith(f"{path} must be a table of points such as CSV, got ")
                assert f"got {told}" in message


def test_a_virtual_data_set_that_names_other_files_is_refused(tmp_path):
    (tmp_path / "a.gpkg").write_text("<OGRVRTDataSource></OGRVRTDataSource>")
    assert "must hold its own data" in refused(tmp_path / "a.gpkg")
