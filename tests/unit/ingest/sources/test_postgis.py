"""PostGIS: tables and queries of a real server, and what is said when they cannot be read."""

import datetime as dt
import os

import numpy as np
import pytest

import psd
from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.input_names import input_names
from psd.ingest.sources import Columns, read, resolve_inputs
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import privacy_unit
from support import batches
from support.batches import DOMAIN, SECRET
from support.postgres import execute, rows

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def database(postgis):
    execute(
        postgis,
        "CREATE SCHEMA city",
        "CREATE SEQUENCE city.ticket",
        """CREATE TABLE city.visits (
            lon float8, lat float4, n numeric(10, 3), id bigint, big numeric(20, 0), rough numeric,
            name text, who uuid, half float4, seen timestamptz, wall timestamp, day date,
            "Odd "" Name" int, place geometry(Point, 4326), other geometry, globe geography)""",
        """INSERT INTO city.visits VALUES
            (127.5, 37.5, 127.25, 9007199254740993, 12345678901234567890, 7.5, '007',
             'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1.5, '2024-01-31 10:00+09', '2024-01-31 10:00',
             '2024-01-31', 127, ST_SetSRID(ST_Point(127.5, 37.5), 4326),
             ST_Transform(ST_SetSRID(ST_Point(127.5, 37.5), 4326), 5179), 'POINT(127.5 37.5)'),
            ('NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
             ST_GeomFromText('POINT EMPTY', 5179), NULL)""",
    )
    return postgis


def source(url, table="city.visits", query=None):
    return psd.sources.PostGIS(url, table=None if query else table, query=query)


def one(url, *, table="city.visits", query=None, **columns):
    return batches.one(source(url, table, query), **columns)


def refused(url, *, error=InputDataError, table="city.visits", query=None, **columns):
    return batches.refused(source(url, table, query), error, **columns)


PLAIN = "SELECT lon, lat, n, id, seen FROM city.visits"


def test_columns_of_numbers_and_times(database):
    query = 'SELECT lon, lat, n, "Odd "" Name" FROM city.visits'
    for x, number in (("lon", 127.5), ("n", 127.25), ('Odd " Name', 127)):
        batch = one(database, query=query, x=x, y="lat")
        np.testing.assert_array_equal(batch.x, [number, np.nan])
        assert batch.y[0] == 37.5
    for time, hour in (("seen", 10), ("wall", 10), ("day", 0)):
        batch = one(database, geometry="place", time=time, time_zone="Asia/Seoul")
        assert batch.time.tolist() == [dt.datetime(2024, 1, 31, hour), None]
    none = source(database, query="SELECT * FROM city.visits WHERE false")
    columns, unit = Columns(geometry="place", user="name"), privacy_unit("name", 1)
    assert tally_batches(read(none, columns, DOMAIN), DOMAIN, unit=unit).report["read"] == 0


def test_geometries_are_brought_to_the_crs_of_the_domain(database):
    for geometry in ("place", "other", "globe"):
        batch = one(database, geometry=geometry)
        assert (batch.x[0], batch.y[0]) == pytest.approx((127.5, 37.5), abs=1e-9)
        assert np.isnan(batch.x[1])
    batch = one(database, query="SELECT name, other FROM city.visits;\n")  # needs no name
    assert batch.x[0] == pytest.approx(127.5, abs=1e-9)
    assert "place, other, globe" in refused(database)


def test_ids_keep_all_digits(subtests, database):
    for user, text in [
        ("id", "9007199254740993"),
        ("big", "12345678901234567890"),
        ("name", "007"),
        ("who", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("day", "2024-01-31"),
    ]:
        with subtests.test(user):
            assert one(database, geometry="place", user=user).user.to_pylist() == [text, None]
    for user in ("half", "rough", "n", "place"):
        with subtests.test(user):
            assert f"{user!r} of user ids" in refused(database, geometry="other", user=user)


BIDS = {
    "whole int": ([2, None, -3], [2, np.nan, -3]),
    "large bigint": ([2**53, 0, None], [2**53, 0, np.nan]),
    "plain float8": ([2.5, "'NaN'", "'inf'"], [2.5, np.nan, np.nan]),
    "short float4": ([2.5, "'-inf'", None], [2.5, np.nan, np.nan]),
    "exact numeric(10,2)": (["2.50", None, "'NaN'"], [2.5, np.nan, np.nan]),
    "wide numeric": (["1e400", "-1e400", "1e-400"], [np.nan, np.nan, 0]),
    "words text": (["' 2.5 '", "'many'", "''"], [2.5, np.nan, np.nan]),
    "codes varchar": (["'1e999'", "'nan'", "'1_0'"], [np.nan, np.nan, np.nan]),
    "truth boolean": (["true", "false", None], [np.nan] * 3),
    "cash money": (["'2.50'", None, "'-7'"], [2.5, np.nan, -7]),
    "moment date": (["'2024-01-31'", None, None], [np.nan] * 3),
    "list int[]": (["'{1,2}'", None, None], [np.nan] * 3),
    "value jsonb": (["'{}'", "'2'", None], [np.nan] * 3),
    "who uuid": (["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", None, None], [np.nan] * 3),
}


def test_no_bid_and_no_type_of_bids_stops_a_reading(database):
    """Whether a record has a bid, and which, must not decide whether a table is read."""
    values = zip(*(given for given, _ in BIDS.values()), strict=True)
    given = [["NULL" if each is None else str(each) for each in record] for record in values]
    records = ",".join(f"(1, 2, {','.join(record)})" for record in given)
    create = f"CREATE TABLE city.bids (x float8, y float8, {', '.join(BIDS)})"
    execute(database, create, f"INSERT INTO city.bids VALUES {records}")
    for column, (_, expected) in BIDS.items():
        batch = one(database, table="city.bids", x="x", y="y", bid=column.split()[0])
        finite = np.where(np.isfinite(batch.bid), batch.bid, np.nan)
        assert finite.tolist() == pytest.approx(expected, nan_ok=True), column


LINE = "SELECT ST_GeomFromText('LINESTRING(1 2, 3 4)', 4326) AS g"
TWO = "SELECT ST_SetSRID(ST_Point(1, 2), s) AS g FROM unnest(array[4326, 3857]) s"
LATER = "SELECT 1 / (g - 9) AS lon, 1 AS lat FROM generate_series(1, 9) g"
INFINITY = PLAIN.replace("seen", "'infinity'::timestamp AS seen")


def test_what_cannot_be_read(subtests, database):
    for words, given in [
        ("table that does not exist", {"table": "city.nothing"}),
        ("does not exist", {"table": "nowhere.visits"}),
        ("case-sensitive", {"table": "CITY.visits"}),
        ("column that does not exist", {"query": "SELECT nothing FROM city.visits"}),
        ("its columns are none", {"query": "SELECT"}),
        ("a single SQL query", {"query": "SELECT 1 FROM"}),
        ("a single SQL query", {"query": "SELECT 1; SELECT 2"}),
        ("a single SQL query", {"query": "SELECT 1) x; DROP TABLE city.visits; --"}),
        ("failed while", {"query": "SELECT nextval('city.ticket') AS lon, 1 AS lat"}),
        ("SQLSTATE", {"query": f"SELECT '{SECRET}'::int AS lon, 1 AS lat"}),
        ("failed", {"query": LATER}),
        ("no column 'x'", {"query": PLAIN, "x": "x"}),
        ("2 columns named 'lon'", {"query": "SELECT 1 AS lon, 2 AS lon, 3 AS lat"}),
        ("must be numeric", {"query": f"SELECT '{SECRET}'::text AS lon, 1 AS lat"}),
        ("infinite", {"query": "SELECT 'inf'::float8 AS lon, 1 AS lat"}),
        ("no column 'where'", {"geometry": "place", "user": "where"}),
        ("must hold points", {"geometry": "name"}),
        ("holds numbers", {"geometry": "place", "time": "id"}),
        ("years 1 to 9999", {"query": INFINITY, "time": "seen"}),
        ("must be numeric", {"query": "SELECT ST_MakePoint(1, 2)::text AS lon, 1 AS lat"}),
        ("hold points", {"query": LINE}),
        ("geometries of one SRID", {"query": TWO}),
        ("no CRS", {"error": DomainError, "query": "SELECT ST_Point(127, 37) AS g"}),
    ]:
        with subtests.test(words, **given):
            assert words in refused(database, **given)
    # Nothing was written.
    assert rows(database, "SELECT count(*) FROM city.visits") == [(2,)]
    assert rows(database, "SELECT is_called FROM city.ticket") == [(False,)]
    execute(database, "CREATE ROLE guest LOGIN")
    assert "permission" in refused(database.replace("psd@", "guest@"), geometry="place")


def changed(url, **parts):
    user, rest = url.removeprefix("postgresql://").split("@", 1)
    name, query = rest.removeprefix("/").split("?", 1)
    given = {"user": user, "name": name, "query": query, **parts}
    return "postgresql://{user}@/{name}?{query}".format(**given)


def test_no_connection(subtests, database):
    for words, parts in [
        ("no such user", {"user": f"nobody:{SECRET}"}),
        ("no such database", {"user": f"psd:{SECRET}", "name": "nothing"}),
        ("does not answer", {"user": f"psd:{SECRET}", "query": "host=/nowhere"}),
        ("does not answer", {"user": f"psd:{SECRET}", "query": "host=127.0.0.1&port=1"}),
        ("malformed", {"user": f"psd:{SECRET}", "query": f"password={SECRET}&port=x"}),
        ("malformed", {"user": f"psd:{SECRET}", "query": f"nothing={SECRET}"}),
    ]:
        with subtests.test(**parts):
            assert words in refused(changed(database, **parts))
    assert "malformed" in refused(f"postgresql://ann:{SECRET}@[host/db")


def test_a_wrong_password(database):
    create = "CREATE ROLE locked LOGIN PASSWORD 'right'"
    rights = ("USAGE ON SCHEMA city", "SELECT ON city.visits")
    execute(database, create, *(f"GRANT {right} TO locked" for right in rights))
    for password in (f":{SECRET}", ""):
        url = changed(database, user=f"locked{password}")
        assert "PGPASSWORD" in refused(url, geometry="place")
    assert one(changed(database, user="locked:right"), geometry="place").x[0] == 127.5


def test_requests_are_checked_and_passwords_never_shown():
    both, names = {"table": "a", "query": "SELECT 1"}, ("", "a.b.c", "a.")
    for given in ({}, both, *({"table": name} for name in names)):
        with pytest.raises(ParameterError) as raised:
            psd.sources.PostGIS(f"postgresql://ann:{SECRET}@host/db", **given)
        assert SECRET not in str(raised.value)
    with pytest.raises(ParameterError, match="table="):
        list(read("postgresql://host/db", Columns(), DOMAIN))
    for url in ("mysql://host/db", "host/db", "", 7):
        with pytest.raises(ParameterError, match="postgresql://"):
            psd.sources.PostGIS(url, table="a")
    addresses = "ann:*@host/db ann:*@/db ann:*@@host/db host/db?password=* ann:* ann:a@*@host"
    for rest in f"{addresses} ann:a/*@host/db ann:a?*@host/db ann:a#*@host/db".split():
        source = psd.sources.PostGIS(
            f"postgresql://{rest.replace('*', SECRET)}", table="public.visits"
        )
        for text in (repr(source), str(source), f"{[source]}"):
            assert SECRET not in text
            assert "public.visits" in text


def test_the_environment_of_the_client_counts(database, monkeypatch):
    host = database.partition("host=")[2].replace("%2F", "/")
    for name, value in (("HOST", host), ("USER", "psd"), ("CONNECT_TIMEOUT", "5")):
        monkeypatch.setenv(f"PG{name}", value)
    assert one("postgresql:///postgres", geometry="place").x[0] == 127.5
    assert "PGPASSWORD" not in os.environ


def test_a_table_has_the_schema_in_which_it_was_found_first(database):
    """A ledger knows a table by its name, so a search path that changes must not exchange it."""
    search = "ALTER ROLE CURRENT_USER SET search_path ="
    for schema, x in (("first", 1), ("second", 2)):
        execute(
            database,
            f"CREATE SCHEMA {schema}",
            f"CREATE TABLE {schema}.stops AS SELECT {x}::float8 AS lon, 1::float8 AS lat",
        )
    bare = psd.sources.PostGIS(database, table="stops")
    assert bare.with_schema() == bare  # which is refused when it is read
    try:
        execute(database, f"{search} first, public")
        [found] = resolve_inputs(bare)
        names = input_names(bare)
        assert (found.table, names) == ("first.stops", input_names(found))
        assert names[0].endswith(" first.stops")
        execute(database, f"{search} second, public")
        assert batches.one(bare).x.tolist() == [2]
        assert batches.one(found).x.tolist() == [1]
        assert input_names(bare) != names
    finally:
        execute(database, "ALTER ROLE CURRENT_USER RESET search_path")
    for same in (found, source(database), psd.sources.PostGIS(database, query="SELECT 1")):
        assert same.with_schema() is same
