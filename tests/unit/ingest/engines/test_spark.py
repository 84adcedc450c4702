"""The engine spark against the local path, cell by cell, on a server of Spark Connect."""

import gzip
import re
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd.errors import InputDataError, MissingExtraError, ParameterError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from psd.testing import SCRIPTS, RecordingSampler
from support import engines
from support.cli_runner import cli, fails, process

pytest.importorskip("pysail", reason="pysail is not installed: pip install -e '.[test]'")

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
BOUNDS = ("--bounds", 126.4, 37, 127.6, 38)
TABLE = engines.rows()
USER = PrivacyUnit(kind="user", max_contributions=3)


@pytest.fixture(scope="module")
def url():
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    yield f"sc://127.0.0.1:{server.listening_address[1]}"
    server.stop()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {
        "csv": str(engines.write_csv(engines.as_text(TABLE), folder / "points.csv")),
        "parquet": str(engines.write_parquet(TABLE, folder / "points.parquet")),
    }


def both(url, data, domain, columns, **options):
    """Tally of the local path and of Spark."""
    options = {"unit": PrivacyUnit(), "key": engines.KEY, **options}
    return [
        engine.tally(data, columns, domain, **options)
        for engine in (engines.Local(), psd.Spark(url=url))
    ]


@pytest.mark.parametrize("name", ["polygons", "rounded"])
def test_region_by_region(url, inputs, name):
    options = {"unit": USER, "regions": engines.hierarchies()[name]}
    engines.assert_equal(*both(url, inputs["parquet"], engines.DOMAIN, engines.COLUMNS, **options))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("unit", "step"), engines.CASES.values(), ids=engines.CASES)
def test_cell_by_cell(url, inputs, kind, unit, step):
    engines.assert_equal(
        *both(url, inputs[kind], engines.DOMAIN, engines.COLUMNS, unit=unit, step=step)
    )


def test_several_files_are_one_input(url, tmp_path):
    paths = [
        str(engines.write_csv(engines.as_text(TABLE).slice(start, 1500), tmp_path / f"{start}.csv"))
        for start in (0, 1500)
    ]
    engines.assert_equal(*both(url, paths, engines.DOMAIN, engines.COLUMNS, unit=USER))
    turned = engines.as_text(TABLE).slice(1500).select(["note", "time", "lat", "user", "lon"])
    engines.write_csv(turned, paths[1])
    engines.assert_equal(*both(url, paths, engines.DOMAIN, engines.COLUMNS, unit=USER))


@pytest.mark.parametrize("column", ["int64", "int32", "float"])
def test_columns_of_numbers(url, tmp_path, column):
    values = pa.array(range(300)).cast(column)
    table = pa.table({"lon": values, "lat": values, "user": pa.array(range(300)).cast("int32")})
    path = engines.write_parquet(table, tmp_path / "points.parquet")
    domain = psd.Domain(bounds=(0, 0, 200, 299), crs="EPSG:3857", lattice=(7, 1000))
    engines.assert_equal(*both(url, str(path), domain, Columns(user="user"), unit=USER))


@pytest.mark.parametrize("step", ["0.1", "0.003", "0.0001"])
def test_rounded_coordinates(url, tmp_path, step):
    """Values, lines half-way between them, the bounds, and the doubles on both sides of each."""
    domain = psd.Domain(bounds=(126.42, -37.0, 127.6, 38.05), coordinate_resolution=step)
    rng, sides = np.random.default_rng(4), []
    for axis in (0, 1):
        cells = rng.integers(0, domain.lattice[axis], 400)
        near = np.concatenate([domain.centres(axis, cells), domain.edges(axis, cells + 1)])
        sides.append(
            np.nextafter(near, rng.choice([-1e9, 1e9], 800) * rng.integers(0, 2, 800) + near)
        )
    table = pa.table(dict(zip(("lon", "lat"), sides, strict=True)))
    path = engines.write_parquet(table, tmp_path / "points.parquet")
    engines.assert_equal(*both(url, str(path), domain, Columns()))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data sets are not there")
def test_real_users(url):
    domain = psd.Domain(bounds=(1.40, 42.42, 1.79, 42.66))
    unit = PrivacyUnit(kind="user", max_contributions=20)
    path = str(SHARED / "osm_andorra_2016.csv")
    engines.assert_equal(*both(url, path, domain, Columns(user="user_id"), unit=unit))


@pytest.mark.parametrize("method", ["quadtree", "grid"])
def test_the_same_noise_makes_the_same_release(url, inputs, method):
    releases = []
    for engine in (None, psd.Spark(url=url)):
        noise = RecordingSampler(SCRIPTS[2])
        release = psd.build(
            inputs["parquet"], domain=engines.DOMAIN, epsilon=1, method=method, sampler=noise,
            engine=engine,
        )  # fmt: skip
        releases.append(engines.facts(release, noise))
    assert releases[0] == releases[1]


@pytest.mark.parametrize("form", engines.FORMS)
def test_other_forms_of_text(url, tmp_path, form):
    path, options = engines.write_form(tmp_path, form)
    columns = Columns(user="USER", **options)
    engines.assert_equal(*both(url, str(path), engines.DOMAIN, columns, unit=USER))


@pytest.mark.parametrize("name", engines.ODD)
def test_odd_fields_are_taken_or_refused_alike(url, tmp_path, name):
    values = engines.ODD[name]
    table = engines.beside_sound_ones(name, values)
    asked = [engines.spark_verdicts(url, table, tmp_path), engines.duckdb_verdicts(table)]
    assert asked[0] == asked[1]
    assert 3 < sum(asked[0]) < len(values) - 3


# What is refused.


@pytest.mark.parametrize(("content", "told"), engines.REFUSED.values(), ids=engines.REFUSED)
def test_refused_as_by_the_local_path(url, tmp_path, content, told):
    path = tmp_path / "points.csv"
    path.write_text(content)
    columns = Columns(user="user")
    for engine in (spark := psd.Spark(url=url), engines.Local()):
        # Accents that stand apart are put together in this process.
        if "\u0301" in content and engine is not spark:
            continue
        with pytest.raises(InputDataError) as raised:
            engine.tally(str(path), columns, engines.DOMAIN, unit=USER)
        assert "2468" not in str(raised.value)
        assert raised.value.__cause__ is raised.value.__context__ is None
        if engine is spark:
            assert re.search(told, str(raised.value))


def test_rows_but_none_inside_are_an_empty_tally(url, tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lon,lat,user\n2.468,37.5,a\n1272468,37.5,a\n")
    for engine in (psd.Spark(url=url), engines.Local()):
        counted = engine.tally(str(path), Columns(user="user"), engines.DOMAIN, unit=USER)
        assert len(counted.counts) == 0
        assert counted.report["outside"] == counted.report["read"] == 2


def test_what_is_not_there(url, tmp_path):
    for data, told in ((str(tmp_path / "no.csv"), "no.csv"), (psd.SparkTable("no.table"), "table")):
        with pytest.raises(InputDataError, match=told):
            psd.Spark(url=url).tally(data, Columns(), engines.DOMAIN, unit=PrivacyUnit())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        spark = psd.Spark(url=f"sc://127.0.0.1:{free.getsockname()[1]}/;token=secret")
        with pytest.raises(InputDataError, match="does not answer") as raised:
            spark.tally("no.csv", Columns(), engines.DOMAIN, unit=PrivacyUnit())
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "columns", "error", "told"),
    [
        ([], Columns(), InputDataError, "empty list"),
        (["a.csv", "a.csv"], Columns(), InputDataError, "repeated"),
        (TABLE, Columns(), InputDataError, "Spark cannot read"),
        ("a.csv", Columns(x="lat"), ParameterError, "different columns"),
        ("a.csv", Columns(geometry="geom"), ParameterError, "name x= and y="),
        ("a.csv", Columns(encoding="utf-16"), ParameterError, "not supported by the engine spark"),
        ("a.csv", Columns(skip_rows=1), ParameterError, "not supported by the engine spark"),
        ("a.csv", Columns(time="t", time_zone="Mars"), ParameterError, "time_zone"),
    ],
)
def test_refused_before_anything_is_read(url, data, columns, error, told):
    with pytest.raises(error, match=told):
        psd.Spark(url=url).tally(data, columns, engines.DOMAIN, unit=PrivacyUnit())


def test_a_tally_that_is_kept_has_no_name_of_a_file_here(url, inputs, tmp_path):
    """Paths are those of the cluster; nobody looks for them on this machine."""
    from psd.ingest.tally_file import read_tally

    kept, output = tmp_path / "kept.tally", tmp_path / "out.psd.parquet"
    words = ("--read", f"engine=spark:{url}", "--keep-tally", kept, "--epsilon", 1)
    made = cli("build", inputs["csv"], "-o", output, *words, *BOUNDS)
    assert made.code == 0, made.err
    assert read_tally(kept).origins[0].names == ()


def test_a_file_that_two_inputs_hold(url, tmp_path):
    """A folder and a file in it, a pattern, and other spellings of one path."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("lon,lat\n127,37.5\n")
    file = str(tmp_path / "a.csv")
    spark, more = psd.Spark(url=url), [f"{tmp_path}/./a.csv", f"file://{file}", f"{tmp_path}/*.csv"]
    for other in more:
        with pytest.raises(InputDataError, match="count twice"):
            spark.tally([file, other], Columns(), engines.DOMAIN, unit=PrivacyUnit())
    counted = spark.tally(
        [file, f"{tmp_path}/b.csv"], Columns(), engines.DOMAIN, unit=PrivacyUnit()
    )
    assert counted.counts.tolist() == [2]


def test_a_linked_file_and_a_compressed_one(url, tmp_path):
    (tmp_path / "a.csv").write_text("lon,lat\n127,37.5\n")
    (tmp_path / "link.csv").symlink_to("a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"lon,lat\n127,37.5\n"))
    for other in ("link.csv", "a.csv.gz"):
        with pytest.raises(InputDataError, match="count twice"):
            psd.Spark(url=url).tally(
                [str(tmp_path / "a.csv"), str(tmp_path / other)],
                Columns(),
                engines.DOMAIN,
                unit=PrivacyUnit(),
            )


@pytest.mark.parametrize("name", ["lon", "user", "time"])
def test_types_that_engines_read_differently(url, tmp_path, name):
    odd = pa.array([1.5, 2.5]).cast(pa.decimal128(4, 2))
    table = pa.table({"lon": [1.0, 2.0], "lat": [1.0, 2.0], "user": ["a", "b"], "time": ["", ""]})
    table = table.set_column(table.column_names.index(name), name, odd)
    path = engines.write_parquet(table, tmp_path / "points.parquet")
    with pytest.raises(
        InputDataError, match=f"column '{name}' of .* must be of type .*got decimal"
    ):
        psd.Spark(url=url).tally(str(path), engines.COLUMNS, engines.DOMAIN, unit=USER)


def test_moments_of_another_zone_are_never_taken_as_they_are(url, tmp_path):
    time = TABLE["time"].cast(pa.timestamp("us", "UTC"))
    table = TABLE.set_column(3, "time", time)
    path = str(engines.write_parquet(table, tmp_path / "points.parquet"))
    unit = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    engines.assert_equal(*both(url, path, engines.DOMAIN, engines.COLUMNS, unit=unit))
    columns = Columns(user="user", time="time", time_zone="Asia/Seoul")
    with pytest.raises(
        InputDataError, match="Asia/Seoul"
    ):  # Sail does not convert, and is found out
        both(url, path, engines.DOMAIN, columns, unit=unit)


@pytest.mark.parametrize("url", ["http://node1:7077", "node1:7077", "", 7])
def test_addresses_that_are_none(url):
    with pytest.raises(ParameterError, match="url must be"):
        psd.Spark(url=url)


def test_no_session_to_use():
    with pytest.raises(ParameterError, match="no active Spark session"):
        psd.Spark().tally("a.csv", Columns(), engines.DOMAIN, unit=PrivacyUnit())


def test_packages_that_are_missing(monkeypatch):
    monkeypatch.setattr(
        "psd.ingest.engines._spark_session.find_spec", lambda name: name != "py4j" or None
    )
    with pytest.raises(MissingExtraError, match=r"psd-publisher\[spark\]"):
        psd.Spark(url="local[1]").tally("a.csv", Columns(), engines.DOMAIN, unit=PrivacyUnit())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_contributions": "auto", "user": "user"}, "max_contributions must be a number with"),
        ({"memory": "2GB"}, "memory must be left out"),
    ],
)
def test_what_is_found_in_this_process_alone(url, inputs, given, told):
    with pytest.raises(ParameterError, match=told):
        psd.build(
            inputs["csv"], domain=engines.DOMAIN, epsilon=1, engine=psd.Spark(url=url), **given
        )


# The command line.


def test_command_line(url, inputs, tmp_path):
    out = tmp_path / "r.psd.parquet"
    options = ("--read", f"engine=spark:{url}")
    args = ("build", inputs["csv"], "-o", out, "--epsilon", 1, *BOUNDS)
    user = ("--user", "user", "--max-contributions", 3)
    said = process(*args, *user, *options, "--report-private")
    local = process(*args, *user, "--report-private", "--overwrite")
    assert (said.returncode, said.stdout, said.stderr) == (0, local.stdout, local.stderr)
    assert "read 3,000" in said.stderr
    assert process(*args, *options, "--overwrite").stderr == ""
    assert b"spark" not in out.read_bytes().lower()


def test_command_line_refuses(url, inputs, tmp_path):
    args = ("build", inputs["csv"], "-o", tmp_path / "r.psd.parquet", "--epsilon", 1, *BOUNDS)
    assert "No such option" in fails(2, *args, "--spark-url", url)
    fails(2, *args, "--read", "engine=spark")
    spark = ("--read", f"engine=spark:{url}")
    assert "--read query" in fails(2, *args, *spark, "--read", "query=SELECT 1")
    assert "exactly one column 'x'" in fails(8, *args, *spark, "--read", "x=x")
    assert "has no such table" in fails(
        8, *args[:1], *args[2:], *spark, "--read", "table=no.visits"
    )
    assert "Missing argument" in fails(2, *args[:1], *args[2:])
    target = ("build", f"file://{inputs['csv']}", "-o", inputs["csv"], "--epsilon", 1, *BOUNDS)
    assert "input" in fails(6, *target, *spark, "--overwrite")
