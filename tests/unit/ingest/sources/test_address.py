"""Objects of stores: the same tallies as of files, from a server of this machine; no network."""

import io

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


@pytest.fixture
def store(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with object_store(OBJECTS) as (server, address):
        yield server, address


def rows(data, **columns):
    batches = list(read(data, Columns(**columns), DOMAIN))
    return np.sort(np.concatenate([[], *(batch.x + 100 * batch.y for batch in batches)]))


@pytest.mark.parametrize("key", ["a/visits.parquet", "a/visits.csv"])
def test_objects_have_the_records_of_files(store, key):
    _, address = store
    np.testing.assert_array_equal(rows(address(key)), rows(TABLE))
    np.testing.assert_array_equal(rows([address(key), TABLE]), np.repeat(rows(TABLE), 2))


def test_a_release_is_built_from_an_address(store):
    _, address = store
    release = psd.build(
        address("a/visits.parquet"), domain=DOMAIN, epsilon=1000, method="grid",
        user="user", max_contributions=400,
    )  # fmt: skip
    assert release.total == pytest.approx((TABLE.lon <= 10).sum(), abs=30)


def test_values_in_names_of_folders_are_read(store):
    _, address = store
    batches = list(read(address("a/day=2024-01-31/part.parquet"), Columns(time="day"), DOMAIN))
    assert {str(day)[:10] for batch in batches for day in batch.time} == {"2024-01-31"}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("a/none.parquet", "must be an object"),
        ("a/", "must be an object"),
        ("a/points.gpkg", "must be Parquet or CSV at an address"),
        ("a/broken.parquet", "cannot be read as Parquet"),
        ("a/other.csv", "no column 'lon'"),
    ],
)
def test_what_cannot_be_read_is_refused(store, key, words):
    _, address = store
    with pytest.raises(InputDataError, match=words) as raised:
        rows(address(key))
    assert "endpoint" not in str(raised.value)


def test_an_object_that_changes_is_refused(store):
    server, address = store
    batches = read(address("a/visits.parquet"), Columns(), DOMAIN)
    next(batches)
    server.times["a/visits.parquet"] = 1.8e9
    with pytest.raises(InputDataError, match="changed while it was read"):
        list(batches)


def test_an_address_twice_is_refused(store):
    _, address = store
    with pytest.raises(InputDataError, match="repeated"):
        rows([address("a/visits.csv")] * 2)


def test_passwords_in_addresses_are_refused_and_not_shown():
    with pytest.raises(InputDataError, match="must have no user and no password") as raised:
        rows("s3://key:secret@city/a.parquet")
    assert "secret" not in str(raised.value)


def test_a_store_that_is_not_there(monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    closed = "?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with pytest.raises(InputDataError, match="cannot be reached; are the network"):
        rows(f"s3://city/a.parquet{closed}")


@pytest.mark.parametrize("scheme", ["https", "http", "ftp"])
def test_other_addresses_say_what_to_pass_instead(scheme):
    with pytest.raises(InputDataError) as raised:
        rows(f"{scheme}://example.org/visits.parquet")
    assert str(raised.value) == (
        f"{scheme}:// addresses are not read; download the file, or pass a table, in Python such "
        f"as pandas.read_csv('{scheme}://...')"
    )


@pytest.mark.parametrize(("ending", "reader"), [("csv", "read_csv"), ("parquet", "read_parquet")])
def test_the_table_that_is_passed_instead_has_the_same_records(store, monkeypatch, ending, reader):
    """What the sentence says works without a further package."""
    monkeypatch.setenv("no_proxy", "*")
    server, _ = store
    address = f"http://127.0.0.1:{server.server_address[1]}/city/a/visits.{ending}"
    np.testing.assert_array_equal(rows(getattr(pd, reader)(address)), rows(TABLE))


def test_a_ledger_registers_addresses_and_no_tables():
    assert input_names("s3://city/a.parquet") == ("address s3://city/a.parquet",)
    assert input_names("s3://key:secret@city/a.parquet") == ("",)
    import duckdb

    for item in (np.zeros((1, 2)), psd.DuckDB(duckdb.connect(), "SELECT 1 AS lon, 1 AS lat")):
        assert input_names(item) == ("",)


def test_arrays_have_two_columns_or_names():
    array = TABLE[["lon", "lat"]].to_numpy()
    np.testing.assert_array_equal(rows(array), rows(TABLE))
    np.testing.assert_array_equal(rows(array, x="east", y="north"), rows(TABLE))
    np.testing.assert_array_equal(rows(TABLE.to_records(index=False)), rows(TABLE))
    masked = np.ma.masked_equal([[1, 2], [3, -1]], -1)
    assert np.isnan(rows(masked)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("array", "columns", "words"),
    [
        (np.zeros((7, 3)), {}, r"must have the shape \(n, 2\) and numbers.* got shape \(n, 3\)"),
        (np.zeros(7), {}, r"got shape \(n\)"),
        (np.array(7.0), {}, r"got shape \(\)"),
        (np.array([["a", "b"]]), {}, "numbers"),
        (np.zeros((7, 2)), {"user": "id"}, "two columns has no users"),
        (np.array([[np.inf, 0]]), {}, "must be finite"),
        (np.zeros(2, [("x", float), ("lat", float)]), {}, "no column 'lon'"),
    ],
)
def test_other_arrays_are_refused(array, columns, words):
    with pytest.raises(InputDataError, match=words):
        rows(array, **columns)


def test_a_query_is_one_select():
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT 1.5 AS lon, 2.5 AS lat")
    assert rows(psd.DuckDB(connection, "FROM visits")).tolist() == [251.5]
    for query, words in [
        ("DROP TABLE visits", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("SELEC", "cannot be run"),
        ("SELECT * FROM none", "cannot be run"),
        ("SELECT error('value 77')::DOUBLE AS lon, lat FROM visits", "DuckDBPyRelation|run"),
    ]:
        with pytest.raises(InputDataError, match=words) as raised:
            rows(psd.DuckDB(connection, query))
        assert "77" not in str(raised.value)
    assert connection.sql("SELECT count(*) FROM visits").fetchall() == [(1,)]
    with pytest.raises(ParameterError, match="connection must be one of DuckDB"):
        psd.DuckDB("visits.duckdb", "FROM visits")
    with pytest.raises(ParameterError, match="query must be a text"):
        psd.DuckDB(connection, 5)
    assert "visits" not in repr(psd.DuckDB(connection, "FROM visits"))


def test_a_lazy_frame_is_collected_when_it_is_read():
    pl = pytest.importorskip("polars")
    lazy = pl.from_pandas(TABLE).lazy()
    np.testing.assert_array_equal(rows(lazy.filter(pl.col("lon") < 5)), rows(TABLE[TABLE.lon < 5]))
    assert rows(lazy.filter(pl.col("lon") > 50)).size == 0
    for broken in (
        lazy.select(pl.col("none")),
        lazy.with_columns(pl.col("note").cast(pl.Int64).alias("lat")),
    ):
        with pytest.raises(InputDataError, match="cannot be collected") as raised:
            rows(broken)
        assert "none" not in str(raised.value)
