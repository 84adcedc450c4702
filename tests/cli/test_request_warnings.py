"""Warnings of a large epsilon, and refusals of a release that is named like another file."""

import io
from contextlib import redirect_stderr

import pytest

from psd_cli.main import run
from support.cli_runner import BOUNDS, cli, passes, write_points

ENDINGS = [("r.psd.parquet", False), ("r", False), ("r.csv", True), ("R.GPKG", True)]


@pytest.fixture
def points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_points(tmp_path / "points.csv", [(1, 1), (2, 2)])


def stderr_of(*args):
    """All of stderr, with the warnings that `cli` leaves out."""
    err = io.StringIO()
    with redirect_stderr(err):
        assert run([str(arg) for arg in args]) == 0
    return err.getvalue()


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
@pytest.mark.parametrize(("epsilon", "is_large"), [("10", False), ("10.5", True), ("1e2", True)])
def test_a_large_epsilon_is_a_weak_promise(points, epsilon, is_large, dry_run):
    build = ("build", points, "-o", "r", *BOUNDS, "--method", "grid", "--set", "size=2")
    told = stderr_of(*build, "--epsilon", epsilon, *dry_run)
    shown = f"{float(epsilon):g}"
    assert told.startswith(f"psd: warning: epsilon {shown} is a weak promise") == is_large
    odds = {"10.5": "36 thousand", "1e2": "more than 10^43"}.get(epsilon, "no warning")
    assert (f"about a person by {odds}, e^{shown};" in told) == is_large
    assert told.count("\n") == is_large


def test_an_answer_of_a_large_epsilon_is_a_weak_promise(points):
    passes("ledger", "create", "l")
    passes("ledger", "register", "l", "visits", "--budget", 100)
    ask = ("ask", points, "--box", 0, 0, 2, 2, "--ledger", "l", "--dataset", "visits")
    assert "epsilon 11 is a weak promise" in stderr_of(*ask, "--epsilon", 11)
    assert stderr_of(*ask, "--epsilon", 1) == ""


@pytest.mark.parametrize(("name", "is_other"), ENDINGS)
@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_a_release_with_the_name_of_a_table_is_refused(points, name, is_other, dry_run):
    build = ("build", points, "-o", name, *BOUNDS, "--epsilon", 1, "--method", "grid")
    outcome = cli(*build, *dry_run)
    message = (
        "psd: error: --output must end in .parquet, or in no ending of another format, "
        f"got {name}; "
    )
    assert outcome.code == (2 if is_other else 0)
    assert outcome.err.startswith(message) == is_other
    assert outcome.err.count("\n") == is_other
    assert not (is_other and (points.parent / name).exists())


IDS = "lon,lat,user_id,id"


def build_of(file, *more):
    return ("build", file, "-o", "r", *BOUNDS, "--epsilon", 1, "--method", "grid", *more)


def table_of_ids(folder, header=IDS):
    fields = len(header.split(","))
    return write_points(folder / "ids.csv", [(1, 1, *range(fields - 2))] * 3, header)


def test_a_column_that_is_named_like_an_id_asks_for_the_unit(points):
    ids = table_of_ids(points.parent)
    asked = (
        "psd: warning: a column is named like an id (user_id), and each record is protected "
        "separately: a person with many records is protected less. Give --user COLUMN to protect "
        "all records of a user, or --per record if a record is what you protect\n"
    )
    assert stderr_of(*build_of(ids)) == asked
    assert stderr_of(*build_of(points, "--overwrite")) == ""
    stated = ("--user", "user_id", "--max-contributions", 2), ("--per", "record")
    for unit in stated:
        assert stderr_of(*build_of(ids, *unit, "--overwrite")) == ""
    assert stderr_of("tally", ids, "-o", "t", *BOUNDS) == asked
    assert stderr_of("tally", ids, "-o", "t", *BOUNDS, "--per", "record", "--overwrite") == ""
    assert stderr_of(*build_of("t", "--overwrite")[:4], "--epsilon", 1, "--overwrite") == ""


def test_a_dataset_of_a_ledger_states_the_unit(points):
    ids = table_of_ids(points.parent)
    passes("ledger", "create", "l")
    passes("ledger", "register", "l", "visits", "--budget", 100, "--unit", "record")
    assert stderr_of(*build_of(ids, "--ledger", "l", "--dataset", "visits")) == ""


@pytest.mark.parametrize("rows", [[], [(1, 1, "a", 1)], [(9, 9, "b", 1)] * 9])
def test_the_warning_does_not_depend_on_records(points, rows):
    write_points(points.parent / "ids.csv", rows, IDS)
    assert "(user_id)" in stderr_of(*build_of("ids.csv"))


def test_a_file_without_names_of_columns_shows_nothing_of_its_first_line(points):
    write_points(points.parent / "ids.csv", [(1, 1)], "127.1,37.5,person")
    outcome = cli(*build_of("ids.csv"))
    assert outcome.code == 8
    assert "person" not in outcome.err


def test_a_recipe_keeps_the_statement(points):
    ids = table_of_ids(points.parent)
    passes(*build_of(ids, "--per", "record", "--save-recipe", "r.toml", "--dry-run"))
    assert 'per = "record"' in (points.parent / "r.toml").read_text()
    assert stderr_of("run", "r.toml") == ""


def test_records_and_users_contradict_each_other(points):
    ids = table_of_ids(points.parent)
    users = ("--user", "user_id", "--max-contributions", 2, "--per", "record")
    outcome = cli(*build_of(ids, *users))
    assert (outcome.code, "--per must not be record with --user," in outcome.err) == (2, True)
