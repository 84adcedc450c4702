"""`psd.apps.streams.Stream`: what a series holds while it grows, and which slices are refused."""

import copy
import sqlite3
import stat
import zoneinfo
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import geopandas
import pandas as pd
import pytest
import shapely

import psd
from psd._util.wall_clock import zone_rules
from psd.api.release import Release
from psd.apps.streams import addition
from psd.apps.streams.state import State
from psd.curator.private_bounds import PrivateBounds
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.privacy.count_noise import CountNoise
from psd.publish import request
from psd.publish.observer import Observer
from psd.publish.public_inputs import BoundaryFile
from support.ledger_edits import run_sql
from support.streams import BOUNDS, DAYS, WEEK, create, day_of, totals, write_rows
from support.tables import refuses


def grow(folder, number, rows=9, users=1, **arguments):
    """A stream with its first days, and the series of all of them."""
    stream = create(folder, **arguments)
    found = [stream.add(day_of(folder, day, rows, users), day) for day in DAYS[:number]]
    return stream, found[-1]


@pytest.mark.deep
def test_a_series_grows_by_one_slice_at_a_time(tmp_path):
    stream = create(tmp_path)
    assert not (tmp_path / "city.psd.parquet").exists()
    for number, day in enumerate(DAYS):
        grown = stream.add(day_of(tmp_path, day, 10 + number), day)
        loaded = psd.load(tmp_path / "city.psd.parquet")
        assert grown.digest == loaded.digest
        assert list(loaded) == list(DAYS[: number + 1])
    assert totals(loaded) == [10, 11, 12, 13, 14, 15, 16]
    assert (loaded.epsilon, loaded.record.guarantee_text) == (1000, "epsilon 1000 per record")
    status = stream.status()
    assert (status.added, status.next, status.published) == (DAYS, None, True)


def three_days(folder):
    stream, _ = grow(folder, 3, rows=5, epsilon=0.1)
    return stream, (folder / "city.psd.parquet").read_bytes()


def damaged(path):
    """Change the first page of the file; its footer states the digest of before."""
    content = bytearray(path.read_bytes())
    content[30:60] = bytes(30)
    path.write_bytes(content)


@pytest.mark.parametrize("change", [Path.unlink, damaged])
def test_a_file_that_is_gone_or_damaged_is_written_anew(tmp_path, change):
    """And a file is that of a series that is saved at once."""
    stream, content = three_days(tmp_path)
    change(tmp_path / "city.psd.parquet")
    series = stream.add(day_of(tmp_path, DAYS[3], 8), DAYS[3])
    loaded = psd.load(tmp_path / "city.psd.parquet")
    assert loaded.digest == series.digest
    days = replace(loaded.slices, names=DAYS[:3])
    first = replace(loaded.record, slices=days, releases=loaded.record.releases[:3])
    Release(first).save(tmp_path / "first.psd.parquet")
    assert (tmp_path / "first.psd.parquet").read_bytes() == content


def test_a_state_with_another_release_is_refused(tmp_path):
    stream, _ = three_days(tmp_path)
    (tmp_path / "city.psd.parquet").unlink()
    first = "SELECT release FROM answer WHERE number = 0"
    run_sql(stream.path, f"UPDATE answer SET release = ({first}) WHERE number = 1")
    with pytest.raises(InputDataError, match="does not have the releases of its series"):
        stream.add(day_of(tmp_path, DAYS[3], 8), DAYS[3])
    assert not (tmp_path / "city.psd.parquet").exists()


def test_slices_that_were_added_and_series_that_were_returned_stay_what_they_were(tmp_path):
    stream, first = grow(tmp_path, 1, epsilon=0.1)
    assert stat.S_IMODE((tmp_path / "city.stream").stat().st_mode) == 0o600
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["2026-01-05.csv", "city.psd.parquet", "city.stream"]
    second = stream.add(day_of(tmp_path, DAYS[1], 9), DAYS[1])
    (tmp_path / "city.psd.parquet").unlink()
    before, after = (series.record.releases[0].tree.count.tolist() for series in (first, second))
    assert before == after != second.record.releases[1].tree.count.tolist()
    assert len({release.record.library for release in second._releases}) == 1
    assert first.slices is not None
    assert list(first) == [DAYS[0]]
    assert repr(first) == "<Release: 1 slices by day, grid, epsilon 0.1 per record>"
    assert copy.deepcopy(first).digest == first.digest
    assert first.replace(about={"title": "Visits"}).metadata["title"] == "Visits"


def test_rows_of_other_slices_are_left_out_and_counted_in_the_private_report_only(tmp_path):
    stream, reports = create(tmp_path), []
    rows = [(1, 1, f"{day}T12:00:00", "u") for day in DAYS for _ in range(5)]
    observer = Observer(private_report=reports.append)
    series = stream.add(write_rows(tmp_path / "all.csv", rows), DAYS[0], observer=observer)
    assert totals(series) == [5]
    assert reports == [{"read": 35, "without coordinates": 0, "outside": 30, "kept": 5}]


def test_a_slice_is_added_once_and_in_order(tmp_path):
    stream, data = create(tmp_path), day_of(tmp_path, DAYS[0], 3)
    for day, skip, words in (
        (DAYS[1], False, "slice must be 2026-01-05, which comes next"),
        (DAYS[0], False, None),
        (DAYS[0], False, "slice 2026-01-05 was added before"),
        (DAYS[2], True, None),
        (DAYS[1], True, "slice 2026-01-06 comes too late"),
        ("2027-01-01", False, "one of the 7 of the stream"),
    ):
        with pytest.raises(ParameterError, match=words) if words else nullcontext():
            stream.add(data, day, skip=skip)
    status = stream.status()
    assert (status.added, status.skipped) == ((DAYS[0], DAYS[2]), (DAYS[1],))
    assert totals(psd.load(tmp_path / "city.psd.parquet")) == [3, 0]


@pytest.mark.deep
def test_a_user_is_bounded_in_all_slices_together_first_come_first(tmp_path):
    _, series = grow(tmp_path, 3, rows=6, users=2, user="user", max_contributions=5)
    assert totals(series) == [6, 4, 0]  # of two users: 3, then 2, then none
    assert series.record.guarantee_text == "epsilon 1000 per user, at most 5 records of each"
    (tmp_path / "each").mkdir()
    both = {"user": "user", "max_contributions": 5, "max_per_slice": 2}
    assert totals(grow(tmp_path / "each", 3, rows=6, users=2, **both)[1]) == [4, 4, 2]
    # The days of a user are bounded over the hours of a day.
    hours = psd.TimeSlices.parse("hour", "2026-01-05T22..2026-01-06T01")
    (tmp_path / "hours").mkdir()
    stream = create(tmp_path / "hours", slices=hours, user="user", max_contributions=3, per="day")
    rows = [(1, 1, f"{hour}:30:00", "u") for hour in hours for _ in range(2)]
    data = write_rows(tmp_path / "all.csv", rows)
    assert totals([stream.add(data, hour) for hour in hours][-1]) == [2, 1, 2, 1]


@pytest.mark.deep
def test_units_that_lie_in_one_slice(tmp_path):
    for per, words in (
        ("day", "epsilon 1000 per user and day in UTC, at most 2 records of each"),
        ("user-slice", "epsilon 1000 per user and time slice, at most 2 records of each"),
        ("slice", "per user, at most 2 records of each in each slice"),
    ):
        (tmp_path / per).mkdir()
        _, series = grow(tmp_path / per, 2, user="user", max_contributions=2, per=per)
        assert totals(series) == [2, 2]
        assert words in series.record.guarantee_text
    # Slices that share epsilon or rho state that of the whole list.
    for name, options in (("pure", {"epsilon": 7}), ("gaussian", GAUSSIAN)):
        (tmp_path / name).mkdir()
        share = {**options, "user": "user", "max_contributions": 2, "per": "slice"}
        _, series = grow(tmp_path / name, 1, **share)
        assert (series.epsilon, series._releases[0].epsilon) == (options["epsilon"], 1)
    assert series.record.releases[0].tree.noise == CountNoise.gaussian(2 * 7 * 2)


def test_what_a_stream_does_not_offer(tmp_path, subtests):
    rows = [
        ({"user": "user", "count": "users"}, "count must be records in a stream"),
        ({"user": "user", "max_contributions": "auto"}, "max_contributions must be a number"),
        ({"slices": None}, "slices must be given; they are all that the stream can have"),
        ({"domain": PrivateBounds(crs="EPSG:4326")}, "bounds must be public with slices"),
        ({"time": None}, "time must name the column of times"),
    ]
    refuses(subtests, partial(create, tmp_path), rows, ParameterError)
    assert list(tmp_path.iterdir()) == []


def test_an_hour_that_clocks_repeat_is_one_slice(tmp_path):
    """At 01:00 UTC, 03:00 in Berlin becomes 02:00 on 25 October 2026."""
    zone = "Europe/Berlin"
    hours = psd.TimeSlices.parse("hour", "2026-10-25T01..2026-10-25T03", zone)
    stream = create(tmp_path, slices=hours)
    moments = pd.date_range("2026-10-24T23:30", periods=4, freq="h", tz="UTC")
    rows = pd.DataFrame({"lon": 1.0, "lat": 1.0, "time": moments})
    assert totals([stream.add(rows, hour) for hour in hours][-1]) == [1, 2, 1]


@pytest.fixture
def zones(tmp_path):
    """A function that gives the zone Test/Zone so many hours ahead of UTC."""

    def ahead(hours):
        folder = tmp_path / f"zones-{hours}"
        (folder / "Test").mkdir(parents=True, exist_ok=True)
        content = files("tzdata") / "zoneinfo" / "Etc" / f"GMT-{hours}"
        (folder / "Test" / "Zone").write_bytes(content.read_bytes())
        zoneinfo.reset_tzpath([folder])
        forget()

    def forget():
        zoneinfo.ZoneInfo.clear_cache()
        zone_rules.cache_clear()

    yield ahead
    zoneinfo.reset_tzpath()
    forget()


def hours_of(folder, zones, **unit):
    """Totals of two hours, of a record of the first one, whose clock goes ahead between them."""
    zones(9)
    hours = psd.TimeSlices.parse("hour", "2026-01-05T19..2026-01-05T20", "Test/Zone")
    stream = create(folder, slices=hours, **unit)
    data = write_rows(folder / "row.csv", [(1, 1, "2026-01-05T10:30:00Z", "u")])
    stream.add(data, hours.names[0])
    zones(10)
    return totals(stream.add(data, hours.names[1]))


@pytest.mark.parametrize("per", [None, "day", "user-slice"])
def test_a_record_is_not_counted_in_two_slices_when_clock_changes_differ(tmp_path, zones, per):
    """But a user who is bounded in all slices may have other clock changes."""
    user = {"user": "user", "max_contributions": 1}
    with pytest.raises(InputDataError, match="by which a record could be counted in two slices"):
        hours_of(tmp_path, zones, **({**user, "per": per} if per else {}))
    (tmp_path / "all").mkdir()
    assert hours_of(tmp_path / "all", zones, **user) == [1, 0]


def test_a_series_file_of_another_stream_is_not_replaced(tmp_path):
    stream, others = create(tmp_path), tmp_path / "others"
    others.mkdir()
    data, output = day_of(tmp_path, DAYS[0], 3), tmp_path / "city.psd.parquet"
    create(others).add(data, DAYS[0])
    foreign = (others / "city.psd.parquet").read_bytes()
    for content in (foreign, b"text"):
        output.write_bytes(content)
        with pytest.raises(InputDataError, match="is not the series that this stream has written"):
            stream.add(data, DAYS[0])
        assert output.read_bytes() == content
    output.unlink()
    first = stream.add(data, DAYS[0])
    assert totals(first) == [3]
    output.unlink()  # a file that was lost is written again
    assert not stream.status().published
    assert stream.add(data, DAYS[0]).digest == first.digest
    with pytest.raises(ParameterError, match="was added before"):
        stream.add(data, DAYS[0])


@pytest.mark.deep
def test_public_files_do_not_change_while_a_stream_grows(tmp_path):
    path, data = tmp_path / "land.gpkg", day_of(tmp_path, DAYS[0], 3)
    geopandas.GeoSeries([shapely.box(0, 0, 4, 4)], crs="EPSG:4326").to_file(path)
    stream = create(tmp_path, boundary=BoundaryFile(path=str(path)))
    assert totals(stream.add(data, DAYS[0])) == [3]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputDataError, match="must not change while a stream grows"):
        stream.add(data, DAYS[1])


GAUSSIAN = {"epsilon": 1, "delta": "1e-6", "noise": "gaussian"}
USERS = {"user": "user", "max_contributions": 7, "max_per_slice": 1}


@pytest.mark.deep
def test_gaussian_slices_have_the_noise_of_k_cap_and_state_the_whole_loss(tmp_path):
    stream, series = grow(tmp_path, 2, users=3, **USERS, **GAUSSIAN, totals=True)
    for release in series._releases:
        assert release.record.tree.noise == CountNoise.gaussian(7)
        assert (release.record.rho, release.record.epsilon) == (24355970359, 10**9)
    assert series.record.guarantee_text == stream.status().guarantee
    summed = psd.load(tmp_path / "city.totals.psd.parquet")
    assert [release.record.tree.noise.factor for release in summed._releases] == [1, 2]
    assert {release.record.tree.noise.squared_sensitivity for release in summed._releases} == {7}
    assert summed.record.releases[0].parameters["counter"] == "slices"
    counts = [release.record.tree.count for release in series._releases]
    assert summed.record.releases[1].tree.count.tolist() == sum(counts).tolist()
    box = [(0, 0, 8, 8)]
    [total], [answer] = (each.query(box).table.to_dict("records") for each in (
        summed._releases[1], summed._releases[0]))  # fmt: skip
    assert total["perturbation_error"] == pytest.approx(answer["perturbation_error"] * 2**0.5)


@pytest.mark.deep
def test_running_totals_say_so_and_are_not_added_up_again(tmp_path):
    _, series = grow(tmp_path, 2, totals=True)
    summed = psd.load(tmp_path / "city.totals.psd.parquet")
    assert summed.record.counted_text == "records, summed over each time slice and all before it"
    one = summed[DAYS[1]]
    assert one.metadata["counts"] == "records, summed over this time slice and all before it"
    assert round(one.total) == 18
    for when in (None, f"{DAYS[0]}..{DAYS[1]}"):
        with pytest.raises(ParameterError, match="counts to be added up, got running totals"):
            summed.query([BOUNDS], when=when)
    assert series.record.counted_text == series[DAYS[1]].metadata["counts"] == "records"
    assert series.query([BOUNDS])["estimate"].round().tolist() == [18]


def test_the_law_is_that_of_the_creation_whatever_auto_would_choose_later(tmp_path, monkeypatch):
    auto = {**GAUSSIAN, "noise": "auto", "method": psd.decompositions.Quadtree(height=2)}
    stream = create(tmp_path, **USERS, **auto)
    monkeypatch.setattr(request, "chosen_law", lambda *_: "laplace")
    series = stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert series.record.releases[0].tree.noise == CountNoise.gaussian(7)
    (tmp_path / "pure").mkdir()
    stream, series = grow(tmp_path / "pure", 1, epsilon=1, delta="1e-6", noise="laplace")
    assert series.record.releases[0].delta is None  # nothing spends it
    assert series.record.guarantee_text == stream.status().guarantee == "epsilon 1 per record"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "city.ledger")


def account_of(ledger, budget=1000):
    ledger.register("days", budget, columns=psd.Columns(time="time"))
    return psd.ledger.Account(ledger, "days")


def test_a_ledger_is_charged_once_for_all_slices(tmp_path, ledger):
    week, account = psd.TimeSlices.parse("day", f"{DAYS[0]}..{DAYS[1]}"), account_of(ledger)
    stream = create(tmp_path, slices=week, account=account)
    [charge] = ledger.verify().charges.values()
    assert (charge.loss.epsilon, charge.what, charge.done) == (1000 * 10**9, "stream grid", False)
    for day in week:
        series = stream.add(day_of(tmp_path, day, 3), day)
        account.compare(tmp_path)  # a growing series is what was charged
    assert series.record.releases[0].parameters["charge"] == charge.id
    [charge] = ledger.verify(releases=tmp_path).charges.values()
    assert charge.done
    ledger.register("people", 10, unit="user", columns=psd.Columns(time="time", user="user"))
    account = psd.ledger.Account(ledger, "people")
    share = {"user": "user", "max_contributions": 2, "per": "slice"}
    (tmp_path / "share").mkdir()
    grow(tmp_path / "share", 1, epsilon=1, account=account, **share)
    account.compare(tmp_path / "share")


def test_a_ledger_of_other_columns_or_without_the_charge_is_refused(tmp_path, ledger):
    account = account_of(ledger)
    with pytest.raises(LedgerError, match="registers other columns"):
        create(tmp_path, account=account, x="lat", y="lon")
    assert ledger.verify().charges == {}
    before = ledger.path.read_bytes()
    stream = create(tmp_path, account=account)
    ledger.path.write_bytes(before)
    with pytest.raises(LedgerError, match="does not have the charge of this stream"):
        stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])


UNREADABLE = "could not be read to its end"


def test_with_a_ledger_the_reason_of_a_fault_is_private(tmp_path, ledger):
    stream, faults = create(tmp_path, account=account_of(ledger)), []
    data = write_rows(tmp_path / "bad.csv", [("one", 1, f"{DAYS[0]}T12:00:00", "u")])
    with pytest.raises(InputDataError, match=UNREADABLE):
        stream.add(data, DAYS[0], observer=Observer(private_fault=faults.append))
    assert len(faults) == 1
    assert stream.status().added == ()


def lacking_memory():
    return patch.object(addition, "count_slice", side_effect=MemoryError)


def test_each_addition_that_lacks_memory_costs_a_twentieth_of_the_budget(tmp_path, ledger):
    """The stream, which costs more than that, was charged once; its additions may be many."""
    stream = create(tmp_path, epsilon=1, account=account_of(ledger, 2))
    data = day_of(tmp_path, DAYS[0], 3)
    with lacking_memory():
        for number in (1, 2, 3):
            with pytest.raises(InputDataError, match=UNREADABLE):
                stream.add(data, DAYS[0])
            assert ledger.state().spent("days") == 10**9 + number * 10**8
    stream.add(data, DAYS[0])
    assert ledger.state().spent("days") == 10**9 + 3 * 10**8


def test_twenty_additions_that_lack_memory_end_a_stream_whose_budget_is_used_up(tmp_path, ledger):
    """Each shows one bit, and costs nothing where nothing is left."""
    stream = create(tmp_path, epsilon=1, account=account_of(ledger, 1))
    data = day_of(tmp_path, DAYS[0], 3)
    with lacking_memory() as counter:
        for _ in range(MAX_FAULTS):
            with pytest.raises(InputDataError, match=UNREADABLE):
                stream.add(data, DAYS[0])
        for _ in range(2):
            with pytest.raises(LedgerError, match="has nothing left that another one would cost"):
                stream.add(data, DAYS[0])
    assert counter.call_count == MAX_FAULTS
    assert ledger.state().faults == {"days": MAX_FAULTS}
    ledger.raise_budget("days", "1.01")
    stream.add(data, DAYS[0])
    assert stream.status().added == (DAYS[0],)


def test_additions_that_cost_nothing_are_counted_over_all_streams_and_copies(tmp_path, ledger):
    """A stream may cost next to nothing, and a copy of a state forgets what it did."""
    account = account_of(ledger, 1)
    for name in "ab":
        (tmp_path / name).mkdir()
    streams = [create(tmp_path / name, epsilon=0.5, account=account) for name in "ab"]
    data, state = day_of(tmp_path, DAYS[0], 3), tmp_path / "a" / "city.stream"
    copy = state.read_bytes()
    with lacking_memory():
        for number in range(MAX_FAULTS):
            state.write_bytes(copy)
            with pytest.raises(InputDataError, match=UNREADABLE):
                streams[number % 2].add(data, DAYS[0])
        for stream in streams:
            with pytest.raises(LedgerError, match="has nothing left that another one would cost"):
                stream.add(data, DAYS[0])


def test_a_state_that_cannot_grow_costs_as_much_and_says_no_more(tmp_path, ledger):
    """The state grows with the users of a slice, so a limit of its size would count them."""
    stream = create(tmp_path, epsilon=1, account=account_of(ledger, 2))
    data = day_of(tmp_path, DAYS[0], 3)
    full = sqlite3.OperationalError("disk is full")
    with (
        patch.object(State, "add_slice", side_effect=full),
        pytest.raises(InputDataError, match=UNREADABLE),
    ):
        stream.add(data, DAYS[0])
    assert [charge.what for charge in ledger.state().charges.values()] == ["stream grid", "fault"]
    stream.add(data, DAYS[0])
    assert stream.status().added == (DAYS[0],)


def test_a_stream_is_created_with_the_files_of_the_folder_it_was_created_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = {"domain": BOUNDS, "epsilon": 1, "slices": WEEK, "method": "grid", "time": "time"}
    psd.apps.streams.Stream.create("a.stream", "a.psd.parquet", **how)
    monkeypatch.chdir("/")
    psd.apps.streams.Stream(tmp_path / "a.stream").add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert (tmp_path / "a.psd.parquet").exists()
