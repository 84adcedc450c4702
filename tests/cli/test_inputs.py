"""Inputs of every kind on the command line, alike in build, evaluate and compare."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import BOUNDS, CERTAIN, cli, fails, passes, write_points
from support.postgres import execute, ingest

ROWS = pd.DataFrame(
    {
        "lon": np.tile([-3.0, -1, 1, 3], 25),
        "lat": np.repeat([-3.0, -1, 0.5, 1, 3], 20),
        "id": [f"u{i % 10}" for i in range(100)],
        "seen": pd.date_range("2024-01-01", periods=100, freq="h").strftime("%Y-%m-%dT%H:%M"),
    }
)
SHAPES = gpd.GeoDataFrame(
    ROWS[["id", "seen"]], geometry=gpd.points_from_xy(ROWS.lon, ROWS.lat), crs=4326
)
BUILD = ("--set", "height=2", *CERTAIN, *BOUNDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def many(folder):
    for part in range(4):
        (folder / "d").mkdir(exist_ok=True)
        ROWS.iloc[part::4].to_parquet(folder / "d" / f"{part}.parquet")


def layers(folder):
    SHAPES.to_file(folder / "a.gpkg", layer="visits")
    SHAPES.iloc[:9].to_file(folder / "a.gpkg", layer="other")


KINDS = {
    "csv": (lambda f: ROWS.to_csv(f / "a.csv", index=False), ["a.csv"]),
    "parquet": (lambda f: ROWS.to_parquet(f / "a.parquet"), ["a.parquet"]),
    "folder": (many, ["d"]),
    "pattern": (many, ["d/*.parquet"]),
    "several": (many, ["d/0.parquet", "d/[123].parquet"]),
    "layer": (layers, ["a.gpkg", "--read", "layer=visits"]),
    "geojson": (lambda f: SHAPES.to_file(f / "a.geojson"), ["a.geojson"]),
    "geometry": (
        lambda f: SHAPES.rename_geometry("place").to_parquet(f / "a.parquet"),
        ["a.parquet", "--read", "geometry=place"],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_three_commands_read_every_kind(folder, kind):
    make, given = KINDS[kind]
    make(folder)
    passes("build", *given, "-o", "r.parquet", *BUILD)
    release = psd.Release.load("r.parquet")
    assert release.estimates.count[release.tree.is_leaf].sum() == pytest.approx(100)
    assert "score" in passes("evaluate", "r.parquet", *given)
    quick = ("--methods", "grid", "--epsilons", 1, "--runs", 1, "--jobs", 1)
    assert "score" in passes("compare", *given, "-o", "c.csv", *BOUNDS, *quick)


def test_the_same_table_of_postgis(folder, postgis):
    execute(postgis, "DROP TABLE IF EXISTS walks")
    import pyarrow as pa

    ingest(postgis, "walks", pa.Table.from_pandas(ROWS))
    for number, given in enumerate(
        [("--read", "table=public.walks"), ("--read", "query=SELECT * FROM walks")]
    ):
        passes("build", postgis, *given, "-o", f"r{number}.parquet", *BUILD)
        assert "score" in passes("evaluate", f"r{number}.parquet", postgis, *given)
    quick = ("--methods", "grid", "--epsilons", 1, "--runs", 1, "--jobs", 1)
    passes("compare", postgis, "--read", "table=walks", "-o", "c.csv", *BOUNDS, *quick)
    told = fails(8, "build", postgis, "--read", "table=nothing", "-o", "x.parquet", *BUILD)
    assert "table nothing of database postgres on the local server names a table" in told
    told = fails(8, "build", postgis, postgis, "--read", "table=walks", "-o", "x.parquet", *BUILD)
    assert "repeated" in told


def test_files_and_tables_together(folder, postgis):
    import pyarrow as pa

    execute(postgis, "DROP TABLE IF EXISTS half")
    ingest(postgis, "half", pa.Table.from_pandas(ROWS.iloc[::2]))
    ROWS.iloc[1::2].to_csv("a.csv", index=False)
    passes("build", postgis, "a.csv", "--read", "table=half", "-o", "r.parquet", *BUILD)
    release = psd.Release.load("r.parquet")
    assert release.estimates.count[release.tree.is_leaf].sum() == pytest.approx(100)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("a.parquet", "--read", "table=b"), 2, "--read table must be given with an input"),
        (("a.parquet", "--read", "query=SELECT 1"), 2, "--read query must be given with an input"),
        (("postgresql://ann:secret@host/db",), 2, "database db on host needs either --read table"),
        (
            ("postgresql://h/db", "--read", "table=a", "--read", "query=SELECT 1"),
            2,
            "needs either --read table",
        ),
        (("postgresql://ann:secret@127.0.0.1:1/db", "--read", "table=a"), 8, "does not answer"),
        (("a.parquet", "--read", "time=seen", "--read", "time_zone=KST"), 2, "Asia/Seoul"),
        (("a.parquet", "--read", "time=id"), 8, "'id' holds text that is not a time"),
        (("a.parquet", "--read", "time=when"), 8, "no column 'when'"),
        (("a.parquet", "--read", "time=lon"), 2, "different columns"),
        (("a.parquet", "--read", "geometry=place"), 8, "no column 'place'"),
        (("a.parquet", "a.parquet"), 8, "twice"),
        (("a.parquet", "*.parquet"), 8, "twice"),
        (("nothing/*.parquet",), 8, "no file matches"),
    ],
)
def test_what_is_refused(folder, args, code, words):
    ROWS.to_parquet("a.parquet")
    told = fails(code, "build", *args, "-o", "r.psd", *BUILD)
    assert words in told
    assert "secret" not in told


def test_times_are_read(folder):
    ROWS.to_parquet("a.parquet")
    passes(
        "build",
        "a.parquet",
        "--read",
        "time=seen",
        "--read",
        "time_zone=Asia/Seoul",
        "-o",
        "r",
        *BUILD,
    )


def test_no_input_of_a_folder_is_written_to(folder):
    many(folder)
    before = (folder / "d" / "0.parquet").read_bytes()
    told = fails(6, "build", "d", "-o", "d/0.parquet", "--overwrite", *BUILD)
    assert "read as an input" in told
    assert (folder / "d" / "0.parquet").read_bytes() == before


def test_without_the_driver(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    outcome = cli("build", "postgresql://h/d", "--read", "table=a", "-o", "r", *BUILD)
    assert outcome.code == 7
    assert "psd-publisher[postgis]" in outcome.err


def test_a_missing_column_is_answered_by_the_option_that_names_it(tmp_path):
    write_points(tmp_path / "v.csv", [(1, 2, "a")], header="long,lat,who")
    build = ("build", tmp_path / "v.csv", "-o", tmp_path / "r", "--epsilon", 1, *BOUNDS)
    assert fails(8, *build).endswith(
        "no column 'lon' in the first line; name it by --read x=NAME; its columns are long, lat, "
        "who; did you mean 'long'?\n"
    )
    users = ("--read", "x=long", "--user", "id", "--max-contributions", 1)
    assert fails(8, *build, *users).endswith(
        "no column 'id' in the first line; name it by --user NAME; its columns are long, lat, who\n"
    )


@pytest.mark.parametrize(("inner", "pattern"), [("", "*.csv"), ("2024", "**/*.csv")])
def test_other_files_in_a_folder_of_points_are_answered_by_a_pattern(tmp_path, inner, pattern):
    folder = tmp_path / "mixed"
    (folder / inner).mkdir(parents=True)
    for name, point in (("a.csv", (1, 2)), ("b.csv", (2, 3))):
        write_points(folder / inner / name, [point])
    (folder / "README.txt").write_text("Visits of the spring\n")
    build = ("build", folder, "-o", tmp_path / "r", "--epsilon", 1, *BOUNDS)
    told = fails(8, *build)
    hint = f"a folder stands for all its files: use '{folder}/{pattern}' for those of one kind\n"
    assert told.endswith(hint)
    passes("build", f"{folder}/{pattern}", *build[2:])
    (folder / "README.txt").unlink()
    write_points(folder / "c.csv", [(1, 2)], header="a,b")
    assert "a folder stands" not in fails(8, *build, "--overwrite")


def test_with_a_ledger_no_message_names_a_column(tmp_path):
    points, ledger = tmp_path / "v.csv", tmp_path / "l"
    write_points(points, [(1, 2)], header="Breite,Laenge")
    passes("ledger", "create", ledger)
    passes("ledger", "register", ledger, "visits", "--budget", 1)
    account = ("--ledger", ledger, "--dataset", "visits")
    build = ("build", points, "-o", tmp_path / "r", "--epsilon", 1, *BOUNDS)
    assert "its columns are Breite, Laenge" in fails(8, *build)
    outcome = cli(*build, *account)
    assert outcome.code == 8
    assert "Breite" not in outcome.out + outcome.err


def test_a_registered_delimiter_is_the_only_one(tmp_path):
    points, ledger = tmp_path / "v.csv", tmp_path / "l"
    points.write_text("lon;lat\n" + "1,5;2\n" * 50)
    passes("ledger", "create", ledger)
    read = ("--read", "delimiter=;", "--read", "decimal=,")
    register = passes("ledger", "register", ledger, "visits", "--budget", 1, *read)
    assert "x=lon y=lat decimal=, delimiter=;" in register
    account = ("--ledger", ledger, "--dataset", "visits")
    build = ("build", points, "-o", tmp_path / "r", "--epsilon", 1, *BOUNDS, *account)
    assert "is registered with delimiter ';', got 'auto'" in cli(*build, *read[2:]).err
    passes(*build, *read)
