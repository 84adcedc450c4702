"""Time in the ledger, through the command: which charges for slices of one file add up."""

import json

import pandas as pd
import pytest

from psd.ledger.ledger import Ledger
from support.cli_runner import BOUNDS, fails, passes, write_points

# The last rows are of one day only, which is no part of what is charged.
ROWS = [
    (0.5, 0.5, "a", "2026-01-05T08:00"),
    (1.5, 2.5, "b", "2026-01-06T09:00"),
    (1.5, 2.0, "b", "2026-01-06T23:59"),
]
TIMES = ("--read", "time=seen", "--read", "time_zone=Asia/Seoul")
USER = ("--user", "id", "--max-contributions", 2)
UNITS = {
    "record": ((), ()),
    "user-day": (("--read", "user=id"), (*USER, "--per", "day")),
    "user": (("--read", "user=id"), USER),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.csv", ROWS, "lon,lat,id,seen")
    passes("ledger", "create", "city.ledger")
    return tmp_path


def register(unit, *more):
    read, _ = UNITS[unit]
    zone = ("--time-zone", "Asia/Seoul") if unit == "user-day" else ()
    line = ("ledger", "register", "city.ledger", "visits", "--budget", 1, "--unit", unit)
    passes(*line, *read, *TIMES, *zone, *more)


def build(unit, slices, epsilon="0.6", data="points.csv", times=TIMES, bounds=BOUNDS):
    """Line that builds some slices and pays."""
    paid = ("--ledger", "city.ledger", "--dataset", "visits", "--overwrite")
    method = ("--method", "quadtree", "--set", "height=1", "--epsilon", epsilon)
    listed = ("--slices", slices)
    return ("build", data, "-o", "r.psd.parquet", *bounds, *method, *listed, *times,
            *UNITS[unit][1], *paid)  # fmt: skip


def status():
    (row,) = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    return row


@pytest.mark.parametrize("unit", ["record", "user-day"])
def test_two_days_of_one_file_are_not_added(unit, here):
    register(unit)
    passes(*build(unit, "2026-01-05"))
    passes(*build(unit, "2026-01-06"))
    words = "dataset 'visits' has epsilon 0.4 left, and this costs 0.6"
    assert words in fails(4, *build(unit, "2026-01-05"))
    passes(*build(unit, "2026-01-05", epsilon="0.4"))
    assert (status()["spent"], status()["left"], status()["charges"]) == ("1", "0", "3")
    history = json.loads(passes("ledger", "history", "city.ledger", "--format", "json"))
    assert [line["when"] for line in history] == ["2026-01-05", "2026-01-06", "2026-01-05"]


def test_two_days_of_a_user_are_added(here):
    register("user")
    passes(*build("user", "2026-01-05"))
    assert "has epsilon 0.4 left" in fails(4, *build("user", "2026-01-06"))
    assert status()["adds_up"] == "all"


def test_k_in_each_slice_of_a_user_is_added_too(here):
    """Each day alone keeps 2 records of a user, so two days have 4."""
    register("user")
    passes(*build("user", "2026-01-05"), "--per", "slice")
    assert "has epsilon 0.4 left" in fails(4, *build("user", "2026-01-06"), "--per", "slice")


def test_hours_of_a_day_of_a_user_are_added_and_hours_of_records_are_not(here):
    register("user-day")
    passes(*build("user-day", "2026-01-06T09"))
    assert "has epsilon 0.4 left" in fails(4, *build("user-day", "2026-01-06T23"))
    assert "has epsilon 0.4 left" in fails(4, *build("user-day", "2026-01-05"))
    passes("ledger", "create", "other.ledger")
    line = [str(word).replace("city", "other") for word in build("record", "2026-01-06T09")]
    passes("ledger", "register", "other.ledger", "visits", "--budget", 1, *TIMES)
    passes(*line)
    passes(*[word.replace("T09", "T10") for word in line])


def test_the_slices_of_a_charge_are_those_of_the_request_and_not_of_the_data(here):
    """Rows lie on two days of the month, and the charge names all of it."""
    register("record")
    passes(*build("record", "2026-01-01..2026-01-31"))
    (charge,) = Ledger("city.ledger").state().charges.values()
    assert charge.slices.text == "2026-01-01..2026-01-31"
    assert "has epsilon 0.4 left" in fails(4, *build("record", "2026-01-20"))
    passes(*build("record", "2026-02-01"))


@pytest.mark.parametrize("other", ["zone", "columns", "input", "no slices"])
def test_what_counts_always(other, here):
    register("record")
    passes(*build("record", "2026-01-05"))
    line = build("record", "2026-01-06")
    if other == "zone":
        line = build("record", "2026-01-06", times=("--read", "time=seen"))
    elif other == "columns":
        line = (*line, "--read", "x=lat", "--read", "y=lon")
    elif other == "input":
        pd.read_csv("points.csv").to_parquet("points.parquet")
        line = build("record", "2026-01-06", data="points.parquet")
    else:
        at = line.index("--slices")
        line = line[:at] + line[at + 2 :]
    assert "has epsilon 0.4 left" in fails(4, *line)


def tally(slices, unit="record", data="points.csv"):
    """Tally some slices of a file, and name the line that builds from it and pays."""
    name = f"{slices}.tally"
    listed = ("--slices", slices, "-o", name, "--overwrite")
    passes("tally", data, *BOUNDS, *listed, *TIMES, *UNITS[unit][1])
    paid = ("--ledger", "city.ledger", "--dataset", "visits", "--overwrite")
    method = ("--method", "quadtree", "--set", "height=1", "--epsilon", "0.6")
    return ("build", name, "-o", "r.psd.parquet", *method, *paid)


@pytest.mark.parametrize("unit", ["record", "user-day"])
def test_tallies_of_two_days_are_not_added(unit, here):
    register(unit)
    passes(*tally("2026-01-05", unit))
    passes(*tally("2026-01-06", unit))
    assert "has epsilon 0.4 left" in fails(4, *tally("2026-01-05", unit))
    assert "has epsilon 0.4 left" in fails(4, *build(unit, "2026-01-06"))
    charges = Ledger("city.ledger").state().charges.values()
    assert [charge.slices.text for charge in charges] == ["2026-01-05", "2026-01-06"]


@pytest.mark.parametrize("other", ["input", "clock", "user"])
def test_tallies_that_count_always(other, here, monkeypatch):
    unit = "user" if other == "user" else "record"
    register(unit)
    first = tally("2026-01-05", unit)
    if other == "clock":
        monkeypatch.setattr("psd.publish.tally_parts.zone_rules", lambda zone: "0" * 16)
    data = "points.csv"
    if other == "input":
        data = "points.parquet"
        pd.read_csv("points.csv").to_parquet(data)
    second = tally("2026-01-06", unit, data)
    passes(*first)
    assert "has epsilon 0.4 left" in fails(4, *second)


def test_areas_and_days_are_apart_together(here):
    """A charge for one area on all days, and those for one day each in another area."""
    register("record")
    east = ("--bounds", 1, -4, 4, 4)
    passes(*build("record", "2026-01-05", bounds=("--bounds", -4, -4, 0, 4)))
    passes(*build("record", "2026-01-05", bounds=east))
    passes(*build("record", "2026-01-06", bounds=east))
    assert status()["spent"] == "0.6"
    assert "has epsilon 0.4 left" in fails(4, *build("record", "2026-01-06"))


def test_status_says_in_words_what_adds_up(here):
    register("record")
    assert status()["adds_up"] == "common points and slices"
    passes("ledger", "register", "city.ledger", "roads", "--budget", 1)
    zone = ("--time-zone", "Asia/Seoul", "--read", "user=id", "--read", "time=seen")
    passes("ledger", "register", "city.ledger", "days", "--budget", 1, "--unit", "user-day", *zone)
    rows = json.loads(passes("ledger", "status", "city.ledger", "--format", "json"))
    assert [row["adds_up"] for row in rows[1:]] == ["common points", "common days"]
    assert "common points and slices" in passes("ledger", "status", "city.ledger")


def test_clocks_that_change_in_autumn_keep_days_apart(tmp_path, monkeypatch):
    """The hour that is repeated is one hour of one day, so its rows are in one day's slice."""
    monkeypatch.chdir(tmp_path)
    paris = ("--read", "time=seen", "--read", "time_zone=Europe/Paris")
    rows = [(0.5, 0.5, "a", f"2026-10-24T{hour}:30:00Z") for hour in (22, 23)]
    rows += [(0.5, 0.5, "a", f"2026-10-25T0{hour}:30:00Z") for hour in (0, 1, 2)]
    write_points(tmp_path / "points.csv", rows, "lon,lat,id,seen")
    passes("ledger", "create", "city.ledger")
    passes("ledger", "register", "city.ledger", "visits", "--budget", 1, *paris)
    for day in ("2026-10-24", "2026-10-25", "2026-10-26"):
        passes(*build("record", day, times=paris))
    passes(*build("record", "2026-10-25T02", epsilon="0.4", times=paris))
    refused = build("record", "2026-10-25T02", epsilon="0.1", times=paris)
    assert "has epsilon 0 left" in fails(4, *refused)
