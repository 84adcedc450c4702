"""psd query -o: the caller's columns come back, read by other programs than wrote them."""

import csv
import datetime as dt
import json
import math
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import geopandas as gpd
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

import psd
from support.cli_runner import fails, passes
from support.programs import ogrinfo
from support.releases import as_drawn

ZONE = dt.timezone(dt.timedelta(hours=9))
DAY, MOMENT = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5)
FAR = pa.array([4_000_000], pa.int32()).cast(pa.date32())

# Column, the value of its first row, and the same as text; the second row has no value.
COLUMNS = {
    "whole": (pa.int64(), 7, "7"),
    "truth": (pa.bool_(), True, "True"),
    "share": (pa.float64(), 0.1 + 0.2, "0.30000000000000004"),
    "name": (pa.string(), "=1+1", "=1+1"),
    "sort": (pa.dictionary(pa.int8(), pa.string()), "a", "a"),
    "id16": (pa.int64(), 2**53 - 1, "9007199254740991"),
    "id17": (pa.int64(), 90071992547409931, "90071992547409931"),
    "unsigned": (pa.uint64(), 2**64 - 1, "18446744073709551615"),
    "endless": (pa.float64(), math.inf, "Infinity"),
    "day": (pa.date32(), DAY, "2024-01-02"),
    "far": (pa.date32(), FAR[0], "+012921-08-18"),
    "old": (pa.timestamp("us"), dt.datetime(1066, 10, 14), "1066-10-14T00:00:00"),
    "moment": (pa.timestamp("ms"), MOMENT, "2024-01-02T03:04:05"),
    "fine": (pa.timestamp("us"), MOMENT.replace(microsecond=1), "2024-01-02T03:04:05.000001"),
    "zoned": (pa.timestamp("ms", "Asia/Seoul"), MOMENT.replace(tzinfo=ZONE),
              "2024-01-02T03:04:05+09:00"),
    "clock": (pa.time32("s"), dt.time(1, 2, 3), "01:02:03"),
    "span": (pa.duration("s"), dt.timedelta(1, 5), "P1DT0H0M5S"),
    "price": (pa.decimal128(20, 2), Decimal("1.10"), "1.10"),
    "raw": (pa.binary(), b"\0\xff", "00ff"),
    "tags": (pa.list_(pa.string()), ["a", "b"], '["a", "b"]'),
    "more": (pa.struct([("k", pa.int64())]), {"k": 2**60}, '{"k": 1152921504606846976}'),
}  # fmt: skip
TEXTS = {name: text for name, (_, _, text) in COLUMNS.items()}
BASIC = {"whole": 7, "truth": True, "share": 0.1 + 0.2}

# What is not a text in a file, by its format.
AS_IS = {
    # All are texts, and an apostrophe stands before what would be a formula.
    "csv": {"endless": "inf", "name": "'=1+1", "far": "'+012921-08-18"},
    "json": {**BASIC, "id16": 2**53 - 1, "tags": ["a", "b"], "more": {"k": str(2**60)}},
    "xlsx": {
        **BASIC,
        "share": 0.3,  # openpyxl writes 16 digits
        "day": dt.datetime(2024, 1, 2),
        "moment": MOMENT,
        "clock": dt.time(1, 2, 3),
    },
    "gpkg": {
        **BASIC, "id16": 2**53 - 1, "id17": 90071992547409931, "endless": math.inf,
        "day": "2024-01-02", "raw": b"\0\xff", "old": "1066-10-14T00:00:00.000",
        "moment": "2024-01-02T03:04:05.000", "zoned": "2024-01-02T03:04:05.000+09:00",
    },
    "fgb": {
        **BASIC, "id16": 2**53 - 1, "id17": 90071992547409931, "endless": math.inf,
        "raw": b"\0\xff",
    },
    "pmtiles": {**BASIC, "id16": 2**53 - 1},
    "parquet": {name: value for name, (_, value, _) in COLUMNS.items()},
}  # fmt: skip
AS_IS["geojson"] = AS_IS["json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    domain = psd.Domain(bounds=(0, 0, 8, 8))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), [500, 100, 0, 200], 1, domain=domain
    )
    as_drawn(release).save(folder / "r")
    arrays = {name: typed(kind, value) for name, (kind, value, _) in COLUMNS.items()}
    shapes = pa.array(shapely.to_wkb(shapely.box([0, 4], [0, 4], [3, 7], [3, 7])))
    columns = {"columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"]}}}
    geo = {"version": "1.1.0", "primary_column": "geometry", **columns}
    table = pa.table({**arrays, "geometry": shapes})  # of another program: pandas says nothing
    table = table.replace_schema_metadata({b"geo": json.dumps(geo).encode()})
    pq.write_table(table, folder / "p.parquet")
    return folder


def typed(kind, value):
    """Array of a value, and none."""
    if isinstance(value, pa.Scalar):
        return pa.concat_arrays([FAR, pa.nulls(1, kind)])
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.array([value, None], plain).cast(kind)


@pytest.fixture(autouse=True)
def working(folder, monkeypatch):
    monkeypatch.chdir(folder)


def read(ending):
    """Rows of answers, by readers of their own, in the order of the regions."""
    path = f"a.{ending}"
    if ending == "csv":
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [{name: value or None for name, value in row.items()} for row in rows]
    if ending == "json":
        return json.loads(Path(path).read_text(encoding="utf-8"))
    if ending == "geojson":
        collection = json.loads(Path(path).read_text(encoding="utf-8"))
        return [feature["properties"] for feature in collection["features"]]
    if ending == "xlsx":
        names, *rows = openpyxl.load_workbook(path)["answers"].values
        return [dict(zip(names, row, strict=True)) for row in rows]
    if ending == "gpkg":
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT * FROM answers ORDER BY fid")
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]
    if ending == "parquet":
        table = pq.read_table(path)
        if "far" not in table.column_names:
            return table.to_pylist()
        rows = table.drop_columns(["far"]).to_pylist()  # Python has no date after 9999
        return [
            row | {"far": far if far.is_valid else None}
            for row, far in zip(rows, table["far"], strict=True)
        ]
    _, frame = pyogrio.read_arrow(path, datetime_as_string=True)
    rows = frame.to_pandas(types_mapper=pd.ArrowDtype).sort_values("estimate", ascending=False)
    return [
        {k: None if v is pd.NA else v for k, v in row.items()} for row in rows.to_dict("records")
    ]


@pytest.mark.parametrize(
    "ending", ["csv", "json", "geojson", "xlsx", "gpkg", "fgb", "pmtiles", "parquet"]
)
def test_every_kind_comes_back(ending, subtests):
    passes(f"query r --polygons p.parquet --overwrite -o a.{ending}")
    first, second = read(ending)
    expected = TEXTS | AS_IS[ending]
    for name in COLUMNS:
        with subtests.test(name):
            assert first[name] == expected[name]
            assert isinstance(first[name], bool) or first[name] is not True
            assert second.get(name) is None
    for row in (first, second):
        assert float(row["estimate"]) > 0


def test_pages_and_screens_have_the_texts():
    page = passes("query r --polygons p.parquet --format html")
    for name, text in TEXTS.items():
        if name not in ("share", "endless"):  # numbers as people read them
            assert text.replace('"', "&quot;") in page or text in page, name
    assert "&lt;NA&gt;" not in page
    told = passes("query r --polygons p.parquet")
    assert "id17" not in told  # a column of texts tells regions apart; bytes and lists do not
    assert "=1+1" in told


@pytest.mark.deep
def test_joint_answers_and_rankings_have_the_columns_too(subtests):
    for line in ("query r --joint", "query r --top 1"):
        with subtests.test(line):
            told = json.loads(passes(f"{line} --polygons p.parquet --format json"))
            row = (told["answers"] if isinstance(told, dict) else told)[-1]
            assert set(COLUMNS) < set(row)
            assert row["tags"] in (["a", "b"], None)
            assert row["id17"] in (TEXTS["id17"], None)


@pytest.mark.deep
def test_gdal_and_duckdb_read_the_columns():
    import duckdb

    for ending in ("gpkg", "fgb", "geojson"):
        passes(f"query r --polygons p.parquet --overwrite -o a.{ending}")
        told = ogrinfo(f"a.{ending}", "-al")
        for name in ("id17", "unsigned", "span", "price", "far"):
            assert f"{TEXTS[name]}\n" in told, (ending, name)
    passes("query r --polygons p.parquet --overwrite -o a.parquet")
    found = duckdb.sql("SELECT unsigned, id17, price, tags, more, day, clock, raw FROM 'a.parquet'")
    first = found.fetchall()[0]
    assert first[:5] == (2**64 - 1, 90071992547409931, Decimal("1.10"), ["a", "b"], {"k": 2**60})
    assert first[5:] == (DAY, dt.time(1, 2, 3), b"\0\xff")
    table = gpd.read_parquet("a.parquet")
    assert str(table["whole"].dtype) == "Int64"
    assert table["tags"][0].tolist() == ["a", "b"]


def square(**columns):
    """Two regions with columns."""
    shapes = shapely.box([0, 4], [0, 4], [3, 7], [3, 7])
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=4326)


@pytest.mark.deep
def test_inputs_of_gdal_keep_whole_numbers_dates_and_times(folder):
    """GeoPackage, FlatGeobuf, GeoJSON and Shapefile; a code with a missing one stays a code."""
    codes = pd.array([90071992547409931, None], dtype="Int64")
    table = square(code=codes, name=["é", "ü"])
    for ending in ("gpkg", "fgb", "geojson", "shp"):
        encoding = {"encoding": "ISO-8859-1"} if ending == "shp" else {}
        kept = {"SPATIAL_INDEX": "NO"} if ending == "fgb" else {}
        table.to_file(f"in.{ending}", **encoding, **kept)
        passes(f"query r --polygons in.{ending} --overwrite -o a.csv")
        rows = read("csv")
        assert [row["code"] for row in rows] == ["90071992547409931", None], ending
        assert [row["name"] for row in rows] == ["é", "ü"], ending
    features = json.loads(square().to_json())
    for number, feature in enumerate(features["features"]):
        feature["properties"] = {
            "geometry": "g", "tags": ["a"], "more": {"k": [number]}, "yes": [True, None][number],
            "day": "2024-01-02", "at": "01:02:03", "seen": ["2024-01-02T03:04:05+09:00",
            "2024-01-02T03:04:05+01:00"][number],
        }  # fmt: skip
    (folder / "in.geojson").write_text(json.dumps(features))
    passes("query r --polygons in.geojson --overwrite -o a.geojson")
    rows = read("geojson")
    for row, feature in zip(rows, features["features"], strict=True):
        assert {name: row[name] for name in feature["properties"]} == feature["properties"]
    passes("query r --polygons in.geojson --overwrite -o a.gpkg")
    first, _ = read("gpkg")
    assert (first["geometry"], first["more"], first["yes"]) == ("g", '{"k": [0]}', 1)


def test_a_file_whose_types_pandas_cannot_read_is_read():
    kinds = {"tags": pa.list_(pa.string()), "more": pa.map_(pa.string(), pa.int64())}
    values = {"tags": [["a"], None], "more": [[("k", 1)], None]}
    columns = {name: pd.array(values[name], pd.ArrowDtype(kind)) for name, kind in kinds.items()}
    square(**columns).to_parquet("l.parquet")
    passes("query r --polygons l.parquet --overwrite -o a.json")
    assert [row["tags"] for row in read("json")] == [["a"], None]
    assert [row["more"] for row in read("json")] == [[["k", 1]], None]


def test_an_index_of_geopandas_is_a_column():
    square(code=["b", "a"], people=[1, 2]).set_index("code").to_parquet("i.parquet")
    passes("query r --polygons i.parquet --overwrite -o a.csv")
    assert [row["code"] for row in read("csv")] == ["b", "a"]


NAMES = [
    "fid", "ogc_fid", "geom", "rowid", "a b.c", "id", "bbox", "x" * 60, "2020", "geometry", "ä",
]  # fmt: skip
"""Names that formats have for columns of their own, or that are unusual."""

REFUSED = [
    ({"Estimate": 1}, "gpkg fgb pmtiles", "got 'Estimate' and 'estimate'"),
    ({"note": "a\0b"}, "gpkg fgb pmtiles", "column 'note' must have texts without"),
    ({"text": "x" * 32_768}, "xlsx", "column 'text' must have texts of at most 32,767"),
]


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "pmtiles", "csv", "json", "xlsx", "parquet"])
def test_names_of_columns_come_back(ending):
    table = square(**{name: [7, 8] for name in NAMES if name != "geometry"})
    table.rename_geometry("shape").assign(geometry=[7, 8]).to_parquet("n.parquet")
    passes(f"query r --polygons n.parquet --overwrite -o a.{ending}")
    for row, value in zip(read(ending), ("7", "8"), strict=True):
        assert [str(row[name]) for name in NAMES] == [value] * len(NAMES)


@pytest.mark.deep
def test_what_a_format_cannot_write_is_refused_before_any_work(subtests, folder, monkeypatch):
    monkeypatch.setattr("psd.api.release.Release.query", None)  # not called
    for columns, endings, reason in REFUSED:
        square(**{name: [value, value] for name, value in columns.items()}).to_parquet("t.parquet")
        for ending in endings.split():
            with subtests.test(f"{reason} {ending}"):
                told = fails(6, f"query r --polygons t.parquet -o t.{ending}")
                assert reason in told
                assert not (folder / f"t.{ending}").exists()


@pytest.mark.deep
def test_names_that_an_option_adds_are_refused(subtests):
    for name, line in (
        ("flag", "--unreliable mark"),
        ("threshold", "--unreliable drop"),
        ("ring", "--nested"),
        ("joint_lower", "--joint"),
        ("estimate", "--format csv"),
    ):
        with subtests.test(name):
            square(**{name: [1, 2]}).to_parquet("t.parquet")
            assert f"a column {name}," in fails(2, f"query r --polygons t.parquet {line}")


def test_control_characters_in_a_workbook_are_escaped():
    square(note=["a\x01b", "_x0041_"]).to_parquet("t.parquet")
    passes("query r --polygons t.parquet --overwrite -o a.xlsx")
    assert [row["note"] for row in read("xlsx")] == ["a_x0001_b", "_x005F_x0041_"]


@pytest.mark.deep
def test_tables_and_boxes_are_read_from_workbooks_and_parquet(folder):
    sides = {"west": [0, 4], "south": [0, 4], "east": [3, 7], "north": [3, 7]}
    table = pd.DataFrame({"id": ["007", "x"], **sides, "seats": pd.array([3, None], "Int64")})
    table.to_excel("b.xlsx", index=False)
    table.to_parquet("b.parquet", index=False)
    table.to_csv("b.csv", index=False)
    answers = []
    for ending in ("csv", "xlsx", "parquet"):
        passes(f"query r --boxes b.{ending} --overwrite -o a.csv")
        answers.append((folder / "a.csv").read_text())
        passes(f"query r --boxes b.{ending} --overwrite -o a.json")
        assert [row["id"] for row in read("json")] == ["007", "x"]
    assert answers[1] == answers[2]
    assert ",7.0,7.0,," in answers[1]  # no seats
    with pd.ExcelWriter("two.xlsx") as writer:
        for sheet in ("one", "two"):
            table.to_excel(writer, sheet_name=sheet, index=False)
    assert "several layers (one, two)" in fails(8, "query r --boxes two.xlsx")


def test_python_gives_the_types_and_the_index_back(subtests):
    release = psd.load("r")
    kinds = {name: kind for name, (kind, _, _) in COLUMNS.items()}
    arrow = {name: typed(kinds[name], COLUMNS[name][1]) for name in kinds}
    del arrow["far"]  # cannot be compared
    columns: dict = {name: pd.arrays.ArrowExtensionArray(array) for name, array in arrow.items()}
    columns |= {
        "Int64": pd.array([1, None], "Int64"), "boolean": pd.array([True, None], "boolean"),
        "string": pd.array(["a", None], "string"), "sorts": pd.Categorical(["b", None], ["b", "a"]),
        "complex": np.array([1j, 2]), "objects": pd.Series([{1: 2}, {3}], dtype=object),
        "period": pd.period_range("2024-01", periods=2, freq="M").array,
    }  # fmt: skip
    table = square(**columns).set_index(pd.Index(["k", "l"], name="key"))
    answers = release.query(table).table
    assert answers.index.name == "key"
    for name in table.columns:
        with subtests.test(name):
            pd.testing.assert_series_equal(answers[name], table[name])
