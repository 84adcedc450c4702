"""The engine spark against the local path, cell by cell, on a server of Spark Connect."""

import gzip
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pysail.spark import SparkConnectServer

import psd
from psd.errors import InputDataError, MissingExtraError, ParameterError
from psd.ingest.sources import Columns
from psd.ingest.tally_file import read_tally
from psd.privacy.unit import PrivacyUnit
from support import engines
from support.cli_runner import REQUEST_WARNINGS, cli, fails, process
from support.engine_tests import *  # noqa: F403

pytestmark = pytest.mark.deep

BOUNDS = ("--bounds", 126.4, 37, 127.6, 38)
TABLE, PLAIN = engines.rows(), Columns()
USER, RECORD = PrivacyUnit(kind="user", max_contributions=3), PrivacyUnit()


@pytest.fixture(scope="module")
def url():
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    yield f"sc://127.0.0.1:{server.listening_address[1]}"
    server.stop()


@pytest.fixture(scope="module")
def spark(url):
    return psd.apps.spark.Spark(url=url)


@pytest.mark.parametrize("name", ["polygons", "rounded"])
def test_region_by_region(spark, inputs, name):
    regions = engines.hierarchies()[name]
    engines.assert_same(spark, inputs["parquet"], unit=USER, strata=regions)


def test_several_files_are_one_input(spark, tmp_path):
    paths, text = [str(tmp_path / f"{name}.csv") for name in "ab"], engines.as_text(TABLE)
    for start, path in enumerate(paths):
        engines.write_csv(text.slice(1500 * start, 1500), path)
    engines.assert_same(spark, paths, unit=USER)
    turned = text.slice(1500).select(["note", "time", "lat", "user", "lon"])
    engines.write_csv(turned, paths[1])
    engines.assert_same(spark, paths, unit=USER)


@pytest.mark.parametrize("column", ["int64", "int32", "float"])
def test_columns_of_numbers(spark, tmp_path, column):
    values = pa.array(range(300)).cast(column)
    table = pa.table({"lon": values, "lat": values, "user": pa.array(range(300)).cast("int32")})
    path = engines.write_parquet(table, tmp_path / "points.parquet")
    domain = psd.Domain(bounds=(0, 0, 200, 299), crs="EPSG:3857", lattice=(7, 1000))
    engines.assert_same(spark, str(path), Columns(user="user"), domain, unit=USER)


@pytest.mark.parametrize("step", ["0.1", "0.003", "0.0001"])
def test_rounded_coordinates(spark, tmp_path, step):
    """Values, lines half-way between them, the bounds, and the doubles on both sides of each."""
    domain = psd.Domain(bounds=(126.42, -37.0, 127.6, 38.05), coordinate_resolution=step)
    rng, sides = np.random.default_rng(4), []
    for axis in (0, 1):
        cells = rng.integers(0, domain.lattice[axis], 400)
        near = np.concatenate([domain.centres(axis, cells), domain.edges(axis, cells + 1)])
        far = rng.choice([-1e9, 1e9], 800) * rng.integers(0, 2, 800) + near
        sides.append(np.nextafter(near, far))
    table = pa.table(sides, ["lon", "lat"])
    path = engines.write_parquet(table, tmp_path / "points.parquet")
    engines.assert_same(spark, str(path), Columns(), domain)


@pytest.mark.parametrize("form", engines.FORMS)
def test_other_forms_of_text(spark, tmp_path, form):
    path, options = engines.write_form(tmp_path, form)
    engines.assert_same(spark, str(path), Columns(user="USER", **options), unit=USER)


def test_rows_but_none_inside_are_an_empty_tally(spark, tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lon,lat,user\n2.468,37.5,a\n1272468,37.5,a\n")
    for engine in (spark, engines.Local()):
        counted = tally(engine, str(path), Columns(user="user"), USER)
        assert len(counted.counts) == 0
        assert counted.report["outside"] == counted.report["read"] == 2


def tally(engine, data, columns=PLAIN, unit=RECORD):
    return engine.tally(data, columns, engines.DOMAIN, unit=unit)


def test_what_is_not_there(spark, tmp_path):
    for data, told in (
        (str(tmp_path / "no.csv"), "no.csv"),
        (psd.apps.spark.SparkTable("no.table"), "table"),
    ):
        with pytest.raises(InputDataError, match=told):
            tally(spark, data)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        silent = psd.apps.spark.Spark(url=f"sc://127.0.0.1:{free.getsockname()[1]}/;token=secret")
        with pytest.raises(InputDataError, match="does not answer") as raised:
            tally(silent, "no.csv")
        assert "secret" not in str(raised.value)


def test_refused_before_anything_is_read(subtests, spark):
    for data, columns, error, told in [
        ([], Columns(), InputDataError, "empty list"),
        (["a.csv", "a.csv"], Columns(), InputDataError, "repeated"),
        (TABLE, Columns(), InputDataError, "Spark cannot read"),
        ("a.csv", Columns(x="lat"), ParameterError, "different columns"),
        ("a.csv", Columns(geometry="geom"), ParameterError, "name x=NAME and y=NAME"),
        ("a.csv", Columns(encoding="utf-16"), ParameterError, "not supported by the engine spark"),
        ("a.csv", Columns(skip_rows=1), ParameterError, "not supported by the engine spark"),
        ("a.csv", Columns(time="t", time_zone="Mars"), ParameterError, "time_zone"),
    ]:
        with subtests.test(told), pytest.raises(error, match=told):
            tally(spark, data, columns)


def test_a_tally_that_is_kept_has_no_name_of_a_file_here(url, inputs, tmp_path):
    """Paths are those of the cluster; nobody looks for them on this machine."""
    kept, output = tmp_path / "kept.tally", tmp_path / "out.psd.parquet"
    words = ("--engine", f"spark:{url}", "--keep-tally", kept, "--epsilon", 1)
    made = cli("build", inputs["csv"], "-o", output, *words, *BOUNDS)
    assert made.code == 0, made.err
    assert read_tally(kept).origins[0].names == ()


def test_a_file_that_two_inputs_hold(spark, tmp_path):
    """A folder and a file in it, a pattern, other spellings of one path, a link and a copy."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("lon,lat\n127,37.5\n")
    file, link, packed = (str(tmp_path / name) for name in ("a.csv", "link.csv", "a.csv.gz"))
    Path(packed).write_bytes(gzip.compress(b"lon,lat\n127,37.5\n"))
    Path(link).symlink_to("a.csv")
    same = [f"{tmp_path}/./a.csv", f"file://{file}", f"{tmp_path}/*.csv", link, packed]
    for other in same:
        with pytest.raises(InputDataError, match="count twice"):
            tally(spark, [file, other])
    assert tally(spark, [file, f"{tmp_path}/b.csv"]).counts.tolist() == [2]


@pytest.mark.parametrize("name", ["lon", "user", "time"])
def test_types_that_engines_read_differently(spark, tmp_path, name):
    odd = pa.array([1.5, 2.5]).cast(pa.decimal128(4, 2))
    table = pa.table({"lon": [1.0, 2.0], "lat": [1.0, 2.0], "user": ["a", "b"], "time": ["", ""]})
    table = table.set_column(table.column_names.index(name), name, odd)
    path = str(engines.write_parquet(table, tmp_path / "points.parquet"))
    told = f"column '{name}' of .* must be of type .*got decimal"
    with pytest.raises(InputDataError, match=told):
        tally(spark, path, engines.COLUMNS, USER)


def test_moments_of_another_zone_are_never_taken_as_they_are(spark, tmp_path):
    table = TABLE.set_column(3, "time", TABLE["time"].cast(pa.timestamp("us", "UTC")))
    path = str(engines.write_parquet(table, tmp_path / "points.parquet"))
    unit = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    engines.assert_same(spark, path, unit=unit)
    columns = Columns(user="user", time="time", time_zone="Asia/Seoul")
    with pytest.raises(InputDataError, match="Asia/Seoul"):  # Sail does not convert, and is found
        engines.assert_same(spark, path, columns, unit=unit)


def test_addresses_and_sessions_that_are_none(monkeypatch):
    for url in ("http://node1:7077", "node1:7077", "", 7):
        with pytest.raises(ParameterError, match="url must be"):
            psd.apps.spark.Spark(url=url)
    with pytest.raises(ParameterError, match="no active Spark session"):
        tally(psd.apps.spark.Spark(), "a.csv")
    find = "psd.apps.spark.engine.find_spec"
    monkeypatch.setattr(find, lambda name: name != "py4j" or None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[spark\]'"):
        tally(psd.apps.spark.Spark(url="local[1]"), "a.csv")


def test_what_is_found_in_this_process_alone(spark, inputs):
    auto = {"max_contributions": "auto", "user": "user"}
    for given, told in [
        (auto, "max_contributions must be a number with"),
        ({"memory": "2GB"}, "memory must be left out"),
    ]:
        with pytest.raises(ParameterError, match=told):
            psd.build(inputs["csv"], domain=engines.DOMAIN, epsilon=1, engine=spark, **given)


def test_command_line(url, inputs, tmp_path):
    out = tmp_path / "r.psd.parquet"
    options = ("--engine", f"spark:{url}")
    args = ("build", inputs["csv"], "-o", out, "--epsilon", 1, *BOUNDS)
    user = ("--user", "user", "--max-contributions", 3)
    said = process(*args, *user, *options, "--report-private")
    local = process(*args, *user, "--report-private", "--overwrite")
    assert (said.returncode, said.stdout, said.stderr) == (0, local.stdout, local.stderr)
    assert "read 3,000" in said.stderr
    said = process(*args, *options, "--overwrite").stderr
    assert REQUEST_WARNINGS.sub("", said).strip() == ""
    assert b"spark" not in out.read_bytes().lower()


def test_command_line_refuses(url, inputs, tmp_path):
    rest = ("-o", tmp_path / "r.psd.parquet", "--epsilon", 1, *BOUNDS)
    args = ("build", inputs["csv"], *rest)
    assert "No such option" in fails(2, *args, "--spark-url", url)
    fails(2, *args, "--engine", "spark")
    spark = ("--engine", f"spark:{url}")
    assert "--query" in fails(2, *args, *spark, "--query", "SELECT 1")
    assert "exactly one column 'x'" in fails(8, *args, *spark, "--x", "x")
    no_table = fails(8, "build", *rest, *spark, "--table", "no.visits")
    assert "has no such table" in no_table
    assert "Missing argument" in fails(2, "build", *rest)
    target = ("build", f"file://{inputs['csv']}", "-o", inputs["csv"], "--epsilon", 1, *BOUNDS)
    assert "input" in fails(6, *target, *spark, "--overwrite")
