"""Time in the ledger, through the command: which charges for slices of one file add up."""

import pandas as pd
import pytest

from psd.ledger.ledger import Ledger
from support.cli_runner import BOUNDS, as_json, fails, passes, write_points

# The last rows are of one day only, which is no part of what is charged.
ROWS = [
    (0.5, 0.5, "a", "2026-01-05T08:00"),
    (1.5, 2.5, "b", "2026-01-06T09:00"),
    (1.5, 2.0, "b", "2026-01-06T23:59"),
]
TIMES = ("--time", "seen", "--time-zone", "Asia/Seoul")
USER = ("--user", "id", "--max-contributions", 2)
UNITS = {
    "record": ((), ()),
    "user-day": (("--user", "id"), (*USER, "--per", "day")),
    "user": (("--user", "id"), USER),
}
REGISTER = "ledger register city.ledger"
PAID = "--ledger city.ledger --dataset visits --overwrite"
METHOD = "--method quadtree --set height=1"
LEFT = "has epsilon 0.4 left"


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", ROWS, "lon,lat,id,seen")
    passes("ledger create city.ledger")


def register(unit, times=TIMES):
    passes(f"{REGISTER} visits --budget 1 --unit {unit}", *UNITS[unit][0], *times)


def build(unit, slices, epsilon="0.6", data="points.csv", times=TIMES, bounds=BOUNDS):
    """Line that builds some slices and pays."""
    line = f"build {data} -o r --slices {slices} --epsilon {epsilon} {METHOD} {PAID}"
    return (line if slices else line.replace("--slices ", ""), *bounds, *times, *UNITS[unit][1])


def status():
    return as_json("ledger status city.ledger")


def charged():
    return [charge.slices.text for charge in Ledger("city.ledger").state().charges.values()]


@pytest.mark.parametrize("unit", ["record", "user-day"])
def test_two_days_of_one_file_are_not_added(unit):
    register(unit)
    passes(*build(unit, "2026-01-05"))
    passes(*build(unit, "2026-01-06"))
    told = fails(4, *build(unit, "2026-01-05"))
    assert "dataset 'visits' has epsilon 0.4 left, and this costs 0.6" in told
    passes(*build(unit, "2026-01-05", epsilon="0.4"))
    (row,) = status()
    assert (row["spent"], row["left"], row["charges"]) == ("1", "0", "3")
    history = as_json("ledger history city.ledger")
    assert [line["when"] for line in history] == ["2026-01-05", "2026-01-06", "2026-01-05"]


def test_two_days_of_a_user_are_added():
    register("user")
    passes(*build("user", "2026-01-05"))
    assert LEFT in fails(4, *build("user", "2026-01-06"))
    assert status()[0]["adds_up"] == "all"


def test_k_in_each_slice_of_a_user_is_added_too():
    """Each day alone keeps 2 records of a user, so two days have 4."""
    register("user")
    passes(*build("user", "2026-01-05"), "--per", "slice")
    assert LEFT in fails(4, *build("user", "2026-01-06"), "--per", "slice")


def test_hours_of_a_day_of_a_user_are_added_and_hours_of_records_are_not():
    register("user-day")
    passes(*build("user-day", "2026-01-06T09"))
    assert LEFT in fails(4, *build("user-day", "2026-01-06T23"))
    assert LEFT in fails(4, *build("user-day", "2026-01-05"))
    passes("ledger create other.ledger")
    passes("ledger register other.ledger visits --budget 1", *TIMES)
    for hour in ("09", "10"):
        line, *rest = build("record", f"2026-01-06T{hour}")
        passes(line.replace("city", "other"), *rest)


def test_the_slices_of_a_charge_are_those_of_the_request_and_not_of_the_data():
    """Rows lie on two days of the month, and the charge names all of it."""
    register("record")
    passes(*build("record", "2026-01-01..2026-01-31"))
    assert charged() == ["2026-01-01..2026-01-31"]
    assert LEFT in fails(4, *build("record", "2026-01-20"))
    passes(*build("record", "2026-02-01"))


OTHERS = {
    "zone": build("record", "2026-01-06", times=TIMES[:2]),
    "columns": (*build("record", "2026-01-06"), "--x", "lat", "--y", "lon"),
    "input": build("record", "2026-01-06", data="points.parquet"),
    "no slices": build("record", ""),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_counts_always(other):
    register("record")
    passes(*build("record", "2026-01-05"))
    pd.read_csv("points.csv").to_parquet("points.parquet")
    assert LEFT in fails(4, *OTHERS[other])


def tally(slices, unit="record", data="points.csv"):
    """Tally some slices of a file, and name the line that builds from it and pays."""
    line = f"tally {data} --slices {slices} -o {slices}.tally --overwrite"
    passes(line, *BOUNDS, *TIMES, *UNITS[unit][1])
    return f"build {slices}.tally -o r --epsilon 0.6 {METHOD} {PAID}"


@pytest.mark.parametrize("unit", ["record", "user-day"])
def test_tallies_of_two_days_are_not_added(unit):
    register(unit)
    passes(tally("2026-01-05", unit))
    passes(tally("2026-01-06", unit))
    assert LEFT in fails(4, tally("2026-01-05", unit))
    assert LEFT in fails(4, *build(unit, "2026-01-06"))
    assert charged() == ["2026-01-05", "2026-01-06"]


@pytest.mark.parametrize("other", ["input", "clock", "user"])
def test_tallies_that_count_always(other, monkeypatch):
    unit = "user" if other == "user" else "record"
    register(unit)
    first = tally("2026-01-05", unit)
    if other == "clock":
        monkeypatch.setattr("psd.publish.tally_parts.zone_rules", lambda zone: "0" * 16)
    pd.read_csv("points.csv").to_parquet("points.parquet")
    second = tally("2026-01-06", unit, "points.parquet" if other == "input" else "points.csv")
    passes(first)
    assert LEFT in fails(4, second)


def test_areas_and_days_are_apart_together():
    """A charge for one area on all days, and those for one day each in another area."""
    register("record")
    east = ("--bounds", 1, -4, 4, 4)
    passes(*build("record", "2026-01-05", bounds=("--bounds", -4, -4, 0, 4)))
    passes(*build("record", "2026-01-05", bounds=east))
    passes(*build("record", "2026-01-06", bounds=east))
    assert status()[0]["spent"] == "0.6"
    assert LEFT in fails(4, *build("record", "2026-01-06"))


def test_status_says_in_words_what_adds_up():
    register("record")
    assert status()[0]["adds_up"] == "common points and slices"
    passes(f"{REGISTER} roads --budget 1")
    days = "--unit user-day --time-zone Asia/Seoul --user id --time seen"
    passes(f"{REGISTER} days --budget 1 {days}")
    assert [row["adds_up"] for row in status()[1:]] == ["common points", "common days"]
    assert "common points and slices" in passes("ledger status city.ledger")


def test_clocks_that_change_in_autumn_keep_days_apart(here):
    """The hour that is repeated is one hour of one day, so its rows are in one day's slice."""
    paris = ("--time", "seen", "--time-zone", "Europe/Paris")
    rows = [(0.5, 0.5, "a", f"2026-10-24T{hour}:30:00Z") for hour in (22, 23)]
    rows += [(0.5, 0.5, "a", f"2026-10-25T0{hour}:30:00Z") for hour in (0, 1, 2)]
    write_points(here / "points.csv", rows, "lon,lat,id,seen")
    register("record", paris)
    for day in ("2026-10-24", "2026-10-25", "2026-10-26"):
        passes(*build("record", day, times=paris))
    passes(*build("record", "2026-10-25T02", epsilon="0.4", times=paris))
    refused = build("record", "2026-10-25T02", epsilon="0.1", times=paris)
    assert "has epsilon 0 left" in fails(4, *refused)
