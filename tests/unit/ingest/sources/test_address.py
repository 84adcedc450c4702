"""Objects of stores: the same tallies as of files, from a server of this machine; no network."""

import io

import duckdb
import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import InputDataError, ParameterError
from psd.ingest.input_names import input_names
from psd.ingest.sources import Columns, read
from support.object_store import object_store

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10))
TABLE = pd.DataFrame(
    {"lon": np.arange(400) % 11 + 0.5, "lat": np.arange(400) % 7 + 0.25, "user": "u", "note": "x"}
)


def parquet(table=TABLE):
    content = io.BytesIO()
    table.to_parquet(content, row_group_size=100)
    return content.getvalue()


OBJECTS = {
    "a/visits.parquet": parquet(),
    "a/visits.csv": TABLE.to_csv(index=False).encode(),
    "a/day=2024-01-31/part.parquet": parquet(),
    "a/points.gpkg": b"SQLite format 3\0",
    "a/broken.parquet": b"PAR1 broken",
    "a/other.csv": b"this,that\n1,2\n",
}


@pytest.fixture(scope="module")
def store():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with object_store(OBJECTS) as made:
            yield made


def rows(data, **columns):
    batches = list(read(data, Columns(**columns), DOMAIN))
    return np.sort(np.concatenate([[], *(batch.x + 100 * batch.y for batch in batches)]))


@pytest.mark.deep
def test_objects_have_the_records_of_files(store):
    _, address = store
    for key in ("a/visits.parquet", "a/visits.csv"):
        np.testing.assert_array_equal(rows(address(key)), rows(TABLE))
        np.testing.assert_array_equal(rows([address(key), TABLE]), np.repeat(rows(TABLE), 2))
    batches = list(read(address("a/day=2024-01-31/part.parquet"), Columns(time="day"), DOMAIN))
    assert {str(day)[:10] for batch in batches for day in batch.time} == {"2024-01-31"}
    release = psd.build(
        address("a/visits.parquet"), domain=DOMAIN, epsilon=1000, method="grid",
        user="user", max_contributions=400,
    )  # fmt: skip
    assert release.total == pytest.approx((TABLE.lon <= 10).sum(), abs=30)


@pytest.mark.deep
def test_what_cannot_be_read_is_refused(subtests, store):
    server, address = store
    for words, keys in [
        ("must be an object", ["a/none.parquet"]),
        ("must be an object", ["a/"]),
        ("must be Parquet or CSV at an address", ["a/points.gpkg"]),
        ("cannot be read as Parquet", ["a/broken.parquet"]),
        ("no column 'lon'", ["a/other.csv"]),
        ("repeated", ["a/visits.csv"] * 2),
    ]:
        with subtests.test(keys=keys):
            with pytest.raises(InputDataError, match=words) as raised:
                rows([address(key) for key in keys])
            assert "endpoint" not in str(raised.value)
    batches = read(address("a/visits.parquet"), Columns(), DOMAIN)
    next(batches)
    server.times["a/visits.parquet"] = 1.8e9
    with pytest.raises(InputDataError, match="changed while it was read"):
        list(batches)


def test_a_ledger_registers_addresses_and_no_tables():
    assert input_names("s3://city/a.parquet") == ("address s3://city/a.parquet",)
    query = psd.sources.DuckDB(duckdb.connect(), "SELECT 1 AS lon, 1 AS lat")
    for item in ("s3://key:secret@city/a.parquet", np.zeros((1, 2)), query):
        assert input_names(item) == ("",)
    with pytest.raises(InputDataError, match="must have no user and no password") as raised:
        rows("s3://key:secret@city/a.parquet")
    assert "secret" not in str(raised.value)


@pytest.mark.deep
def test_a_store_that_is_not_there(monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    closed = "?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with pytest.raises(InputDataError, match="cannot be reached; are the network"):
        rows(f"s3://city/a.parquet{closed}")


@pytest.mark.deep
def test_other_addresses_say_what_to_pass_instead(store, monkeypatch):
    for scheme in ("https", "http", "ftp"):
        with pytest.raises(InputDataError) as raised:
            rows(f"{scheme}://example.org/visits.parquet")
        assert str(raised.value) == (
            f"{scheme}:// addresses are not read; download the file, or pass a table, in Python "
            f"such as pandas.read_csv('{scheme}://...')"
        )
    monkeypatch.setenv("no_proxy", "*")
    server, _ = store
    for reader in (pd.read_csv, pd.read_parquet):  # need no further package
        ending = reader.__name__.removeprefix("read_")
        address = f"http://127.0.0.1:{server.server_address[1]}/city/a/visits.{ending}"
        np.testing.assert_array_equal(rows(reader(address)), rows(TABLE))


def test_arrays_have_two_columns_or_names(subtests):
    array = TABLE[["lon", "lat"]].to_numpy()
    np.testing.assert_array_equal(rows(array), rows(TABLE))
    np.testing.assert_array_equal(rows(array, x="east", y="north"), rows(TABLE))
    np.testing.assert_array_equal(rows(TABLE.to_records(index=False)), rows(TABLE))
    masked = np.ma.masked_equal([[1, 2], [3, -1]], -1)
    assert np.isnan(rows(masked)).tolist() == [False, True]
    shape = r"must have the shape \(n, 2\) and numbers.* got shape \(n, 3\)"
    for words, array, columns in [
        (shape, np.zeros((7, 3)), {}),
        (r"got shape \(n\)", np.zeros(7), {}),
        (r"got shape \(\)", np.array(7.0), {}),
        ("numbers", np.array([["a", "b"]]), {}),
        ("two columns has no users", np.zeros((7, 2)), {"user": "id"}),
        ("must be finite", np.array([[np.inf, 0]]), {}),
        ("no column 'lon'", np.zeros(2, [("x", float), ("lat", float)]), {}),
    ]:
        with subtests.test(words), pytest.raises(InputDataError, match=words):
            rows(array, **columns)


def test_a_query_is_one_select():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT 1.5 AS lon, 2.5 AS lat")
    assert rows(psd.sources.DuckDB(connection, "FROM visits")).tolist() == [251.5]
    for query, words in [
        *((query, "one SELECT") for query in ("DROP TABLE visits", "SELECT 1; SELECT 2", "")),
        *((query, "cannot be run") for query in ("SELEC", "SELECT * FROM none")),
        ("SELECT error('value 77')::DOUBLE AS lon, lat FROM visits", "DuckDBPyRelation|run"),
    ]:
        with pytest.raises(InputDataError, match=words) as raised:
            rows(psd.sources.DuckDB(connection, query))
        assert "77" not in str(raised.value)
    assert connection.sql("SELECT count(*) FROM visits").fetchall() == [(1,)]
    for given, query, words in [
        ("visits.duckdb", "FROM visits", "connection must be one of DuckDB"),
        (connection, 5, "query must be a text"),
    ]:
        with pytest.raises(ParameterError, match=words):
            psd.sources.DuckDB(given, query)
    assert "visits" not in repr(psd.sources.DuckDB(connection, "FROM visits"))


@pytest.mark.deep
def test_a_lazy_frame_is_collected_when_it_is_read():
    import polars as pl

    lazy = pl.from_pandas(TABLE).lazy()
    np.testing.assert_array_equal(rows(lazy.filter(pl.col("lon") < 5)), rows(TABLE[TABLE.lon < 5]))
    assert rows(lazy.filter(pl.col("lon") > 50)).size == 0
    text = lazy.with_columns(pl.col("note").cast(pl.Int64).alias("lat"))
    for broken in (lazy.select(pl.col("none")), text):
        with pytest.raises(InputDataError, match="cannot be collected") as raised:
            rows(broken)
        assert "none" not in str(raised.value)
