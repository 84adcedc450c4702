"""psd query -o: answers in files of other programs, with what the caller gave."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import geopandas as gpd
import numpy as np
import openpyxl
import pandas as pd
import pytest
import shapely

import psd
from psd_cli.output.answers import identifying_columns
from support.cli_runner import cli, fails, passes
from support.programs import ogrinfo
from support.releases import as_drawn

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
CODES = ["11040", "11010", "=1+2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release, and districts in metres with columns of several kinds, not in the order of ids."""
    folder = tmp_path_factory.mktemp("files")
    tree, counts = psd.decompositions.grid_tree(DOMAIN, 8), 100 + np.arange(64)
    as_drawn(psd.Release.from_counts(tree, counts, 1, domain=DOMAIN)).save(folder / "r")
    boxes = [(126.9, 37.5, 127.1, 37.6), (126.5, 37.1, 126.9, 37.3), (127.2, 37.7, 127.5, 37.9)]
    districts = gpd.GeoDataFrame(
        {"Gu code": CODES, "people": [5, 5, 7], "fid": [30, 10, 20], "share": [0.5, None, 0.1]},
        geometry=shapely.box(*np.transpose(boxes)),
        crs="EPSG:4326",
    )
    districts.to_crs("EPSG:5179").to_parquet(folder / "d.parquet")
    return folder


@pytest.fixture(autouse=True)
def working(folder, monkeypatch):
    monkeypatch.chdir(folder)


def answered(name, *options, regions="d.parquet"):
    """File of answers."""
    passes(f"query r --polygons {regions} --overwrite -o", name, *options)
    return name


def expected():
    return psd.load("r").query(gpd.read_parquet("d.parquet")).table


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return pd.DataFrame(json.load(file))


def read_csv(path):
    """A table whose texts have no apostrophe before what would be a formula."""
    return pd.read_csv(path).replace("^'=", "=", regex=True)


READERS = {
    "gpkg": lambda path: gpd.read_file(path, layer="answers"),
    "fgb": gpd.read_file,
    "parquet": gpd.read_parquet,
    "geojson": gpd.read_file,
    "csv": read_csv,
    "xlsx": pd.read_excel,
}


def test_columns_and_order_are_those_of_the_caller(subtests):
    answers = expected()
    for ending, read in READERS.items():
        with subtests.test(ending):
            table = read(answered(f"a.{ending}"))
            assert [name for name in table.columns if name != "geometry"] == [
                name for name in answers.columns if name != "geometry"
            ]
            for name in ("Gu code", "fid", "people"):
                assert table[name].astype(str).tolist() == answers[name].astype(str).tolist()
            if ending == "csv":  # a spreadsheet would run it
                assert "\n'=1+2," in Path(f"a.{ending}").read_text()
            for name in ("estimate", "lower", "relative_error"):
                assert table[name].tolist() == pytest.approx(answers[name].tolist())
            assert table["reliable"].astype(bool).tolist() == answers["reliable"].tolist()
            if "geometry" in table:
                assert table.crs == ("EPSG:4326" if ending == "geojson" else "EPSG:5179")
                shapes = answers.to_crs(table.crs).geometry
                apart = shapely.symmetric_difference(*map(np.asarray, (table.geometry, shapes)))
                assert (shapely.area(apart) < 2e-3 * shapely.area(np.asarray(shapes))).all()


def test_unreliable_rows_are_marked_or_dropped(subtests):
    answers = expected()
    reliable = answers.relative_error <= 0.05
    assert 0 < reliable.sum() < 3
    for ending in ("csv", "gpkg", "json", "geojson"):
        with subtests.test(ending):
            read = (READERS | {"json": read_json})[ending]
            options = ("--threshold", "0.05", "--unreliable")
            marked = read(answered(f"m.{ending}", *options, "mark"))
            assert (marked["flag"] == "u").tolist() == (~reliable).tolist()
            assert set(marked["threshold"]) == {0.05}
            line = f"query r --polygons d.parquet --overwrite -o d.{ending}"
            told = f"({3 - reliable.sum()} of 3 answers are unreliable and left out)\n"
            assert told in cli(line, *options, "drop").err
            dropped = read(f"d.{ending}")
            assert dropped["Gu code"].tolist() == answers["Gu code"][reliable].tolist()


@pytest.mark.deep
def test_gdal_and_duckdb_read_the_same():
    import duckdb

    total = expected().estimate.sum()
    for ending in ("gpkg", "fgb", "geojson"):
        layer = "a" if ending == "geojson" else "answers"
        query = f"SELECT sum(estimate) AS total FROM {layer}"
        told = ogrinfo(answered(f"a.{ending}"), "-q", "-dialect", "sqlite", "-sql", query)
        assert float(told.partition("total (Real) = ")[2].split()[0]) == pytest.approx(total)
    assert "epsilon=1\n" in ogrinfo("a.gpkg", "-al", "-so")
    for ending in ("parquet", "csv"):
        path = answered(f"a.{ending}")
        ((told,),) = duckdb.sql(f"SELECT sum(estimate) FROM '{path}'").fetchall()
        assert told == pytest.approx(total)


def test_boxes_series_pages_and_spreadsheets_say_what_they_are(folder, monkeypatch):
    (folder / "b.csv").write_text("west,south,east,north,town\n126.5,37.1,127,37.5,Ansan\n")
    passes("query r --boxes b.csv -o b.gpkg")
    table = gpd.read_file("b.gpkg", layer="answers")
    assert table.columns[:6].tolist() == ["id", "west", "south", "east", "north", "town"]
    assert table.geometry[0].bounds == (126.5, 37.1, 127, 37.5)
    assert table.crs == "EPSG:4326"
    # Styles of QGIS are no second layer of polygons.
    passes("export r cells.gpkg")
    # Its own columns are those of answers; that is all that is wrong with it.
    assert "must not have a column estimate" in fails(2, "query r --polygons cells.gpkg")
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    series = psd.Release.from_slices(months, [psd.load("r")] * 2)
    series.save("s")
    passes("query s --polygons d.parquet --each slice -o s.xlsx")
    assert pd.read_excel("s.xlsx")["slice"].tolist() == ["2024-01"] * 3 + ["2024-02"] * 3
    about = dict(openpyxl.load_workbook("s.xlsx")["about"].values)
    assert (about["epsilon"], about["digest"]) == ("2", series.digest)
    text = (folder / answered("a.html")).read_text(encoding="utf-8")
    assert text == passes("query r --polygons d.parquet --format html")
    assert all(code in text for code in CODES)
    assert "epsilon 1 per record" in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    book = openpyxl.load_workbook(answered("a.xlsx"))
    assert book.sheetnames == ["answers", "about"]
    column = [cell for (cell,) in book["answers"].iter_rows(min_row=2, max_col=1)]
    assert [(cell.value, cell.data_type) for cell in column] == [(code, "s") for code in CODES]
    assert book["answers"]["D3"].value is None
    about = dict(book["about"].values)
    assert (about["epsilon"], about["unit of privacy"]) == ("1", "per record")
    sheet = book["answers"]
    formats = {cell.value: sheet.cell(2, cell.column).number_format for cell in sheet[1]}
    assert (formats["estimate"], formats["Gu code"]) == ("#,##0.0", "General")
    assert formats["relative_error"] == '[>10]"above 1,000%";0.0%'
    assert about["confidence"] == "0.95 for lower to upper"
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    told = fails(7, "query r --box 126.5 37.1 127 37.5 -o n.xlsx")
    assert ".[xlsx]" in told
    assert not (folder / "n.xlsx").exists()


@pytest.fixture(scope="module")
def odd(folder):
    """Regions with columns that some formats have no type for."""
    geometry = gpd.read_parquet(folder / "d.parquet").to_crs("EPSG:4326").geometry
    features = json.loads(geometry.to_json())
    for number, feature in enumerate(features["features"]):
        feature["properties"] = {"id": number, "tags": ["a", "b"], "more": {"k": number}}
    (folder / "odd.geojson").write_text(json.dumps(features))
    return "odd.geojson"


def test_odd_columns_of_the_caller_come_through(odd, subtests, folder):
    for ending in (*READERS, "json", "html", "pmtiles"):
        with subtests.test(ending):
            out = answered(f"odd-answers.{ending}", regions=odd)
            if ending in READERS:
                table = READERS[ending](out)
                assert table["id"].tolist() == [0, 1, 2]
                assert all("a" in str(value) and "b" in str(value) for value in table["tags"])
    districts = gpd.read_parquet("d.parquet")
    districts.assign(NAME="a", name="b").to_parquet("names.parquet")
    told = fails(6, "query r --polygons names.parquet -o names.gpkg")
    assert "must differ in more than the case of letters in gpkg, got 'NAME' and 'name'" in told
    assert not (folder / "names.gpkg").exists()
    passes("query r --polygons names.parquet -o names.parquet2 --format parquet")


ALL = """
import sys
from psd_cli.main import run
release, regions = sys.argv[1:]
for ending in "gpkg parquet fgb geojson csv xlsx html json pmtiles".split():
    assert run(["query", release, "--polygons", regions, "-o", f"cut.{ending}"]) == 0, ending
for ending in "gpkg parquet fgb geojson csv xlsx pmtiles tif npy".split():
    assert run(["export", release, f"cut-cells.{ending}"]) == 0, ending
"""


@pytest.mark.deep
def test_every_format_is_written_without_a_network(folder, odd):
    cut = ["unshare", "--map-root-user", "--net"]
    works = shutil.which("unshare") and subprocess.run([*cut, "true"], check=False).returncode == 0
    if not works and "CI" not in os.environ:
        pytest.skip("this system does not let a process leave the network (unshare --net)")
    command = [*cut, sys.executable, "-c", ALL, "r", odd]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert len(list(folder.glob("cut*"))) == 18


TELLING = [
    ({"code": ["b", "a"], "people": [1, 2]}, ["code"]),
    ({"Name": ["b", "a"], "code": ["1", "2"], "x": ["p", "q"]}, ["Name", "code"]),
    ({"id": [7, 8], "name": ["b", "a"]}, ["id", "name"]),
    ({"id": [1, 2], "name": ["b", "a"]}, ["name"]),  # boxes without ids are numbered so
    ({"id": ["1", "2"], "name": ["b", "a"]}, ["id", "name"]),
    ({"id": [1, 2], "class": ["a", "a"]}, ["id"]),
    ({"id": [7, 8], "text": ["b" * 41, "a"]}, ["id"]),
    ({"text": ["b" * 41, "a"], "people": [1, 2]}, ["text"]),
    ({"people": [1, 2], "class": ["a", "a"]}, ["people"]),
    ({"class": ["a", "a"]}, ["class"]),
    ({"share": [0.1, 0.2]}, []),
    ({}, []),
]


def test_columns_that_tell_regions_apart(subtests):
    for columns, shown in TELLING:
        with subtests.test(str(columns)):
            table = pd.DataFrame({**columns, "estimate": [1.0, 2.0], "reliable": [True, False]})
            assert identifying_columns(table) == shown
