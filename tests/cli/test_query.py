"""psd query: answers in every format, from every kind of region."""

import io
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import cli, fails, files, passes, process, three_by_three, write_points
from support.releases import as_drawn

COLUMNS = [
    "estimate",
    "perturbation_error",
    "nonuniformity_error",
    "error",
    "lower",
    "upper",
    "relative_perturbation_error",
    "relative_nonuniformity_error",
    "relative_error",
    "reliable",
    "quality",
]
UPPER_TWO_ROWS = (-4, -1, 5, 5)
OTHERS = [(-4, -4, 5, 5), (-3.5, -3.5, -2, 2), (-1, -4, 4.5, 2)]
SIDES = "west,south,east,north"


@pytest.fixture
def release(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    return path


def boxes_args(boxes):
    return [part for box in boxes for part in ("--box", *box)]


def read_csv(text, **options):
    return pd.read_csv(io.StringIO(text), **options)


def test_a_region_beyond_the_bounds_is_answered_in_part_and_said_so(release):
    outcome = cli("query", release, *boxes_args([(-1, -4, 20, 2), (-4, -4, 5, 5)]))
    assert outcome.code == 0
    assert "warning: 1 region reaches beyond the bounds" in outcome.err
    outcome = cli("query", release, *boxes_args([(-1, -4, 20, 2), (-4, -4, 5, 6)]))
    assert "warning: 2 regions reach beyond the bounds" in outcome.err


def test_a_narrow_terminal_loses_columns_and_no_digits(release, monkeypatch):
    from rich.console import Console

    from psd_cli.output import columns

    monkeypatch.setattr(columns, "open_console", lambda: Console(width=60, highlight=False))
    outcome = cli("query", release, *boxes_args([(-4, -4, 5, 5)]))
    assert (outcome.code, "too narrow" in outcome.err) == (0, True)
    assert "…" not in outcome.out
    assert "22.0" in outcome.out


def test_worked_example(release):
    text = passes("query", release, *boxes_args([UPPER_TWO_ROWS]), "--format", "csv")
    assert read_csv(text)["estimate"].round(9).tolist() == [19]


def test_columns_and_values_are_those_of_the_library(release):
    text = passes("query", release, *boxes_args([UPPER_TWO_ROWS, *OTHERS]), "--format", "csv")
    assert text.splitlines()[0] == ",".join(["id", *COLUMNS])
    expected = psd.Release.load(release).query([UPPER_TWO_ROWS, *OTHERS])
    assert list(expected.columns) == ["id", *COLUMNS]
    pd.testing.assert_frame_equal(read_csv(text), expected)


def test_formats_tell_the_same(release):
    args = ("query", release, *boxes_args([UPPER_TWO_ROWS, *OTHERS]))
    table = read_csv(passes(*args, "--format", "csv"))
    records = json.loads(passes(*args, "--format", "json"))
    assert [list(record) for record in records] == [["id", *COLUMNS]] * 4
    pd.testing.assert_frame_equal(pd.DataFrame(records), table, rtol=1e-8)
    features = json.loads(passes(*args, "--format", "geojson"))["features"]
    properties = pd.DataFrame([feature["properties"] for feature in features])
    pd.testing.assert_frame_equal(properties, table, rtol=1e-8)
    bounds = [shapely.geometry.shape(feature["geometry"]).bounds for feature in features]
    np.testing.assert_allclose(bounds, [UPPER_TWO_ROWS, *OTHERS])


def test_table_is_for_people(release):
    args = ("query", release, *boxes_args([UPPER_TWO_ROWS]))
    assert passes(*args) == passes(*args, "--format", "table")
    lines = passes(*args).splitlines()
    row = lines[-1].split()
    assert row[:2] == ["1", "19.0"]
    assert row[-4:] == ["yes", "use", "with", "care"]
    assert [cell.endswith("%") for cell in row] == [False] * 7 + [True] * 3 + [False] * 4
    # Each heading stands over its column, its words one below the other.
    heads = " ".join(lines[:-1]).split()
    assert sorted(heads) == sorted(word for name in ["id", *COLUMNS] for word in name.split("_"))


def test_geojson_is_in_degrees_whatever_the_release(tmp_path):
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    tree = psd.grid_tree(domain, 1)
    as_drawn(psd.Release.from_counts(tree, [7], "1", domain=domain)).save(tmp_path / "r")
    text = passes("query", tmp_path / "r", "--box", *domain.bounds, "--format", "geojson")
    west, south, east, north = shapely.from_geojson(
        json.dumps(json.loads(text)["features"][0]["geometry"])
    ).bounds
    assert 126 < west < east < 128
    assert 37 < south < north < 39


@pytest.mark.parametrize(
    ("name", "extra", "first"),
    [
        pytest.param("a.csv", [], "id,estimate", id="csv"),
        pytest.param("a.json", [], "[", id="json"),
        pytest.param("a.geojson", [], '{"type": "FeatureCollection"', id="geojson"),
        pytest.param("A.CSV", [], "id,estimate", id="upper-case"),
        pytest.param("a.txt", ["--format", "csv"], "id,estimate", id="format-named"),
        pytest.param("a.json", ["--format", "geojson"], '{"type"', id="geojson-is-json"),
    ],
)
def test_output_file(release, name, extra, first):
    out = release.parent / name
    args = ("query", release, *boxes_args(OTHERS), *extra)
    assert passes(*args, "-o", out) == f"wrote {out}\n"
    content = out.read_text(encoding="utf-8")
    assert content.startswith(first)
    form = extra or ["--format", name.lower().partition(".")[2]]
    assert content == passes("query", release, *boxes_args(OTHERS), *form)
    assert "exists" in fails(6, *args, "-o", out)
    passes(*args, "-o", out, "--overwrite")
    assert files(release.parent) == sorted([name, release.name])


@pytest.mark.parametrize(
    ("name", "extra", "code"),
    [
        pytest.param("a.txt", [], 2, id="unknown-ending"),
        pytest.param("a", [], 2, id="no-ending"),
        pytest.param("a.csv", ["--format", "table"], 2, id="table-in-a-file"),
        pytest.param("a.csv", ["--format", "xml"], 2, id="unknown-format"),
        pytest.param("nowhere/a.csv", [], 6, id="folder-missing"),
        pytest.param("folder.csv", [], 6, id="a-folder"),
        pytest.param("a.csv", ["--format", "json"], 2, id="another-ending"),
        pytest.param("a.gpkg", ["--format", "csv"], 2, id="ending-of-a-file"),
        pytest.param("a.txt", ["--format", "gpkg"], 2, id="no-text"),
        pytest.param("r.psd.parquet", ["--format", "csv", "--overwrite"], 2, id="the-ending"),
        pytest.param("r.psd.parquet", ["--overwrite"], 6, id="the-release"),
    ],
)
def test_targets_that_are_refused(release, name, extra, code):
    (release.parent / "folder.csv").mkdir()
    content = release.read_bytes()
    fails(code, "query", release, *boxes_args(OTHERS), "-o", release.parent / name, *extra)
    assert files(release.parent) == ["folder.csv", release.name]
    assert release.read_bytes() == content


def test_boxes_of_a_file_in_its_order_with_its_ids(release):
    path = release.parent / "boxes.csv"
    rows = [("007", *OTHERS[1]), ("7", *OTHERS[0]), ("NA", *UPPER_TWO_ROWS)]
    write_points(path, rows, f"id,{SIDES}")
    for mark in ("", "\ufeff"):  # with and without the mark that spreadsheets put first
        path.write_text(mark + path.read_text(encoding="utf-8-sig"), encoding="utf-8")
        text = passes("query", release, "--boxes", path, "--format", "csv")
        assert [line.split(",")[0] for line in text.splitlines()] == ["id", "007", "7", "NA"]
        expected = psd.Release.load(release).query([row[1:] for row in rows])
        np.testing.assert_allclose(read_csv(text)["estimate"], expected["estimate"])
    records = json.loads(passes("query", release, "--boxes", path, "--format", "json"))
    assert [record["id"] for record in records] == ["007", "7", "NA"]


def test_boxes_without_ids_are_numbered_and_other_columns_do_not_matter(release):
    path = write_points(
        release.parent / "b.csv", [(5, "x", -4, -4, 5)] * 2, "north, note,west,south , east"
    )
    table = read_csv(passes("query", release, "--boxes", path, "--format", "csv"))
    assert table["id"].tolist() == [1, 2]
    np.testing.assert_allclose(table["estimate"], 22)


def test_no_boxes_no_answers(release):
    path = write_points(release.parent / "b.csv", [], SIDES)
    for form in ("csv", "json", "geojson", "table"):
        passes("query", release, "--boxes", path, "--format", form)
    text = passes("query", release, "--boxes", path, "--format", "csv")
    assert text == ",".join(["id", *SIDES.split(","), *COLUMNS]) + "\n"


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        pytest.param(b"", 8, "first line", id="empty-file"),
        pytest.param(b"west,south,east\n1,2,3\n", 8, "north", id="column-missing"),
        pytest.param(b"west;south;east;north\n1;2;3;4\n", 8, "west", id="semicolons"),
        pytest.param(b"west,south,east,north\n0,0,1,x\n", 8, "line 2: north", id="text"),
        pytest.param(b"west,south,east,north\n0,0,1,1\n0,0,,1\n", 8, "line 3", id="no-value"),
        pytest.param(b"west,south,east,north\n0,0,1\n", 8, "line 2: north", id="short-row"),
        pytest.param(b"west,south,east,north\n0,0,1,1,1\n", 8, "more fields", id="long-row"),
        pytest.param(b"west,south,east,north\n0,0,1,1\n0,0,1,1,1\n", 8, "b.csv", id="long-later"),
        pytest.param(
            b"west,south,east,north, west\n0,0,1,1,0\n", 8, "spaces alone", id="west-twice"
        ),
        pytest.param(b'id,west,south,east,north\n"a,0,0,1,1\n', 8, "b.csv", id="open-quote"),
        pytest.param("west,south,east,north\n".encode("utf-16"), 8, "UTF-8", id="utf-16"),
        pytest.param(f"이름,{SIDES}\n".encode("cp949"), 8, "UTF-8", id="cp949"),
        pytest.param(b"id,west,south,east,north\nB7,1,0,0,1\n", 2, "box B7", id="reversed"),
        pytest.param(b"west,south,east,north\n0,0,0,1\n", 2, "box 1", id="no-area"),
        pytest.param(b"west,south,east,north\n0,0,inf,1\n", 2, "finite", id="infinite"),
        pytest.param(b"west,south,east,north\n6,6,7,7\n", 2, "outside", id="outside"),
    ],
)
def test_boxes_that_are_refused(release, content, code, words):
    path = release.parent / "b.csv"
    path.write_bytes(content)
    assert words in fails(code, "query", release, "--boxes", path, "--format", "csv")


SHAPES = [shapely.box(*UPPER_TWO_ROWS), shapely.box(*OTHERS[1])]


def districts(**columns):
    return gpd.GeoDataFrame({"id": ["007", "8"], **columns}, geometry=SHAPES, crs="EPSG:4326")


def write_vector(table, path):
    """Write a vector file in the format of its ending."""
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_file(path)
    return path


@pytest.mark.parametrize("name", ["d.gpkg", "d.geojson", "d.parquet"])
def test_polygons_answer_as_the_boxes_they_are(release, name):
    path = write_vector(districts(people=[3, 4]), release.parent / name)
    args = ("query", release, "--polygons", path)
    text = passes(*args, "--format", "csv")
    assert text.splitlines()[0] == ",".join(["id", "people", *COLUMNS])
    table = read_csv(text, dtype={"id": str})
    assert table["id"].tolist() == ["007", "8"]
    expected = psd.Release.load(release).query([UPPER_TWO_ROWS, OTHERS[1]])
    pd.testing.assert_frame_equal(table[COLUMNS], expected[COLUMNS], rtol=1e-9)
    features = json.loads(passes(*args, "--format", "geojson"))["features"]
    assert [f["properties"]["id"] for f in features] == ["007", "8"]
    shapes = [shapely.geometry.shape(feature["geometry"]) for feature in features]
    assert all(a.equals(b) for a, b in zip(shapes, SHAPES, strict=True))
    assert passes(*args).splitlines()[-2].split()[:2] == ["007", "19.0"]


def test_polygons_of_another_crs(release):
    there = districts().to_crs("EPSG:3857")
    path = write_vector(there, release.parent / "d.gpkg")
    text = passes("query", release, "--polygons", path, "--format", "csv")
    assert read_csv(text)["estimate"][0] == pytest.approx(19, abs=1e-3)
    text = passes("query", release, "--polygons", path, "--format", "geojson")
    shape = shapely.geometry.shape(json.loads(text)["features"][0]["geometry"])
    np.testing.assert_allclose(shape.bounds, UPPER_TWO_ROWS, atol=1e-9)


def test_dates_and_other_names_of_the_geometry_come_through(release):
    table = districts(since=pd.to_datetime(["2020-01-31", "2021-01-01"])).rename_geometry("geom")
    path = write_vector(table, release.parent / "d.parquet")
    args = ("query", release, "--polygons", path, "--format")
    assert passes(*args, "csv").splitlines()[0] == ",".join(["id", "since", *COLUMNS])
    record = json.loads(passes(*args, "json"))[0]
    assert list(record) == ["id", "since", *COLUMNS]
    assert record["since"].startswith("2020-01-31")
    feature = json.loads(passes(*args, "geojson"))["features"][0]
    assert feature["properties"]["since"].startswith("2020-01-31")
    assert feature["geometry"]["type"] == "Polygon"


def shaped(shape):
    """Districts of another shape."""
    return districts().set_geometry([shape] * 2, crs="EPSG:4326")


BOW_TIE = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
NO_CRS = districts().set_crs(None, allow_override=True)


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        pytest.param(NO_CRS, 3, "CRS", id="no-crs"),
        pytest.param(districts(estimate=[1, 2]), 2, "estimate", id="column-of-the-answers"),
        pytest.param(shaped(shapely.Point(0, 0)), 2, "Point", id="points"),
        pytest.param(shaped(None), 2, "missing", id="no-shape"),
        pytest.param(shaped(shapely.Polygon()), 2, "empty", id="empty-shape"),
        pytest.param(shaped(shapely.box(50, 50, 51, 51)), 2, "outside", id="outside"),
        pytest.param(shaped(BOW_TIE), 2, "valid", id="bow-tie"),
    ],
)
def test_polygons_that_are_refused(release, table, code, words):
    path = write_vector(table, release.parent / "d.parquet")
    assert words in fails(code, "query", release, "--polygons", path)


def test_polygons_are_repaired_where_that_is_chosen(release):
    path = write_vector(shaped(BOW_TIE), release.parent / "bow.gpkg")
    args = ("query", release, "--polygons", path, "--format", "csv")
    assert len(read_csv(passes(*args, "--repair"))) == 2
    assert "--repair must be given with" in fails(
        2, "query", release, "--box", 0, 0, 1, 1, "--repair"
    )


def test_a_crs_of_a_layer_that_is_not_known(release):
    """GDAL takes numbers from PROJ's list that name no CRS of places."""
    triangle = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    feature = {"type": "Feature", "properties": {}, "geometry": triangle}
    named = {"type": "name", "properties": {"name": "EPSG:5802"}}
    layer = {"type": "FeatureCollection", "features": [feature], "crs": named}
    path = release.parent / "q.geojson"
    path.write_text(json.dumps(layer))
    said = fails(3, "query", release, "--polygons", path)
    assert "has a CRS that PROJ does not know" in said


@pytest.mark.parametrize(
    ("option", "name"),
    [
        pytest.param("--polygons", "missing.gpkg", id="polygons-missing"),
        pytest.param("--polygons", "folder", id="polygons-a-folder"),
        pytest.param("--polygons", "text.gpkg", id="polygons-no-vector-file"),
        pytest.param("--polygons", "plain.parquet", id="polygons-plain-parquet"),
        pytest.param("--polygons", "table.csv", id="polygons-a-table"),
        pytest.param("--boxes", "missing.csv", id="boxes-missing"),
        pytest.param("--boxes", "folder", id="boxes-a-folder"),
    ],
)
def test_region_files_that_cannot_be_read(release, option, name):
    folder = release.parent
    (folder / "folder").mkdir()
    (folder / "text.gpkg").write_text("no geopackage")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    pd.DataFrame({"a": [1]}).to_parquet(folder / "plain.parquet")
    assert name in fails(8, "query", release, option, folder / name)


@pytest.mark.parametrize(
    "args",
    [
        pytest.param([], id="no-region"),
        pytest.param(["--box", 0, 0, 1, 1, "--boxes", "b.csv"], id="two-kinds"),
        pytest.param(["--box", 0, 0, 1], id="three-numbers"),
        pytest.param(["--box", 0, 0, 1, "x"], id="no-number"),
        pytest.param(["--box", 0, 0, 1, "nan"], id="nan"),
        pytest.param(["--box", 1, 0, 0, 1], id="reversed"),
        pytest.param(["--box", 6, 6, 7, 7], id="outside"),
        *(
            pytest.param(["--box", 0, 0, 1, 1, "--confidence", value], id=f"confidence-{value}")
            for value in (0, 1, -0.5, 95, "nan", "high")
        ),
        *(
            pytest.param(["--box", 0, 0, 1, 1, "--threshold", value], id=f"threshold-{value}")
            for value in (0, -1, "nan", "low")
        ),
    ],
)
def test_wrong_parameters(release, args):
    fails(2, "query", release, *args)


def test_confidence_and_threshold(release):
    args = ("query", release, *boxes_args([UPPER_TWO_ROWS]), "--format", "csv")
    usual, narrow = read_csv(passes(*args)), read_csv(passes(*args, "--confidence", 0.5))
    wide, short = (table["upper"][0] - table["estimate"][0] for table in (usual, narrow))
    assert wide / short == pytest.approx(1.959964 / 0.674490, rel=1e-5)
    relative = usual["relative_error"][0]
    for threshold, expected in ((relative * 1.01, True), (relative * 0.99, False)):
        told = read_csv(passes(*args, "--threshold", threshold))
        assert told["reliable"].tolist() == [expected]


@pytest.mark.parametrize("name", ["missing.parquet", "points.csv"])
def test_no_release(tmp_path, name):
    (tmp_path / "points.csv").write_text("lon,lat\n1,2\n")
    fails(5, "query", tmp_path / name, "--box", 0, 0, 1, 1)


def test_as_a_process(release):
    args = ("query", release.name, "--box", *UPPER_TWO_ROWS, "--format", "csv")
    ended = process(*args, cwd=release.parent)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert read_csv(ended.stdout)["estimate"].round(9).tolist() == [19]


def test_a_local_crs_has_no_way_to_another(release):
    three_by_three('LOCAL_CS["mine",UNIT["metre",1]]').save(release, overwrite=True)
    regions = release.parent / "p.wkt"
    regions.write_text("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
    asked = ("query", release, "--polygons", regions, "--polygons-crs", "EPSG:4326")
    for args in (
        asked,
        ("query", release, "--box", 0, 0, 1, 1, "--format", "geojson"),
        ("export", release, release.parent / "cells.geojson"),
    ):
        assert fails(3, *args).endswith("; is one of the two a local CRS?\n")
    assert files(release.parent) == ["p.wkt", "r.psd.parquet"]


def test_a_relative_error_of_nothing_is_infinite_and_null_in_json(tmp_path):
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857")
    made = psd.Release.from_counts(
        psd.grid_tree(domain, 2), [20_000, -90, 20_000, 20_000], "5", domain=domain
    )
    as_drawn(made).save(tmp_path / "r")
    args = ("query", tmp_path / "r", *boxes_args([(0, 0, 2, 2), (1, 0, 2, 1)]))
    assert "infinite" in passes(*args)
    assert cli(*args).err == ""
    assert read_csv(passes(*args, "--format", "csv"))["relative_error"][1] == np.inf
    good, poor = json.loads(passes(*args, "--format", "json"))
    assert (good["quality"], poor["quality"]) == ("good", "poor")
    assert good["relative_error"] > 0
    assert poor["relative_error"] is None
    page = json.loads(passes(*args, "--format", "geojson"))
    assert page["features"][1]["properties"]["relative_error"] is None
    assert "where the estimate is 0" in page["metadata"]["relative_error"]


@pytest.mark.parametrize("limits", ["0.12,0.3,0.5", "0.3,0.12", "0", "0.1,nan", "a,0.3"])
def test_wrong_limits_of_classes(release, limits):
    fails(2, "query", release, "--box", 0, 0, 1, 1, "--threshold", limits)
