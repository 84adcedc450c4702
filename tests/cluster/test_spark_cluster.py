"""Builds on a real standalone cluster on this machine: a master and two workers."""

import os
import re
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest

import psd
from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.engines._spark_session import open_session
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from support import engines
from support.cli_runner import process
from support.real_sets import BOUNDS

pytestmark = pytest.mark.spark

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
TABLE = engines.rows()
USER = PrivacyUnit(kind="user", max_contributions=3)
PATIENCE = 120


def started(folder, role, *args):
    """A daemon of Spark, and the file that it writes its log to."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder), "SPARK_WORKER_DIR": str(folder / "work"),
    }  # fmt: skip
    log = folder / f"{role}-{len(list(folder.iterdir()))}.log"
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", *args]
    with log.open("w") as out:
        return subprocess.Popen(command, env=environment, stdout=out, stderr=out), log


def waited_for(pattern, log):
    """First group of a pattern, as soon as a log holds it."""
    for _ in range(PATIENCE * 5):
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.2)
    raise TimeoutError(f"{pattern} is not in {log.read_text()}")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    address = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    daemons = []
    try:
        master, log = started(folder, "master.Master", *address)
        daemons.append(master)
        found = waited_for(r"Starting Spark master at (spark://\S+)", log)
        for _ in range(2):
            worker, log = started(
                folder, "worker.Worker", *address, "--cores", "2", "--memory", "2g", found
            )
            daemons.append(worker)
            waited_for(r"(Successfully registered with master)", log)
        yield found
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    """Two sessions at a time find room on the cluster, and nothing leaves this machine."""
    folder = tmp_path_factory.mktemp("settings")
    settings = (
        "spark.executor.memory 512m", "spark.executor.cores 1", "spark.cores.max 2",
        "spark.sql.shuffle.partitions 4",
    )  # fmt: skip
    (folder / "spark-defaults.conf").write_text("\n".join(settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield


@pytest.fixture(scope="module")
def spark(url, loopback):
    """The engine of a session on the cluster; a session for each test would take minutes."""
    with open_session(url):
        yield psd.Spark()


@pytest.fixture
def session(spark):
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return engines.write_inputs(tmp_path_factory.mktemp("inputs"))


def assert_same(spark, data, columns=engines.COLUMNS, **options):
    engines.assert_same(spark, data, columns, **{"unit": USER, **options})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("unit", "step"), engines.CASES.values(), ids=engines.CASES)
def test_cell_by_cell(spark, inputs, kind, unit, step, capfd):
    assert_same(spark, inputs[kind], unit=unit, step=step)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", engines.hierarchies())
@pytest.mark.parametrize("case", ["record", "user", "users counted"])
def test_region_by_region(spark, inputs, name, case, capfd):
    unit, step = engines.CASES[case]
    assert_same(spark, inputs["csv"], unit=unit, step=step, regions=engines.hierarchies()[name])
    assert capfd.readouterr() == ("", "")


def test_a_build_with_regions_leaves_no_table(spark, session, inputs):
    regions = engines.hierarchies()["a gap"]
    engines.assert_same_release(spark, inputs["csv"], regions=regions, method="none")
    assert not [view.name for view in session.catalog.listTables() if view.name.startswith("psd")]


def test_both_workers_count_several_files(spark, tmp_path):
    text, paths = engines.as_text(TABLE), []
    for start in range(0, 3000, 500):
        path = engines.write_csv(text.slice(start, 500), tmp_path / f"{start}.csv")
        paths.append(str(path))
    assert_same(spark, paths)
    options = {"unit": USER, "key": engines.KEY}
    found = spark.tally(f"file://{tmp_path}/*.csv", engines.COLUMNS, engines.DOMAIN, **options)
    local = engines.Local().tally(paths, engines.COLUMNS, engines.DOMAIN, **options)
    engines.assert_equal(found, local)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data sets are not there")
def test_real_users(spark):
    domain = psd.Domain(bounds=BOUNDS["osm_andorra_2016"])
    unit = PrivacyUnit(kind="user", max_contributions=20)
    path = str(SHARED / "osm_andorra_2016.csv")
    assert_same(spark, path, Columns(user="user_id"), unit=unit, domain=domain)


def test_moments_are_brought_to_a_zone(spark, tmp_path):
    table = TABLE.set_column(3, "time", TABLE["time"].cast(pa.timestamp("us", "UTC")))
    path = str(engines.write_parquet(table, tmp_path / "points.parquet"))
    unit = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    for zone in ("Asia/Seoul", "America/St_Johns"):
        assert_same(spark, path, Columns(user="user", time="time", time_zone=zone), unit=unit)


@pytest.mark.parametrize("name", engines.ODD)
def test_odd_fields_are_taken_or_refused_alike(spark, tmp_path, name):
    table = engines.beside_sound_ones(name, engines.ODD[name])
    assert engines.spark_verdicts(None, table, tmp_path) == engines.duckdb_verdicts(table)


@pytest.mark.parametrize(("content", "told"), engines.REFUSED.values(), ids=engines.REFUSED)
def test_refused_without_a_word_of_the_data(spark, tmp_path, content, told, capfd):
    path = tmp_path / "points.csv"
    path.write_text(content)
    with pytest.raises((InputDataError, DomainError), match=told) as raised:
        spark.tally(str(path), Columns(user="user"), engines.DOMAIN, unit=USER)
    assert "2468" not in str(raised.value)
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert capfd.readouterr() == ("", "")


def test_what_is_not_there(spark):
    for data in ("/nowhere/no.csv", "/nowhere/no.parquet", psd.SparkTable("no_table")):
        with pytest.raises(InputDataError, match=r"cannot find an input|has no such table"):
            spark.tally(data, Columns(), engines.DOMAIN, unit=PrivacyUnit())


def test_the_same_noise_makes_the_same_release(spark, inputs):
    engines.assert_same_release(spark, inputs["csv"], domain=engines.DOMAIN, method="quadtree")


def test_the_session_is_left_as_it_was(spark, session, url, inputs):
    session.read.parquet(inputs["parquet"]).createOrReplaceTempView("visits")
    zone = session.conf.get("spark.sql.session.timeZone")
    table, options = psd.SparkTable("visits"), {"unit": USER, "key": engines.KEY}
    found = spark.tally(table, engines.COLUMNS, engines.DOMAIN, **options)
    path = inputs["parquet"]
    local = engines.Local().tally(path, engines.COLUMNS, engines.DOMAIN, **options)
    engines.assert_equal(found, local)
    assert session.conf.get("spark.sql.session.timeZone") == zone
    assert [view.name for view in session.catalog.listTables()] == ["visits"]
    with pytest.raises(ParameterError, match="already runs in this process"):
        psd.Spark(url=url).tally(table, engines.COLUMNS, engines.DOMAIN, unit=USER)


def test_command_line(url, loopback, inputs, tmp_path):
    out = tmp_path / "r.psd.parquet"
    said = process(
        "build", inputs["csv"], "-o", out, "--epsilon", 1, "--bounds", *engines.DOMAIN.bounds,
        "--user", "user", "--max-contributions", 3, "--read", f"engine=spark:{url}",
    )  # fmt: skip
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"wrote {out}")
    assert psd.load(out).unit.max_contributions == 3
