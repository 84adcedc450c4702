"""Names of ids are found by a list of names, in every kind of input, without reading records."""

import geopandas as gpd
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import psd
from psd.ingest.id_columns import ID_NAMES, id_columns
from psd.ingest.sources import Columns

COLUMNS = Columns()


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("user_id", "userid"),
        ("User ID", "userid"),
        ("customerNo", "customerno"),
        ("IMEI", "imei"),
        ("licence-plate", "licenceplate"),
        ("device.uuid", "deviceuuid"),
    ],
)
def test_names_of_ids(name, plain):
    assert id_columns(pd.DataFrame(columns=["lon", "lat", name]), COLUMNS) == (plain,)


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
        assert id_columns(item, COLUMNS) == ("userid",), item


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
