"""psd ledger, psd ask, and psd build with a ledger: what they say, and their exit codes."""

import itertools
import stat

import geopandas as gpd
import pandas as pd
import pytest

from psd.ledger.ledger import Ledger
from psd_cli.commands.ledger import command
from support.cli_runner import (
    BOUNDS,
    as_json,
    check_refusals,
    cli,
    fails,
    files,
    passes,
    write_points,
)
from support.ledger_edits import edit_charge

LEDGER = ("--ledger", "city.ledger", "--dataset", "rows")
OF_PEOPLE = (*LEDGER[:3], "people")
METHOD = "--method quadtree --set height=1 --bounds -4 -4 4 4"
SMALL = f"--epsilon 0.4 {METHOD}"
BUILD = f"build points.csv -o r.psd.parquet {SMALL}"
OTHER = f"build points.csv -o s.psd.parquet {SMALL}"
ROWS = "ledger register city.ledger rows --budget 1"
PEOPLE = "ledger register city.ledger people --budget 1"
ASK = "ask points.csv --box 0 0 1 1"


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", [(0.5, 0.5, "a"), (1.5, 2.5, "b")], "lon,lat,user")


@pytest.fixture
def ledger(here):
    passes("ledger create city.ledger")
    passes(ROWS)
    return Ledger("city.ledger")


def status():
    return as_json("ledger status city.ledger")


def spent(ledger, dataset):
    return ledger.state().spent(dataset)


def test_create_register_status_history_verify(here):
    assert passes("ledger create city.ledger").startswith("wrote city.ledger")
    assert stat.S_IMODE((here / "city.ledger").stat().st_mode) == 0o600
    assert passes(ROWS) == (
        "registered rows in city.ledger: budget 1 per record\nrecords are read by x=lon y=lat\n"
    )
    people = "--budget 2 --unit user --max-contributions 4 --cap ann=1.5 --user user"
    passes(f"ledger register city.ledger people {people}")
    passes(BUILD, *LEDGER[:3], "rows", "--analyst", "ann")
    rows, people = status()
    empty = ("delta", "budget_rho", "spent_rho", "left_rho", "raised")
    assert {rows.pop(name) for name in (*empty, "left_of_caps")} == {""}
    assert rows == {
        "dataset": "rows",
        "unit": "record",
        "columns": "x=lon y=lat",
        "inputs": "any",
        "budget": "1",
        "spent": "0.4",
        "left": "0.6",
        "adds_up": "common points",
        "charges": "1",
        "not_finished": "0",
    }
    assert (people["unit"], people["left_of_caps"]) == ("user k=4", "ann 1.5")
    (line,) = as_json("ledger history city.ledger")
    assert (line["analyst"], line["what"], line["epsilon"]) == ("ann", "build quadtree", "0.4")
    assert (line["where"], line["state"]) == ("-4 -4 4 4", "done")
    assert as_json("ledger history city.ledger people") == []
    assert "0.6" in passes("ledger status city.ledger")
    assert "done" in passes("ledger history city.ledger rows")
    assert "no entries of this kind yet" in passes("ledger history city.ledger people")
    head = passes("ledger verify city.ledger").split()[-1]
    assert passes("ledger verify city.ledger --head", head).endswith(f"head {head}\n")


def test_charges_without_a_file_and_overdrafts_are_shown_as_such(ledger, here, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("psd.api.release.Release.save", full)
        fails(70, BUILD, *LEDGER)
    assert "charged, not finished" in passes("ledger history city.ledger")
    (rows,) = status()
    assert (rows["left"], rows["not_finished"]) == ("0.6", "1")
    passes(BUILD, *LEDGER)
    said = fails(4, OTHER, *LEDGER)
    assert "dataset 'rows' has epsilon 0.2 left, and this costs 0.4; nothing was drawn" in said
    assert files(here) == ["city.ledger", "points.csv", "r.psd.parquet"]


WHOLE = "-o r --epsilon 1 --method quadtree --set height=1 --overwrite"
BY_COLUMNS = f"build both.csv --bounds 0 0 4 4 {WHOLE}"
ELSEWHERE = f"--bounds 10 0 14 4 {WHOLE}"


@pytest.mark.parametrize("name", ["both.gpkg", "both.shp", "both.fgb", "both.geojson", "both.pq"])
def test_columns_and_geometries_of_the_same_rows_add_up(name, ledger):
    table = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
    table.to_csv("both.csv", index=False)
    layer = gpd.GeoDataFrame(table, geometry=gpd.points_from_xy([11.0], [1.0]), crs="EPSG:4326")
    layer.to_parquet(name) if name.endswith(".pq") else layer.to_file(name)
    builds = (BY_COLUMNS, f"build {name} {ELSEWHERE}")
    for number, (first, second) in enumerate(itertools.permutations(builds)):
        ledger.register(str(number), 1)
        passes(first, *LEDGER[:3], number)
        assert "has epsilon 0 left" in fails(4, second, *LEDGER[:3], number)


def test_charges_of_places_apart_do_not_add_up(ledger):
    """Of columns of text, and of questions of one coordinate resolution."""
    pd.DataFrame({"lon": [1.0, 11.0], "lat": [1.0, 1.0]}).to_csv("both.csv", index=False)
    for build in (BY_COLUMNS, f"build both.csv {ELSEWHERE}"):
        passes(build, *LEDGER)
    assert spent(ledger, "rows") == 10**9
    step = ("--coordinate-resolution", "0.5")
    register = passes("ledger register city.ledger rounded --budget 1", *step)
    assert register.endswith("read by x=lon y=lat coordinate_resolution=0.5\n")
    paid = (*LEDGER[:3], "rounded", "--epsilon")
    beside = "ask points.csv --box 1.5 2 2 3"
    passes(ASK, *step, *paid, "0.6")
    passes(beside, *step, *paid, "0.6")
    assert spent(ledger, "rounded") == 600_000_000
    passes(beside, *paid, "0.3")
    assert spent(ledger, "rounded") == 900_000_000  # without the step it is everywhere


def test_series_and_users_are_charged(ledger, here):
    passes(f"{PEOPLE} --unit user --user user")
    rows = [(0.5, 0.5, "a", "2024-01-01"), (1.5, 2.5, "b", "2024-02-01")]
    write_points(here / "points.csv", rows, "lon,lat,user,time")
    series = "--user user --max-contributions 1 --time time --slices 2024-01"
    passes(f"{BUILD} {series}", *OF_PEOPLE)
    passes(f"{BUILD} {series} --per slice --overwrite", *OF_PEOPLE)
    assert [c.what for c in ledger.state().charges.values()] == ["series quadtree"] * 2
    assert spent(ledger, "people") == 800_000_000


def test_another_column_of_ids_is_refused_and_nothing_is_written(ledger, here):
    write_points(here / "points.csv", [(1, 1, "ann", f"d{i}") for i in range(9)], "lon,lat,who,by")
    passes(f"{PEOPLE} --unit user --user who")
    passes(f"{BUILD} --max-contributions 1 --user who", *OF_PEOPLE)
    there = files(here)
    told = "the registered column of user ids 'who', got 'by'"
    assert told in fails(9, f"{OTHER} --max-contributions 1 --user by", *OF_PEOPLE)
    assert files(here) == there
    passes("tally points.csv -o by.tally --max-contributions 1 --user by", *BOUNDS)
    assert told in fails(9, "build by.tally -o s --epsilon 0.4 --method grid", *OF_PEOPLE)
    assert spent(ledger, "people") == 400_000_000


def test_registered_inputs_are_the_only_ones_that_are_read(ledger, here):
    passes(f"{PEOPLE} --input points.csv")
    passes(BUILD, *OF_PEOPLE)
    (here / "copy.csv").write_text((here / "points.csv").read_text())
    other = (f"build copy.csv -o r.psd.parquet {SMALL} --overwrite", *OF_PEOPLE)
    assert "`psd ledger inputs LEDGER people FILE`" in fails(9, *other)
    said = passes("ledger inputs city.ledger people copy.csv points.csv")
    assert said == "added 1 inputs to people in city.ledger; other inputs are refused\n"
    passes(*other)
    assert [line["inputs"] for line in status()] == ["any", "2"]


def test_a_build_prints_the_head_that_verify_takes(ledger):
    verify = "ledger verify city.ledger"
    *_, last = passes(BUILD, *LEDGER).splitlines()
    head = last.removeprefix("ledger head ")
    assert head == f"4 {ledger.state().head}"
    *_, last = passes(f"{ASK} --epsilon 0.1", *LEDGER).splitlines()
    assert last == f"ledger head 6 {ledger.state().head}"
    passes(verify, "--head", head)
    edit_charge(ledger, 3, epsilon=1)
    passes(verify)
    assert "older copy" in fails(9, verify, "--head", head)


def test_a_lowered_charge_is_found_by_seal_and_release(ledger):
    verify = "ledger verify city.ledger"
    passes(BUILD, *LEDGER)
    said = passes("ledger seal city.ledger --key owner.key")
    assert said == "wrote city.ledger.seal: entries 1 to 4 are sealed\n"
    passes(OTHER, *LEDGER)
    said = passes(f"{verify} --key owner.key --releases .")
    assert said.endswith("sealed: entries 1 to 4; not sealed: 2\n")
    edit_charge(ledger, 3, epsilon=1)
    passes(verify)
    assert "does not have the sealed entry 4" in fails(9, f"{verify} --key owner.key")
    said = fails(9, f"{verify} --releases .")
    assert "release r.psd.parquet states another epsilon than charge" in said
    third = OTHER.replace("s.psd", "t.psd")
    assert "another epsilon" in fails(9, third, *LEDGER)


def test_names_do_not_control_the_terminal(ledger):
    said = passes(PEOPLE, "--x", "\x1b[2J", "--y", "[red]y")
    assert "records are read by x=\\x1b[2J y=[red]y" in said
    passes("ledger register city.ledger [red]x[/red] --budget 1")
    shown = passes("ledger status city.ledger")
    assert "\x1b" not in shown
    assert "[red]y" in shown
    assert "[red]x[/red]" in shown
    group = passes("ledger --help")
    assert passes("ledger") == group
    for name, sub in command.commands.items():
        assert name in group
        assert f"psd ledger {name} " in passes(f"ledger {name} --help")
        for parameter in sub.params:
            assert (getattr(parameter, "help", None) or "An argument.").endswith(".")


PAID = " ".join(LEDGER)
REGISTER = "ledger register city.ledger a"
REFUSED = [
    (2, f"{BUILD} --ledger city.ledger", "must be given together"),
    (2, f"{BUILD} {PAID} --analyst=", "must be a name"),
    (2, f"{BUILD} {PAID}:analyst=ann", "is now --analyst"),
    (2, f"{ASK} --epsilon 1", "--ledger and --dataset must be given"),
    (2, f"{ASK} {PAID}", "--epsilon"),
    (3, f"ask points.csv --box 1 0 0 1 --epsilon 1 {PAID}", "west below east"),
    (2, REGISTER, "--budget"),
    (2, f"{REGISTER} --budget 1 --cap ann", "cap must be NAME=EPSILON, such as ann=0.5, got 'ann'"),
    (2, f"{REGISTER} --budget 1 --budget 2", "2 times"),
    (2, f"{PEOPLE} --unit user", "the column of user ids if and only if"),
    (2, f"{PEOPLE} --uzer id", "uzer"),
    (2, f"{PEOPLE} --read user=id", "is now --user"),
    (2, "ledger spend city.ledger", "ledger command 'spend' does not exist; use one of"),
    (6, "ledger create city.ledger", "exists"),
    (6, "ledger create nowhere/city.ledger", "does not exist"),
    (6, f"build points.csv -o city.ledger {SMALL} --overwrite {PAID}", "is never overwritten"),
    (2, f"{ASK} --mean fare --epsilon 0.1 {PAID}", "--mean must be a column that --value names"),
    (2, f"{ASK} --value fare 0 60 --epsilon 0.1 {PAID}", "must be asked for with --mean or --sum"),
    (2, f"{ASK} --value fare 60 0 --sum fare --epsilon 0.1 {PAID}", "were they exchanged"),
    (2, f"{ASK} --value fare 0 --sum fare --epsilon 0.1 {PAID}", "--value"),
    (9, ROWS, "already"),
    (9, f"{BUILD} --ledger city.ledger --dataset roads", "'roads' is not registered"),
    (9, f"{BUILD} --ledger points.csv --dataset rows", "not a ledger of psd"),
    (9, f"{BUILD} --ledger . --dataset rows", "not a file"),
    (9, "ledger status other.ledger", "does not exist"),
    (9, "ledger history city.ledger roads", "not registered"),
]


def test_refusals_leave_all_files_and_balances_as_they_are(subtests, ledger):
    check_refusals(subtests, REFUSED)


def test_an_answer_has_its_error_and_budgets_are_raised(ledger):
    passes(ASK, "--epsilon", "0.4", *LEDGER)
    (found,) = as_json(ASK, "--epsilon", "0.4", *LEDGER)
    assert found["error"] == pytest.approx(3.5, abs=0.1)
    assert found["lower"] < found["estimate"] < found["upper"]
    assert passes(f"{ASK} --epsilon 0.1 --format csv", *LEDGER).startswith("estimate,error")
    assert "has epsilon 0.1 left" in fails(4, ASK, "--epsilon", "0.2", *LEDGER)
    assert [charge.done for charge in ledger.state().charges.values()] == [True] * 3
    said = passes("ledger raise city.ledger rows --budget 2")
    assert said == "raised rows in city.ledger: budget 2\n"
    (rows,) = status()
    assert (rows["budget"], rows["left"]) == ("2", "1.1")
    assert rows["raised"].endswith(" from 1")
    assert "must be above" in fails(2, "ledger raise city.ledger rows --budget 1")


def test_means_and_sums_of_registered_values_cost_one_charge(ledger, here):
    rows = [(0.5, 0.5, 10, 1), (0.6, 0.5, 20, 1), (1.5, 2.5, 30, 1)]
    write_points(here / "rides.csv", rows, "lon,lat,fare,tip")
    register = passes("ledger register city.ledger rides --budget 90 --value-column fare")
    assert register.endswith("read by x=lon y=lat values=fare\n")
    paid = (*LEDGER[:3], "rides", "--epsilon", "10")
    ask = "ask rides.csv --box 0 0 1 1 --value fare 0 60 --mean fare --sum fare"
    [answer] = as_json(ask, *paid)
    assert set(answer) >= {"mean_fare", "mean_fare_error", "sum_fare", "sum_fare_upper"}
    assert 0 <= answer["mean_fare_lower"] <= answer["mean_fare"] <= answer["mean_fare_upper"] <= 60
    assert spent(ledger, "rides") == 10 * 10**9
    small = (*paid[:-1], "0.000001")
    shown = cli("ask rides.csv --box 5 5 6 6 --value fare 0 60 --mean fare", *small).err
    assert "1 mean has no interval" in shown
    assert "from 0 to 60, the bounds of fare" in shown
    # Another column may be refused where this one is not, so reading it has a price.
    before = spent(ledger, "rides")
    other = cli("ask rides.csv --box 0 0 1 1 --value tip 0 60 --mean tip", *small).err
    assert "the build reads values otherwise than dataset 'rides' registers" in other
    assert spent(ledger, "rides") >= before + 90 * 10**9 // 20
