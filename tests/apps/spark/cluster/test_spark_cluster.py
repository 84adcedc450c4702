"""Builds on a real standalone cluster on this machine: a master and two workers."""

import os
import re
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest

import psd
from psd.apps.spark.engine import open_session
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from support import engines
from support.cli_runner import REQUEST_WARNINGS, process
from support.engine_tests import *  # noqa: F403

pytestmark = pytest.mark.spark

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
        yield psd.apps.spark.Spark()


@pytest.fixture
def session(spark):
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def assert_same(spark, data, columns=engines.COLUMNS, **options):
    engines.assert_same(spark, data, columns, **{"unit": USER, **options})


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", engines.REGIONS)
@pytest.mark.parametrize("case", ["record", "user", "users counted"])
def test_region_by_region(spark, inputs, name, case):
    unit, step = engines.CASES[case]
    assert_same(spark, inputs["csv"], unit=unit, step=step, strata=engines.hierarchies()[name])


def test_a_build_with_regions_leaves_no_table(spark, session, inputs):
    regions = engines.hierarchies()["a gap"]
    engines.assert_same_release(spark, inputs["csv"], regions=regions, method="none")
    assert not [view.name for view in session.catalog.listTables() if view.name.startswith("psd")]


def assert_counted(spark, data, same):
    """Data that only Spark can name are counted as files of the same records."""
    found, local = (
        engine.tally(each, engines.COLUMNS, engines.DOMAIN, unit=USER, key=engines.KEY)
        for engine, each in ((spark, data), (engines.Local(), same))
    )
    engines.assert_equal(found, local)


def test_both_workers_count_several_files(spark, tmp_path):
    text, paths = engines.as_text(TABLE), []
    for start in range(0, 3000, 500):
        path = engines.write_csv(text.slice(start, 500), tmp_path / f"{start}.csv")
        paths.append(str(path))
    assert_same(spark, paths)
    assert_counted(spark, f"file://{tmp_path}/*.csv", paths)


def test_what_is_not_there(spark):
    for data in ("/nowhere/no.csv", "/nowhere/no.parquet", psd.apps.spark.SparkTable("no_table")):
        with pytest.raises(InputDataError, match=r"cannot find an input|has no such table"):
            spark.tally(data, Columns(), engines.DOMAIN, unit=PrivacyUnit())


def test_moments_are_brought_to_a_zone(spark, tmp_path):
    table = TABLE.set_column(3, "time", TABLE["time"].cast(pa.timestamp("us", "UTC")))
    path = str(engines.write_parquet(table, tmp_path / "points.parquet"))
    unit = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    for zone in ("Asia/Seoul", "America/St_Johns"):
        assert_same(spark, path, Columns(user="user", time="time", time_zone=zone), unit=unit)


def test_moments_are_in_the_hours_of_a_zone(spark, tmp_path):
    """The hour that clocks repeat in autumn is one slice, and the one that they skip is empty."""
    table = engines.turns()
    table = table.set_column(3, "time", table["time"].cast(pa.timestamp("us", "UTC")))
    path, zone = str(engines.write_parquet(table, tmp_path / "turns.parquet")), "Europe/Berlin"
    columns = Columns(user="user", time="time", time_zone=zone)
    hours = psd.TimeSlices.parse(
        "hour", "2024-03-31T01..2024-03-31T03,2024-10-27T01..2024-10-27T04", zone
    )
    for case in ("record", "user, some in each slice", "user-slice"):
        assert_same(spark, path, columns, unit=engines.SLICED[case], slices=hours)


def test_the_session_is_left_as_it_was(spark, session, url, inputs):
    session.read.parquet(inputs["parquet"]).createOrReplaceTempView("visits")
    zone = session.conf.get("spark.sql.session.timeZone")
    table = psd.apps.spark.SparkTable("visits")
    assert_counted(spark, table, inputs["parquet"])
    assert session.conf.get("spark.sql.session.timeZone") == zone
    assert [view.name for view in session.catalog.listTables()] == ["visits"]
    with pytest.raises(ParameterError, match="already runs in this process"):
        psd.apps.spark.Spark(url=url).tally(table, engines.COLUMNS, engines.DOMAIN, unit=USER)


def test_command_line(url, loopback, inputs, tmp_path):
    out = tmp_path / "r.psd.parquet"
    said = process(
        "build", inputs["csv"], "-o", out, "--epsilon", 1, "--bounds", *engines.DOMAIN.bounds,
        "--user", "user", "--max-contributions", 3, "--engine", f"spark:{url}",
    )  # fmt: skip
    assert said.returncode == 0
    assert not REQUEST_WARNINGS.sub("", said.stderr).strip()
    assert said.stdout.startswith(f"wrote {out}")
    assert psd.load(out).unit.max_contributions == 3
