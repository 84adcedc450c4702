"""Warnings of a large epsilon, and refusals of a release that is named like another file."""

import io
from contextlib import redirect_stderr

import geopandas as gpd
import pytest
from shapely import box

from psd_cli.main import run
from support.cli_runner import BOUNDS, cli, passes, words, write_points

IDS = "lon,lat,user_id,id"
ASKED = (
    "psd: warning: a column is named like an id (user_id), and each record is protected "
    "separately: a person with many records is protected less. Give --user COLUMN to protect "
    "all records of a user, or --per record if a record is what you protect\n"
)


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", [(1, 1), (2, 2)])
    write_points(here / "ids.csv", [(1, 1, 0, 1)] * 3, IDS)


def stderr_of(*args):
    """All of stderr, with the warnings that `cli` leaves out."""
    err = io.StringIO()
    with redirect_stderr(err):
        assert run(words(*args)) == 0
    lines = err.getvalue().splitlines(keepends=True)
    return "".join(
        line for line in lines if not line.startswith("(to see, as the holder of the data")
    )


def build_of(file, more="", epsilon=1):
    line = f"build {file} -o r --epsilon {epsilon} --method grid --set size=2 --overwrite {more}"
    return (line, *BOUNDS)


def test_a_large_epsilon_is_a_weak_promise(subtests):
    odds = {"10": None, "10.5": "36 thousand", "1e2": "more than 10^43"}
    for epsilon, text in odds.items():
        for more in ("", "--dry-run"):
            with subtests.test(epsilon, more=more):
                told = stderr_of(*build_of("points.csv", more, epsilon))
                shown = f"{float(epsilon):g}"
                weak = f"psd: warning: --epsilon {shown} is a weak promise"
                assert told.startswith(weak) == bool(text)
                assert (f"about a person by {text}, e^{shown};" in told) == bool(text)
                assert told.count("\n") == bool(text)
    passes("ledger create l")
    passes("ledger register l visits --budget 100")
    ask = "ask points.csv --box 0 0 2 2 --ledger l --dataset visits"
    assert "--epsilon 11 is a weak promise" in stderr_of(f"{ask} --epsilon 11")
    assert stderr_of(f"{ask} --epsilon 1") == ""


def test_a_release_with_the_name_of_a_table_is_refused(here, subtests):
    for name in ("r.psd.parquet", "r", "r.csv", "R.GPKG"):
        for more in ("--dry-run", ""):
            with subtests.test(name, more=more):
                line = f"build points.csv -o {name} --epsilon 1 --method grid {more}"
                outcome = cli(line, *BOUNDS)
                is_other = "csv" in name or "GPKG" in name
                told = "--output must end in .parquet, or in no ending of another format, "
                assert outcome.code == (2 if is_other else 0)
                assert outcome.err.startswith(f"psd: error: {told}got {name}; ") == is_other
                assert outcome.err.count("\n") == is_other
                assert not (is_other and (here / name).exists())


def test_a_column_that_is_named_like_an_id_asks_for_the_unit():
    assert stderr_of(*build_of("ids.csv")) == ASKED
    assert stderr_of(*build_of("points.csv")) == ""
    for unit in ("--user user_id --max-contributions 2", "--per record"):
        assert stderr_of(*build_of("ids.csv", unit)) == ""
    assert stderr_of("tally ids.csv -o t", *BOUNDS) == ASKED
    assert stderr_of("tally ids.csv -o t --per record --overwrite", *BOUNDS) == ""
    assert stderr_of(build_of("t")[0].replace("--set size=2", "")) == ""
    passes("ledger create l")
    passes("ledger register l visits --budget 100 --unit record")
    assert stderr_of(*build_of("ids.csv", "--ledger l --dataset visits")) == ""
    outcome = cli(*build_of("ids.csv", "--user user_id --max-contributions 2 --per record"))
    assert (outcome.code, "--per must not be record with --user," in outcome.err) == (2, True)


def test_the_warning_depends_on_recipes_and_not_on_records(here):
    passes(*build_of("ids.csv", "--per record --save-recipe r.toml --dry-run"))
    assert 'per = "record"' in (here / "r.toml").read_text()
    assert stderr_of("build r.toml") == ""
    for rows in ([], [(1, 1, "a", 1)], [(9, 9, "b", 1)] * 9):
        write_points(here / "ids.csv", rows, IDS)
        assert "(user_id)" in stderr_of(*build_of("ids.csv"))
    # A file without names of columns shows nothing of its first line.
    write_points(here / "ids.csv", [(1, 1)], "127.1,37.5,person")
    outcome = cli(*build_of("ids.csv"))
    assert outcome.code == 8
    assert "person" not in outcome.err


def test_a_density_that_fills_cells_beyond_the_world_is_warned_of(here, subtests):
    """By itself, and with the earth as boundary, cells at the rim are filled on earth alone."""
    earth = gpd.GeoSeries([box(-180, -90, 180, 90)], crs="EPSG:4326")
    earth.to_file(here / "earth.geojson")
    oval, inner = (-18040096, -9020048, 18040096, 9020048), (-9e6, -6e6, 9e6, 6e6)
    for crs, bounds, more, told in (
        ("ESRI:54009", oval, "", False),
        ("ESRI:54009", oval, "--density uniform", True),
        ("ESRI:54009", oval, "--boundary earth.geojson", False),
        ("ESRI:54009", inner, "--density uniform", False),
        ("EPSG:3857", oval, "--density smooth", False),
        ("EPSG:8857", oval, "--density smooth", True),
    ):
        with subtests.test(crs, bounds=bounds, more=more):
            line = f"build points.csv -o r --epsilon 1 --method grid --dry-run --crs {crs} {more}"
            text = stderr_of(line, "--bounds", *bounds)
            assert ("reach beyond the world" in text) == told
            assert text.count("\n") == told
