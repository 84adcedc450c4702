"""psd query: answers in every format, from every kind of region."""

import json
import sys

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from rich.console import Console

import psd
from psd_cli.output.answers import column_texts, mean_decimals
from support.cli_runner import (
    as_json,
    as_table,
    check_refusals,
    cli,
    fails,
    files,
    passes,
    three_by_three,
    write_points,
)
from support.releases import as_drawn

HEADER = (
    "estimate,perturbation_error,nonuniformity_error,error,lower,upper,"
    "relative_perturbation_error,relative_nonuniformity_error,relative_error,reliable,quality"
)
COLUMNS = HEADER.split(",")
UPPER_TWO_ROWS = (-4, -1, 5, 5)
OTHERS = [(-4, -4, 5, 5), (-3.5, -3.5, -2, 2), (-1, -4, 4.5, 2)]
SIDES = "west,south,east,north"
QUERY = "query r.psd.parquet"
UPPER = f"{QUERY} --box -4 -1 5 5"
SEVERAL = f"{UPPER} --box -4 -4 5 5 --box -3.5 -3.5 -2 2 --box -1 -4 4.5 2"
SMALL = f"{QUERY} --box 0 0 1 1"

pytestmark = pytest.mark.usefixtures("release")


def features_of(line):
    return json.loads(passes(f"{line} --format geojson"))["features"]


def test_what_is_said_of_regions_beyond_the_bounds_and_of_narrow_terminals(monkeypatch):
    for north, told in ((5, "1 region reaches"), (6, "2 regions reach")):
        outcome = cli(f"{QUERY} --box -1 -4 20 2 --box -4 -4 5 {north}")
        assert outcome.code == 0
        assert f"warning: {told} beyond the bounds" in outcome.err
    monkeypatch.setattr(
        "psd_cli.output.tables.open_console", lambda: Console(width=60, highlight=False)
    )
    outcome = cli(f"{QUERY} --box -4 -4 5 5")
    assert (outcome.code, "too narrow" in outcome.err) == (0, False)
    outcome = cli(f"{QUERY} --box -4 -4 5 5 --details")
    assert (outcome.code, "too narrow" in outcome.err) == (0, True)
    assert "…" not in outcome.out
    assert "22.0" in outcome.out


def test_formats_tell_what_the_library_does():
    table = as_table(SEVERAL)
    assert table["estimate"].round(9)[0] == 19
    assert list(table.columns) == ["id", *COLUMNS]
    boxes = [UPPER_TWO_ROWS, *OTHERS]
    pd.testing.assert_frame_equal(table, psd.load("r.psd.parquet").query(boxes).table)
    records = as_json(SEVERAL)
    assert [list(record) for record in records] == [["id", *COLUMNS]] * 4
    pd.testing.assert_frame_equal(pd.DataFrame(records), table, rtol=1e-8)
    features = features_of(SEVERAL)
    properties = pd.DataFrame([feature["properties"] for feature in features])
    pd.testing.assert_frame_equal(properties, table, rtol=1e-8)
    bounds = [shapely.geometry.shape(feature["geometry"]).bounds for feature in features]
    np.testing.assert_allclose(bounds, boxes)
    assert passes(UPPER) == passes(f"{UPPER} --format table")
    head, row = passes(UPPER).splitlines()
    assert head.split() == ["id", "estimate", "error", "lower", "upper", "quality"]
    assert row.split()[:2] == ["1", "19.0"]
    assert "--details must be left out with --format csv" in fails(2, f"{UPPER} --details -o a.csv")
    lines = passes(f"{UPPER} --details").splitlines()
    row = lines[-1].split()
    assert row[:2] == ["1", "19.0"]
    assert row[-4:] == ["yes", "use", "with", "care"]
    assert [cell.endswith("%") for cell in row] == [False] * 7 + [True] * 3 + [False] * 4
    # Each heading stands over its column, its words one below the other.
    heads = " ".join(lines[:-1]).split()
    assert sorted(heads) == sorted(word for name in ["id", *COLUMNS] for word in name.split("_"))


def test_geojson_in_degrees_and_relative_errors_of_nothing():
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    tree = psd.decompositions.grid_tree(domain, 1)
    as_drawn(psd.Release.from_counts(tree, [7], "1", domain=domain)).save("r")
    (feature,) = features_of("query r --box 900000 1900000 1000000 2000000")
    west, south, east, north = shapely.geometry.shape(feature["geometry"]).bounds
    assert 126 < west < east < 128
    assert 37 < south < north < 39
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857")
    counts = [20_000, -90, 20_000, 20_000]
    tree = psd.decompositions.grid_tree(domain, 2)
    as_drawn(psd.Release.from_counts(tree, counts, "5", domain=domain)).save("q")
    line = "query q --box 0 0 2 2 --box 1 0 2 1"
    assert "infinite" in passes(f"{line} --details")
    assert as_table(line)["relative_error"][1] == np.inf
    good, poor = as_json(line)
    assert (good["quality"], poor["quality"]) == ("good", "poor")
    assert good["relative_error"] > 0
    assert poor["relative_error"] is None
    page = json.loads(passes(f"{line} --format geojson"))
    assert page["features"][1]["properties"]["relative_error"] is None
    assert "where the estimate is 0" in page["metadata"]["relative_error"]


def test_output_file(here, subtests):
    for name, extra, first in (
        ("a.csv", "", "id,estimate"),
        ("a.json", "", "["),
        ("a.geojson", "", '{"type": "FeatureCollection"'),
        ("A.CSV", "", "id,estimate"),
        ("a.txt", " --format csv", "id,estimate"),
        ("b.json", " --format geojson", '{"type"'),
    ):
        with subtests.test(name):
            line = f"{SEVERAL}{extra} -o {name}"
            assert passes(line) == f"wrote {name}\n"
            content = (here / name).read_text(encoding="utf-8")
            assert content.startswith(first)
            form = extra or f" --format {name.lower().partition('.')[2]}"
            assert content == passes(SEVERAL + form)
            assert "exists" in fails(6, line)
            passes(f"{line} --overwrite")
            (here / name).unlink()
            assert files(here) == ["r.psd.parquet"]


TARGETS = {
    2: (
        "a.txt",
        "a",
        "a.csv --format table",
        "a.csv --format xml",
        "a.csv --format json",
        "a.gpkg --format csv",
        "a.txt --format gpkg",
        "r.psd.parquet --format csv --overwrite",
    ),
    6: ("nowhere/a.csv", "folder.csv", "r.psd.parquet --overwrite"),
}


def test_targets_that_are_refused(here, subtests):
    (here / "folder.csv").mkdir()
    table = [(code, target, "") for code, targets in TARGETS.items() for target in targets]
    check_refusals(subtests, table, f"{SEVERAL} -o")


def test_boxes_of_a_file_in_its_order_with_its_ids_or_numbered(here):
    path = here / "boxes.csv"
    rows = [("007", *OTHERS[1]), ("7", *OTHERS[0]), ("NA", *UPPER_TWO_ROWS)]
    write_points(path, rows, f"id,{SIDES}")
    expected = psd.load("r.psd.parquet").query([row[1:] for row in rows]).table
    for mark in ("", "\ufeff"):  # with and without the mark that spreadsheets put first
        path.write_text(mark + path.read_text(encoding="utf-8-sig"), encoding="utf-8")
        table = as_table(f"{QUERY} --boxes boxes.csv", dtype={"id": str}, keep_default_na=False)
        assert table["id"].tolist() == ["007", "7", "NA"]
        np.testing.assert_allclose(table["estimate"], expected["estimate"])
    records = as_json(f"{QUERY} --boxes boxes.csv")
    assert [record["id"] for record in records] == ["007", "7", "NA"]
    write_points(here / "b.csv", [(5, "x", -4, -4, 5)] * 2, "north, note,west,south , east")
    table = as_table(f"{QUERY} --boxes b.csv")
    assert table["id"].tolist() == [1, 2]
    np.testing.assert_allclose(table["estimate"], 22)
    write_points(here / "b.csv", [], SIDES)
    for form in ("csv", "json", "geojson", "table"):
        passes(f"{QUERY} --boxes b.csv --format {form}")
    text = passes(f"{QUERY} --boxes b.csv --format csv")
    assert text == ",".join(["id", *SIDES.split(","), *COLUMNS]) + "\n"


WRONG_BOXES = [
    (b"", 8, "first line"),
    (b"west,south,east\n1,2,3\n", 8, "north"),
    (b"west;south;east;north\n1;2;3;4.5,6\n", 8, "north"),
    (b"west,south,east,north\n0,0,1,x\n", 8, "line 2: north"),
    (b"west,south,east,north\n0,0,1,1\n0,0,,1\n", 8, "line 3"),
    (b"west,south,east,north\n0,0,1\n", 8, "line 2: north"),
    (b"west,south,east,north\n0,0,1,1,1\n", 8, "more fields"),
    (b"west,south,east,north\n0,0,1,1\n0,0,1,1,1\n", 8, "b.csv"),
    (b"west,south,east,north, west\n0,0,1,1,0\n", 8, "spaces alone"),
    (b'id,west,south,east,north\n"a,0,0,1,1\n', 8, "b.csv"),
    (f"이름,{SIDES}\n".encode("cp949"), 8, "UTF-8"),
    (b"id,west,south,east,north\nB7,1,0,0,1\n", 2, "box B7"),
    (b"west,south,east,north\n0,0,0,1\n", 2, "box 1"),
    (b"west,south,east,north\n0,0,inf,1\n", 8, "line 2: east is not a finite number"),
    (b"west,south,east,north\n6,6,7,7\n", 2, "outside"),
]


def test_boxes_that_are_refused(here, subtests):
    for content, code, told in WRONG_BOXES:
        with subtests.test(str(content)):
            (here / "b.csv").write_bytes(content)
            assert told in fails(code, f"{QUERY} --boxes b.csv --format csv")
    (here / "folder").mkdir()
    (here / "text.gpkg").write_text("no geopackage")
    (here / "table.csv").write_text("a,b\n1,2\n")
    pd.DataFrame({"a": [1]}).to_parquet("plain.parquet")
    names = ("missing.gpkg", "folder", "text.gpkg", "plain.parquet", "table.csv")
    check_refusals(subtests, [(8, name, name) for name in names], f"{QUERY} --polygons")
    check_refusals(subtests, [(8, name, name) for name in names[:2]], f"{QUERY} --boxes")
    for name in ("missing.parquet", "table.csv"):
        fails(5, f"query {name} --box 0 0 1 1")


SHAPES = [shapely.box(*UPPER_TWO_ROWS), shapely.box(*OTHERS[1])]


def districts(**columns):
    return gpd.GeoDataFrame({"id": ["007", "8"], **columns}, geometry=SHAPES, crs="EPSG:4326")


def of_polygons(table, name):
    """Line that asks for the polygons of a file, which has the format of its ending."""
    table.to_parquet(name) if name.endswith(".parquet") else table.to_file(name)
    return f"{QUERY} --polygons {name}"


def test_polygons_answer_as_the_boxes_they_are(subtests):
    expected = psd.load("r.psd.parquet").query([UPPER_TWO_ROWS, OTHERS[1]]).table
    for name in ("d.gpkg", "d.geojson", "d.parquet"):
        with subtests.test(name):
            line = of_polygons(districts(people=[3, 4]), name)
            table = as_table(line, dtype={"id": str})
            assert list(table.columns) == ["id", "people", *COLUMNS]
            assert table["id"].tolist() == ["007", "8"]
            pd.testing.assert_frame_equal(table[COLUMNS], expected[COLUMNS], rtol=1e-9)
            features = features_of(line)
            assert [f["properties"]["id"] for f in features] == ["007", "8"]
            shapes = [shapely.geometry.shape(feature["geometry"]) for feature in features]
            assert all(a.equals(b) for a, b in zip(shapes, SHAPES, strict=True))
            assert passes(line).splitlines()[-2].split()[:2] == ["007", "19.0"]


def test_another_crs_dates_and_other_names_of_the_geometry_come_through():
    line = of_polygons(districts().to_crs("EPSG:3857"), "d.gpkg")
    assert as_table(line)["estimate"][0] == pytest.approx(19, abs=1e-3)
    shape = shapely.geometry.shape(features_of(line)[0]["geometry"])
    np.testing.assert_allclose(shape.bounds, UPPER_TWO_ROWS, atol=1e-9)
    table = districts(since=pd.to_datetime(["2020-01-31", "2021-01-01"])).rename_geometry("geom")
    line = of_polygons(table, "d.parquet")
    assert list(as_table(line).columns) == ["id", "since", *COLUMNS]
    record = as_json(line)[0]
    assert list(record) == ["id", "since", *COLUMNS]
    assert record["since"].startswith("2020-01-31")
    feature = features_of(line)[0]
    assert feature["properties"]["since"].startswith("2020-01-31")
    assert feature["geometry"]["type"] == "Polygon"


def shaped(shape):
    """Districts of another shape."""
    return districts().set_geometry([shape] * 2, crs="EPSG:4326")


NOWHERE = (
    'PROJCRS["nowhere",BASEGEOGCRS["n",DATUM["n",ELLIPSOID["n",6e6,0]]],CONVERSION["n",'
    'METHOD["Mercator (variant A)"]],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    'LENGTHUNIT["metre",1],ID["EPSG",999999]]'
)
BOW_TIE = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])


def test_polygons_that_are_repaired_or_refused():
    repaired = as_table(f"{of_polygons(shaped(BOW_TIE), 'bow.gpkg')} --repair")
    assert len(repaired) == 2
    assert "--repair must be given with" in fails(2, f"{SMALL} --repair")
    # A code of no version of PROJ, which a file may state all the same.
    unknown = shaped(shapely.box(0, 0, 1, 1)).set_crs(NOWHERE, allow_override=True)
    said = fails(3, of_polygons(unknown, "nowhere.gpkg"))
    assert "has a CRS that PROJ does not know" in said


WRONG = {
    "--box": ("0 0 1 1 --boxes b.csv",),
    "--confidence": ("0", "1", "-0.5", "95", "nan", "high"),
    "--threshold": ("0", "-1", "nan", "low", "0.12,0.3,0.5", "0.3,0.12", "0.1,nan", "a,0.3"),
}


def test_confidence_and_threshold(subtests):
    usual, narrow = as_table(UPPER), as_table(f"{UPPER} --confidence 0.5")
    wide, short = (table["upper"][0] - table["estimate"][0] for table in (usual, narrow))
    assert wide / short == pytest.approx(1.959964 / 0.674490, rel=1e-5)
    relative = usual["relative_error"][0]
    for threshold, expected in ((relative * 1.01, True), (relative * 0.99, False)):
        assert as_table(UPPER, "--threshold", threshold)["reliable"].tolist() == [expected]
    fails(2, QUERY)
    for option, values in WRONG.items():
        line = QUERY if option == "--box" else SMALL
        check_refusals(subtests, [(2, value, "") for value in values], line, option)


def test_a_local_crs_has_no_way_to_another(release, here):
    three_by_three('LOCAL_CS["mine",UNIT["metre",1]]').save(release, overwrite=True)
    (here / "p.wkt").write_text("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
    told = "; is one of the two a local CRS, or one whose projection PROJ cannot compute?\n"
    for line in (
        f"{QUERY} --polygons p.wkt --polygons-crs EPSG:4326",
        f"{SMALL} --format geojson",
        "export r.psd.parquet cells.geojson",
    ):
        assert fails(3, line).endswith(told)
    assert files(here) == ["p.wkt", "r.psd.parquet"]


def test_many_boxes_without_numba_name_the_extra(release, monkeypatch):
    (release.parent / "many.csv").write_text(
        "west,south,east,north\n" + "0.2,0.2,2,2\n" * 10_000, encoding="utf-8"
    )
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "psd.query.compiled_walk", raising=False)
    monkeypatch.delattr("psd.query.compiled_walk", raising=False)
    many = "query r.psd.parquet --boxes many.csv --format csv"
    outcome = cli(many)
    assert outcome.code == 0
    assert outcome.err.startswith("(10,000 boxes were answered by NumPy;")
    assert "'.[fast]'" in outcome.err
    assert outcome.out == passes(f"{many} --quiet")
    monkeypatch.delitem(sys.modules, "numba")


def test_a_mean_has_the_decimals_of_its_narrowest_interval():
    """An error of 0.004 beside a mean of 15.3 would say that the interval is a point."""
    fares = pd.DataFrame(
        {
            "mean_fare": [15.2994, 15.0],
            "mean_fare_error": [0.004, 2.5],
            "mean_fare_lower": [15.29, 10.0],
            "mean_fare_upper": [15.308, 20.0],
        }
    )
    assert {mean_decimals(fares, name) for name in fares} == {3}
    assert column_texts("mean_fare", fares["mean_fare"], 3) == ["15.299", "15.000"]
    for width, decimals in ((1e6, 0), (12.0, 0), (1.2, 1), (0.0, 0), (1e-9, 6)):
        ends = {"mean_price_lower": [4e5], "mean_price_upper": [4e5 + width]}
        prices = pd.DataFrame({"mean_price": [4e5], **ends, "mean_age": 1.0, "estimate": 2.0})
        assert mean_decimals(prices, "mean_price") == decimals
        assert mean_decimals(prices, "mean_age") is None
        assert mean_decimals(prices, "estimate") is None
