"""Names of ids are found by a list of names, in every kind of input, without reading records."""

import gzip
import io
import sys
import tempfile

import geopandas as gpd
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd.ingest.id_columns import ID_NAMES, Header, headers_of
from psd.ingest.id_columns import id_columns as ids_of
from psd.ingest.sources import Columns

COLUMNS = Columns()


def id_columns(data, columns):
    return ids_of(headers_of(data, columns))


def test_names_of_ids(subtests):
    for name, shown in [
        *((name, (name,)) for name in ("user_id", "User ID", "customerNo", "IMEI")),
        *((name, (name,)) for name in ("patient", "Client", "customer", "DRIVER", "nhs_number")),
        *((name, (name,)) for name in ("patient_id", "PatientID", "client no", "NHS number")),
        *((name, (name,)) for name in ("licence-plate", "device.uuid")),
        # What is more than a name of the list with separators may be a value.
        ("사용자 user id", ("userid",)),
        ("user: 홍길동", ("user",)),
        ("#user--id", ("userid",)),
        *((name, ()) for name in ("id", "ID", "note", "used", "time", "userland", "id_of_row")),
        ("사용자", ()),
    ]:
        with subtests.test(name):
            assert id_columns(pd.DataFrame(columns=["lon", "lat", name]), COLUMNS) == shown
    assert all(name.isalnum() and name == name.lower() for name in ID_NAMES)
    assert "id" not in ID_NAMES


TABLE = pd.DataFrame({"lon": [1.0], "lat": [2.0], "user_id": ["a"]})


def test_all_kinds_of_inputs(tmp_path):
    shapes = gpd.points_from_xy(TABLE.lon, TABLE.lat)
    points = gpd.GeoDataFrame(TABLE[["user_id"]], geometry=shapes, crs="EPSG:4326")
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    TABLE.to_parquet(tmp_path / "a.parquet")
    points.to_file(tmp_path / "a.gpkg")
    files = [tmp_path / name for name in ("a.csv", "a.parquet", "a.gpkg")]
    tables = [points, pa.Table.from_pandas(TABLE), [tmp_path / "a.csv", TABLE]]
    for item in [*files, str(files[0]), *tables, tmp_path]:
        assert id_columns(item, COLUMNS) == ("user_id",), item


def test_no_feature_decides_whether_ids_are_warned_of(tmp_path):
    points = gpd.GeoDataFrame(TABLE[["user_id"]], geometry=[shapely.Point(1, 2)], crs="EPSG:4326")
    for name in ("a.geojson", "a.geojsonl"):
        points.to_file(tmp_path / name)
        assert headers_of(tmp_path / name, COLUMNS) == [Header([], has_geometries=True)]


@pytest.mark.deep
def test_a_table_of_polars():
    import polars as pl

    assert id_columns(pl.from_pandas(TABLE), COLUMNS) == ("user_id",)


TEXT = "lon,lat,User ID\r\n1,2,a\r\n"


def test_the_line_of_names_is_that_of_the_reader(subtests, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    for name, raw, options in [
        ("a title", b"Visits of users\n\n" + TEXT.encode(), {"skip_rows": 2}),
        ("UTF-16", TEXT.encode("utf-16"), {}),
        ("cp1252", b"Stra\xdfe\n" + TEXT.encode(), {"skip_rows": 1, "encoding": "cp1252"}),
        ("gzip", gzip.compress(b"a title\n" + TEXT.encode()), {"skip_rows": 1}),
    ]:
        with subtests.test(name):
            path.write_bytes(raw)
            assert id_columns(path, Columns(**options)) == ("User ID",)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw))))
            if name != "gzip":  # a compressed stream may end anywhere
                assert id_columns("-", Columns(**options)) == ("User ID",)
                assert sys.stdin.buffer.read() == raw
    book = openpyxl.Workbook()
    for row in [["Visits of users"], ["lon", "lat", "User ID"], [1, 2, "a"]]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert id_columns(tmp_path / "a.xlsx", Columns(skip_rows=1)) == ("User ID",)
    assert id_columns(tmp_path / "a.xlsx", Columns()) == ()


def test_the_start_of_standard_input_is_in_no_file(tmp_path, monkeypatch):
    """A kill would leave it there, so there need not be a folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    text = io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode())))
    monkeypatch.setattr(sys, "stdin", text)
    assert id_columns("-", Columns()) == ("User ID",)


def test_what_cannot_be_read_is_left_to_the_reader(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "a.gpkg").write_bytes(b"no")
    (tmp_path / "a.csv").write_bytes(b"user_id\n")  # no coordinates: perhaps a record
    database = psd.sources.PostGIS("postgresql://a@b/c", table="user_id")
    for item in [*map(str, tmp_path.iterdir()), "-", "none.csv", database, 5, None]:
        assert id_columns(item, COLUMNS) == (), item
