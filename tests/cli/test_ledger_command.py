"""psd ledger, psd ask, and psd build with a ledger: what they say, and their exit codes."""

import itertools
import json
import stat

import geopandas as gpd
import pandas as pd
import pytest
from click.testing import CliRunner

from psd.ledger.ledger import Ledger
from psd_cli.commands.ledger import command
from support.cli_runner import BOUNDS, fails, files, passes, write_points
from support.ledger_columns import older_ledger
from support.ledger_edits import edit_charge

LEDGER = ("--ledger", "city.ledger", "--dataset", "rows")


def ledger_of(analyst):
    """Options of the ledger, and of an analyst."""
    return (*LEDGER[:3], f"rows:analyst={analyst}")


QUADTREE = (*BOUNDS, "--method", "quadtree", "--set", "height=1")
BUILD = ("build", "points.csv", "-o", "r.psd.parquet", "--epsilon", "0.4", *QUADTREE)
PEOPLE = ("ledger", "register", "city.ledger", "people", "--budget", "1")
ASK = ("ask", "points.csv", "--box", 0, 0, 1, 1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an input."""
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.csv", [(0.5, 0.5, "a"), (1.5, 2.5, "b")], "lon,lat,user")
    return tmp_path


@pytest.fixture
def ledger(here):
    passes("ledger", "create", "city.ledger")
    passes("ledger", "register", "city.ledger", "rows", "--budget", "1")
    return Ledger("city.ledger")


def test_create_register_status_history_verify(here):
    assert passes("ledger", "create", "city.ledger").startswith("wrote city.ledger")
    assert stat.S_IMODE((here / "city.ledger").stat().st_mode) == 0o600
    said = passes("ledger", "register", "city.ledger", "rows", "--budget", "1")
    assert said == (
        "registered rows in city.ledger: budget 1 per record\nrecords are read by x=lon y=lat\n"
    )
    args = (
        "--budget",
        "2",
        "--unit",
        "user",
        "--max-contributions",
        4,
        "--cap",
        "ann=1.5",
        "--read",
        "user=user",
    )
    passes("ledger", "register", "city.ledger", "people", *args)
    passes(*BUILD, *ledger_of("ann"))
    rows, people = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert rows == {
        "dataset": "rows",
        "unit": "record",
        "columns": "x=lon y=lat",
        "inputs": "any",
        "budget": "1",
        "spent": "0.4",
        "left": "0.6",
        "delta": "",
        "budget_rho": "",
        "spent_rho": "",
        "left_rho": "",
        "largest_pure": "",
        "adds_up": "common points",
        "charges": "1",
        "not_finished": "0",
        "raised": "",
        "left_of_caps": "",
    }
    assert (people["unit"], people["left_of_caps"]) == ("user k=4", "ann 1.5")
    (line,) = json.loads(passes("ledger", "history", "city.ledger", "--format", "json"))
    assert (line["analyst"], line["what"], line["epsilon"]) == ("ann", "build quadtree", "0.4")
    assert (line["where"], line["state"]) == ("-4 -4 4 4", "done")
    assert (
        json.loads(passes("ledger", "history", "city.ledger", "people", "--format", "json")) == []
    )
    assert "0.6" in passes("ledger", "status", "city.ledger")
    assert "done" in passes("ledger", "history", "city.ledger", "rows")
    assert "no entries of this kind yet" in passes("ledger", "history", "city.ledger", "people")
    head = passes("ledger", "verify", "city.ledger").split()[-1]
    assert passes("ledger", "verify", "city.ledger", "--head", head).endswith(f"head {head}\n")


def test_a_charge_without_a_file_is_shown_as_such(ledger, here, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("psd.api.release.Release.save", full)
        fails(70, *BUILD, *LEDGER)
    assert "charged, not finished" in passes("ledger", "history", "city.ledger")
    (rows,) = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert (rows["left"], rows["not_finished"]) == ("0.6", "1")


def test_an_overdraft_says_what_is_left_and_leaves_no_file(ledger, here):
    passes(*BUILD, *LEDGER)
    passes(*BUILD, *LEDGER, "--overwrite")
    said = fails(4, *BUILD[:3], "other.psd.parquet", *BUILD[4:], *LEDGER)
    assert "dataset 'rows' has epsilon 0.2 left, and this costs 0.4; nothing was drawn" in said
    assert files(here) == ["city.ledger", "points.csv", "r.psd.parquet"]


WHOLE = ("-o", "r.psd.parquet", "--epsilon", 1, "--method", "quadtree", "--set", "height=1")
BY_COLUMNS = ("both.csv", "--bounds", 0, 0, 4, 4)
ELSEWHERE = ("--bounds", 10, 0, 14, 4)


@pytest.mark.parametrize("name", ["both.gpkg", "both.shp", "both.fgb", "both.geojson", "both.pq"])
def test_columns_and_geometries_of_the_same_rows_add_up(name, ledger):
    table = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
    table.to_csv("both.csv", index=False)
    layer = gpd.GeoDataFrame(table, geometry=gpd.points_from_xy([11.0], [1.0]), crs="EPSG:4326")
    layer.to_parquet(name) if name.endswith(".pq") else layer.to_file(name)
    for number, order in enumerate(itertools.permutations([BY_COLUMNS, (name, *ELSEWHERE)])):
        ledger.register(str(number), 1)
        paid = ("--ledger", "city.ledger", "--dataset", number)
        passes("build", *order[0], *WHOLE, "--overwrite", *paid)
        said = fails(4, "build", *order[1], *WHOLE, "--overwrite", *paid)
        assert "has epsilon 0 left" in said


def test_columns_of_text_far_apart_do_not_add_up(ledger):
    pd.DataFrame({"lon": [1.0, 11.0], "lat": [1.0, 1.0]}).to_csv("both.csv", index=False)
    for bounds in (BY_COLUMNS, ("both.csv", *ELSEWHERE)):
        passes("build", *bounds, *WHOLE, "--overwrite", *LEDGER)
    assert ledger.state().spent("rows") == 10**9


def test_questions_and_builds_of_one_coordinate_resolution_do_not_add_up(ledger):
    step = ("--coordinate-resolution", "0.5")
    register = ("ledger", "register", "city.ledger", "rounded", "--budget", "1", *step)
    assert passes(*register).endswith("read by x=lon y=lat coordinate_resolution=0.5\n")
    paid = ("--ledger", "city.ledger", "--dataset", "rounded")
    here, beside = ("--box", 0, 0, 1, 1), ("--box", 1.5, 2, 2, 3)
    passes("ask", "points.csv", *here, *step, *paid, "--epsilon", "0.6")
    passes("ask", "points.csv", *beside, *step, *paid, "--epsilon", "0.6")
    assert ledger.state().spent("rounded") == 600_000_000
    passes("ask", "points.csv", *beside, *paid, "--epsilon", "0.3")
    assert ledger.state().spent("rounded") == 900_000_000  # without the step it is everywhere


def test_series_and_users_are_charged(ledger, here):
    passes(
        "ledger",
        "register",
        "city.ledger",
        "people",
        "--budget",
        "1",
        "--unit",
        "user",
        "--read",
        "user=user",
    )
    write_points(
        here / "points.csv",
        [(0.5, 0.5, "a", "2024-01-01"), (1.5, 2.5, "b", "2024-02-01")],
        "lon,lat,user,time",
    )
    people = ("--ledger", "city.ledger", "--dataset", "people", "--user", "user")
    series = ("--max-contributions", 1, "--read", "time=time", "--slices", "2024-01")
    passes(*BUILD, *people, *series)
    passes(*BUILD, *people, *series, "--per", "slice", "--overwrite")
    assert [c.what for c in ledger.state().charges.values()] == ["series quadtree"] * 2
    assert ledger.state().spent("people") == 800_000_000


def test_another_column_of_ids_is_refused_and_nothing_is_written(ledger, here):
    write_points(here / "points.csv", [(1, 1, "ann", f"d{i}") for i in range(9)], "lon,lat,who,by")
    passes(*PEOPLE, "--unit", "user", "--read", "user=who")
    paid = ("--ledger", "city.ledger", "--dataset", "people", "--max-contributions", 1)
    passes(*BUILD, *paid, "--user", "who")
    there = files(here)
    again = (*BUILD[:3], "s.psd.parquet", *BUILD[4:], *paid)
    said = fails(9, *again, "--user", "by")
    assert "the registered column of user ids 'who', got 'by'" in said
    assert files(here) == there
    passes("tally", "points.csv", "-o", "by.tally", *BOUNDS, "--user", "by", *paid[4:])
    of_tally = ("build", "by.tally", *again[2:6], "--method", "grid", *paid[:4])
    assert "the registered column of user ids 'who', got 'by'" in fails(9, *of_tally)
    assert ledger.state().spent("people") == 400_000_000


def test_registered_inputs_are_the_only_ones_that_are_read(ledger, here):
    passes(*PEOPLE, "--input", "points.csv")
    paid = ("--ledger", "city.ledger", "--dataset", "people")
    passes(*BUILD, *paid)
    (here / "copy.csv").write_text((here / "points.csv").read_text())
    other = ("build", "copy.csv", *BUILD[2:], "--overwrite", *paid)
    assert "`psd ledger inputs LEDGER people FILE`" in fails(9, *other)
    said = passes("ledger", "inputs", "city.ledger", "people", "copy.csv", "points.csv")
    assert said == "added 1 inputs to people in city.ledger; other inputs are refused\n"
    passes(*other)
    status = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert [line["inputs"] for line in status] == ["any", "2"]


def test_a_build_prints_the_head_that_verify_takes(ledger):
    *_, last = passes(*BUILD, *LEDGER).splitlines()
    head = last.removeprefix("ledger head ")
    assert head == f"4 {ledger.state().head}"
    *_, last = passes(*ASK, "--epsilon", "0.1", *LEDGER).splitlines()
    assert last == f"ledger head 6 {ledger.state().head}"
    passes("ledger", "verify", "city.ledger", "--head", head)
    edit_charge(ledger, 3, epsilon=1)
    passes("ledger", "verify", "city.ledger")
    assert "older copy" in fails(9, "ledger", "verify", "city.ledger", "--head", head)


def test_a_lowered_charge_is_found_by_seal_and_release(ledger, here):
    passes(*BUILD, *LEDGER)
    said = passes("ledger", "seal", "city.ledger", "--key", "owner.key")
    assert said == "wrote city.ledger.seal: entries 1 to 4 are sealed\n"
    verify = ("ledger", "verify", "city.ledger")
    passes(*BUILD[:3], "s.psd.parquet", *BUILD[4:], *LEDGER)
    said = passes(*verify, "--key", "owner.key", "--releases", ".")
    assert said.endswith("sealed: entries 1 to 4; not sealed: 2\n")
    edit_charge(ledger, 3, epsilon=1)
    passes(*verify)
    assert "does not have the sealed entry 4" in fails(9, *verify, "--key", "owner.key")
    said = fails(9, *verify, "--releases", ".")
    assert "release r.psd.parquet states another epsilon than charge" in said
    assert "another epsilon" in fails(9, *BUILD[:3], "t.psd.parquet", *BUILD[4:], *LEDGER)


def test_names_of_columns_do_not_control_the_terminal(here):
    passes("ledger", "create", "city.ledger")
    said = passes(*PEOPLE, "--read", "x=\x1b[2J", "--read", "y=[red]y")
    assert "records are read by x=\\x1b[2J y=[red]y" in said
    shown = passes("ledger", "status", "city.ledger")
    assert "\x1b" not in shown
    assert "[red]y" in shown


def test_columns_of_an_older_ledger_are_entered_after_a_question(here):
    older_ledger("city.ledger")
    paid = ("--ledger", "city.ledger", "--dataset", "visits")
    assert "psd ledger columns" in fails(9, *BUILD, *paid)
    (line,) = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert line["columns"] == "not registered"
    enter = ("ledger", "columns", "city.ledger", "visits", "--read", "time=t")
    asked = CliRunner().invoke(command, enter[1:], input="n\n")
    assert "read by x=lon y=lat time=t, also those of earlier charges" in asked.output
    assert Ledger("city.ledger").state().datasets["visits"].reading is None
    assert "records of visits are read by x=lon y=lat time=t" in passes(*enter, "--yes")
    passes(*BUILD, *paid)


def test_an_answer_has_its_error_and_is_done(ledger):
    passes(*ASK, "--epsilon", "0.4", *LEDGER)
    (found,) = json.loads(passes(*ASK, "--epsilon", "0.4", "--format", "json", *LEDGER))
    assert found["error"] == pytest.approx(3.5, abs=0.1)
    assert found["lower"] < found["estimate"] < found["upper"]
    assert passes(*ASK, "--epsilon", "0.1", "--format", "csv", *LEDGER).startswith("estimate,error")
    assert "has epsilon 0.1 left" in fails(4, *ASK, "--epsilon", "0.2", *LEDGER)
    assert [charge.done for charge in ledger.state().charges.values()] == [True] * 3


@pytest.mark.parametrize(
    ("code", "args", "words"),
    [
        (2, (*BUILD, "--ledger", "city.ledger"), "must be given together"),
        (2, (*BUILD, "--dataset", "rows"), "must be given together"),
        (2, (*BUILD, "--dataset", "rows:analyst=ann"), "must be given together"),
        (2, (*BUILD, *ledger_of("")), "must be a name"),
        (2, (*ASK, "--epsilon", "1"), "--ledger and --dataset must be given"),
        (2, (*ASK, *LEDGER), "--epsilon"),
        (2, (*ASK, "--epsilon", "0", *LEDGER), "must be above 0"),
        (3, ("ask", "points.csv", "--box", 1, 0, 0, 1, "--epsilon", 1, *LEDGER), "west below east"),
        (2, ("ledger", "register", "city.ledger", "a", "--budget", "0"), "budget must be above 0"),
        (2, ("ledger", "register", "city.ledger", "a"), "--budget"),
        (
            2,
            ("ledger", "register", "city.ledger", "a", "--budget", 1, "--cap", "ann"),
            "--cap must be NAME=EPSILON, such as ann=0.5, got 'ann'",
        ),
        (2, ("ledger", "register", "city.ledger", "a", "--budget", 1, "--budget", 2), "2 times"),
        (2, (*PEOPLE, "--unit", "user"), "the column of user ids if and only if"),
        (2, (*PEOPLE, "--read", "user=id"), "the column of user ids if and only if"),
        (2, (*PEOPLE, "--read", "uzer=id"), "uzer"),
        (9, ("ledger", "columns", "city.ledger", "rows", "--yes"), "has registered columns"),
        (9, ("ledger", "columns", "city.ledger", "roads", "--yes"), "not registered"),
        (2, ("ledger", "spend", "city.ledger"), "No such command"),
        (6, ("ledger", "create", "city.ledger"), "exists"),
        (6, ("ledger", "create", "nowhere/city.ledger"), "does not exist"),
        (6, (*BUILD[:3], "city.ledger", *BUILD[4:], "--overwrite", *LEDGER), "is read as an input"),
        (9, ("ledger", "register", "city.ledger", "rows", "--budget", "1"), "already"),
        (9, (*BUILD, "--ledger", "city.ledger", "--dataset", "roads"), "'roads' is not registered"),
        (9, (*BUILD, "--ledger", "other.ledger", "--dataset", "rows"), "does not exist"),
        (9, (*BUILD, "--ledger", "points.csv", "--dataset", "rows"), "not a ledger of psd"),
        (9, (*BUILD, "--ledger", ".", "--dataset", "rows"), "not a file"),
        (9, (*BUILD, *LEDGER, "--user", "user", "--max-contributions", 1), "do not add up"),
        (9, ("ledger", "status", "other.ledger"), "does not exist"),
        (9, ("ledger", "history", "city.ledger", "roads"), "not registered"),
        (9, ("ledger", "verify", "city.ledger", "--head", "0" * 64), "older copy"),
        (9, ("ledger", "verify", "points.csv"), "not a ledger of psd"),
    ],
)
def test_refusals_leave_all_files_and_balances_as_they_are(code, args, words, ledger, here):
    before, there = ledger.path.read_bytes(), files(here)
    assert words in fails(code, *args)
    assert (ledger.path.read_bytes(), files(here)) == (before, there)


def test_brackets_in_names_are_names(ledger):
    passes("ledger", "register", "city.ledger", "[red]x[/red]", "--budget", "1")
    assert "[red]x[/red]" in passes("ledger", "status", "city.ledger")


@pytest.mark.parametrize("name", command.commands)
def test_every_sub_command_explains_itself(name):
    text = passes("ledger", name, "--help")
    assert f"psd ledger {name} city.ledger" in text
    for parameter in command.commands[name].params:
        assert (getattr(parameter, "help", None) or "An argument.").endswith(".")


def test_help_of_the_group_lists_them(here):
    text = passes("ledger", "--help")
    assert all(name in text for name in command.commands)
    assert passes("ledger") == text


def test_raise(ledger):
    said = passes("ledger", "raise", "city.ledger", "rows", "--budget", "2")
    assert said == "raised rows in city.ledger: budget 2\n"
    (rows,) = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert (rows["budget"], rows["left"]) == ("2", "2")
    assert rows["raised"].endswith(" from 1")
    assert "must be above" in fails(2, "ledger", "raise", "city.ledger", "rows", "--budget", "1")
