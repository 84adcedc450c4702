"""Names of ids are found by a list of names, in every kind of input, without reading records."""

import gzip
import io
import sys

import geopandas as gpd
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import psd
from psd.ingest.id_columns import ID_NAMES, id_columns
from psd.ingest.sources import Columns

COLUMNS = Columns()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *((name, name) for name in ("user_id", "User ID", "customerNo", "IMEI", "licence-plate")),
        ("device.uuid", "device.uuid"),
        # What is more than a name of the list with separators may be a value.
        ("사용자 user id", "userid"),
        ("user: 홍길동", "user"),
        ("#user--id", "userid"),
    ],
)
def test_names_of_ids(name, shown):
    assert id_columns(pd.DataFrame(columns=["lon", "lat", name]), COLUMNS) == (shown,)


@pytest.mark.parametrize(
    "name", ["id", "ID", "note", "used", "time", "userland", "id_of_row", "사용자"]
)
def test_other_names(name):
    assert id_columns(pd.DataFrame(columns=["lon", "lat", name]), COLUMNS) == ()


def test_all_kinds_of_inputs(tmp_path):
    table = pd.DataFrame({"lon": [1.0], "lat": [2.0], "user_id": ["a"]})
    points = gpd.GeoDataFrame(
        table[["user_id"]], geometry=gpd.points_from_xy(table.lon, table.lat), crs="EPSG:4326"
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    points.to_file(tmp_path / "a.gpkg")
    files = [tmp_path / name for name in ("a.csv", "a.parquet", "a.gpkg")]
    tables = [points, pa.Table.from_pandas(table), pl.from_pandas(table)]
    for item in [*files, str(files[0]), *tables, [tmp_path / "a.csv", table], tmp_path]:
        assert id_columns(item, COLUMNS) == ("user_id",), item


TEXT = "lon,lat,User ID\r\n1,2,a\r\n"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        pytest.param("Visits of users\n\n" + TEXT, {"skip_rows": 2}, id="a title"),
        pytest.param(TEXT.encode("utf-16"), {}, id="UTF-16"),
        pytest.param("Straße\n".encode("cp1252") + TEXT.encode(),
                     {"skip_rows": 1, "encoding": "cp1252"}, id="cp1252"),
        pytest.param(gzip.compress(b"a title\n" + TEXT.encode()), {"skip_rows": 1}, id="gzip"),
    ],
)  # fmt: skip
def test_the_line_of_names_is_that_of_the_reader(tmp_path, monkeypatch, content, options):
    raw = content.encode() if isinstance(content, str) else content
    (tmp_path / "a.csv").write_bytes(raw)
    assert id_columns(tmp_path / "a.csv", Columns(**options)) == ("User ID",)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw))))
    if raw[:2] != b"\x1f\x8b":  # a compressed stream may end anywhere
        assert id_columns("-", Columns(**options)) == ("User ID",)
        assert sys.stdin.buffer.read() == raw


def test_the_line_of_names_of_a_workbook(tmp_path):
    rows = [["Visits of users"], ["lon", "lat", "User ID"], [1, 2, "a"]]
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert id_columns(tmp_path / "a.xlsx", Columns(skip_rows=1)) == ("User ID",)
    assert id_columns(tmp_path / "a.xlsx", Columns()) == ()


def test_what_cannot_be_read_is_left_to_the_reader(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "a.gpkg").write_bytes(b"no")
    (tmp_path / "a.csv").write_bytes(b"user_id\n")  # no coordinates: perhaps a record
    database = psd.PostGIS("postgresql://a@b/c", table="user_id")
    for item in [*map(str, tmp_path.iterdir()), "-", "none.csv", database, 5, None]:
        assert id_columns(item, COLUMNS) == (), item


def test_plural_lists_have_plain_names():
    assert all(name.isalnum() and name == name.lower() for name in ID_NAMES)
    assert "id" not in ID_NAMES
