"""`psd.Stream`: what a series holds while it grows, and which slices are refused."""

import copy
import sqlite3
import stat
import warnings
import zoneinfo
from contextlib import closing
from dataclasses import replace
from importlib.resources import files

import pandas as pd
import pytest

import psd
from psd._util.wall_clock import zone_rules
from psd.api.series import SeriesRelease
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.privacy.count_noise import CountNoise
from psd.publish import request
from psd.streams import addition
from support.streams import BOUNDS, DAYS, WEEK, create, day_of, totals, write_rows


def test_a_series_grows_by_one_slice_at_a_time(tmp_path):
    stream = create(tmp_path)
    assert not (tmp_path / "city.psd.parquet").exists()
    for number, day in enumerate(DAYS):
        grown = stream.add(day_of(tmp_path, day, 10 + number), day)
        loaded = psd.load(tmp_path / "city.psd.parquet")
        assert grown.digest == loaded.digest
        assert list(loaded) == list(DAYS[: number + 1])
    assert totals(loaded) == [10, 11, 12, 13, 14, 15, 16]
    assert (loaded.epsilon, loaded.guarantee_text) == (1000, "epsilon 1000 per record")
    status = stream.status()
    assert (status.added, status.next, status.published) == (DAYS, None, True)


def test_the_state_is_readable_by_its_owner_only(tmp_path):
    stream = create(tmp_path)
    stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert stat.S_IMODE((tmp_path / "city.stream").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "2026-01-05.csv",
        "city.psd.parquet",
        "city.stream",
    ]


def test_answers_are_those_of_before(tmp_path):
    """A slice that was added keeps its noise when the series is written anew."""
    stream = create(tmp_path, epsilon=0.1)
    first = stream.add(day_of(tmp_path, DAYS[0], 9), DAYS[0])
    second = stream.add(day_of(tmp_path, DAYS[1], 9), DAYS[1])
    before, after = (series.releases[0].record.tree.count for series in (first, second))
    assert before.tolist() == after.tolist()
    assert after.tolist() != second.releases[1].record.tree.count.tolist()


def three_days(folder):
    """Series of three days, and the bytes of its file."""
    stream = create(folder, epsilon=0.1)
    for number, day in enumerate(DAYS[:3]):
        stream.add(day_of(folder, day, 5 + number), day)
    return stream, (folder / "city.psd.parquet").read_bytes()


def test_the_file_is_that_of_a_series_that_is_saved_at_once(tmp_path):
    _, content = three_days(tmp_path)
    psd.load(tmp_path / "city.psd.parquet").save(tmp_path / "saved.psd.parquet")
    assert (tmp_path / "saved.psd.parquet").read_bytes() == content


def removed(path):
    path.unlink()


def damaged(path):
    """Change the first page of the file; its footer states the digest of before."""
    content = bytearray(path.read_bytes())
    content[30:60] = bytes(30)
    path.write_bytes(content)


@pytest.mark.parametrize("change", [removed, damaged])
def test_a_file_that_is_gone_or_damaged_is_written_anew(tmp_path, change):
    stream, content = three_days(tmp_path)
    change(tmp_path / "city.psd.parquet")
    series = stream.add(day_of(tmp_path, DAYS[3], 8), DAYS[3])
    loaded = psd.load(tmp_path / "city.psd.parquet")
    assert loaded.digest == series.digest
    first = SeriesRelease(
        replace(
            loaded.record,
            slices=replace(loaded.slices, names=DAYS[:3]),
            releases=loaded.record.releases[:3],
        )
    )
    first.save(tmp_path / "first.psd.parquet")
    assert (tmp_path / "first.psd.parquet").read_bytes() == content


def test_a_state_with_another_release_is_refused(tmp_path):
    stream, _ = three_days(tmp_path)
    (tmp_path / "city.psd.parquet").unlink()
    with closing(sqlite3.connect(stream.path, isolation_level=None)) as database:
        database.execute(
            "UPDATE answer SET release = (SELECT release FROM answer WHERE number = 0)"
            " WHERE number = 1"
        )
    with pytest.raises(InputDataError, match="does not have the releases of its series"):
        stream.add(day_of(tmp_path, DAYS[3], 8), DAYS[3])
    assert not (tmp_path / "city.psd.parquet").exists()


def test_a_series_that_was_returned_stays_what_it_was(tmp_path):
    stream = create(tmp_path)
    first = stream.add(day_of(tmp_path, DAYS[0], 9), DAYS[0])
    stream.add(day_of(tmp_path, DAYS[1], 4), DAYS[1])
    (tmp_path / "city.psd.parquet").unlink()
    assert isinstance(first, SeriesRelease)
    assert (list(first), totals(first)) == ([DAYS[0]], [9])
    assert repr(first) == "<SeriesRelease: 1 slices by day, grid, epsilon 1000 per record>"
    assert copy.deepcopy(first).digest == first.digest


def test_rows_of_other_slices_are_left_out_and_counted_in_the_private_report_only(tmp_path):
    stream, reports = create(tmp_path), []
    rows = [(1, 1, f"{day}T12:00:00", "u") for day in DAYS for _ in range(5)]
    observer = psd.Observer(private_report=reports.append)
    series = stream.add(write_rows(tmp_path / "all.csv", rows), DAYS[0], observer=observer)
    assert totals(series) == [5]
    assert reports == [{"read": 35, "without coordinates": 0, "outside": 30, "kept": 5}]


def test_a_slice_is_added_once_and_in_order(tmp_path):
    stream = create(tmp_path)
    data = day_of(tmp_path, DAYS[0], 3)
    with pytest.raises(ParameterError, match="slice must be 2026-01-05, which comes next"):
        stream.add(data, DAYS[1])
    stream.add(data, DAYS[0])
    with pytest.raises(ParameterError, match="slice 2026-01-05 was added before"):
        stream.add(data, DAYS[0])
    stream.add(data, DAYS[2], skip=True)
    with pytest.raises(ParameterError, match="slice 2026-01-06 comes too late"):
        stream.add(data, DAYS[1], skip=True)
    with pytest.raises(ParameterError, match="one of the 7 of the stream"):
        stream.add(data, "2027-01-01")
    status = stream.status()
    assert (status.added, status.skipped) == ((DAYS[0], DAYS[2]), (DAYS[1],))
    assert totals(psd.load(tmp_path / "city.psd.parquet")) == [3, 0]


def test_a_user_is_bounded_in_all_slices_together_first_come_first(tmp_path):
    stream = create(tmp_path, user="user", max_contributions=5)
    found = [stream.add(day_of(tmp_path, day, 6, users=2), day) for day in DAYS[:3]]
    assert totals(found[-1]) == [6, 4, 0]  # of two users: 3, then 2, then none
    assert found[-1].guarantee_text == "epsilon 1000 per user, at most 5 records of each"


def test_a_user_is_bounded_in_each_slice_as_well(tmp_path):
    stream = create(tmp_path, user="user", max_contributions=5, max_per_slice=2)
    found = [stream.add(day_of(tmp_path, day, 6, users=2), day) for day in DAYS[:3]]
    assert totals(found[-1]) == [4, 4, 2]


def test_the_days_of_a_user_are_bounded_over_the_hours_of_a_day(tmp_path):
    hours = psd.TimeSlices.parse("hour", "2026-01-05T22..2026-01-06T01")
    stream = create(tmp_path, slices=hours, user="user", max_contributions=3, per="day")
    rows = [(1, 1, f"{hour}:30:00", "u") for hour in hours for _ in range(2)]
    data = write_rows(tmp_path / "all.csv", rows)
    assert totals([stream.add(data, hour) for hour in hours][-1]) == [2, 1, 2, 1]


@pytest.mark.parametrize(
    ("per", "kept", "words"),
    [
        ("day", [2, 2], "epsilon 1000 per user and day in UTC, at most 2 records of each"),
        ("user-slice", [2, 2], "epsilon 1000 per user and time slice, at most 2 records of each"),
        ("slice", [2, 2], "per user, at most 2 records of each in each slice"),
    ],
)
def test_units_that_lie_in_one_slice(tmp_path, per, kept, words):
    stream = create(tmp_path, user="user", max_contributions=2, per=per)
    series = [stream.add(day_of(tmp_path, day, 4), day) for day in DAYS[:2]][-1]
    assert totals(series) == kept
    assert words in series.guarantee_text


def test_slices_that_share_epsilon_state_the_epsilon_of_the_whole_list(tmp_path):
    stream = create(tmp_path, epsilon=7, user="user", max_contributions=2, per="slice")
    series = stream.add(day_of(tmp_path, DAYS[0], 4), DAYS[0])
    assert (series.epsilon, series.releases[0].epsilon) == (7, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": "user", "count": "users"}, "count must be records in a stream"),
        ({"user": "user", "max_contributions": "auto"}, "max_contributions must be a number"),
        ({"slices": None}, "slices must be given for a stream"),
        ({"domain": psd.PrivateBounds(crs="EPSG:4326")}, "bounds must be public with slices"),
        ({"time": None}, "time must name the column of times"),
    ],
)
def test_what_a_stream_does_not_offer(tmp_path, arguments, message):
    with pytest.raises(ParameterError, match=message):
        create(tmp_path, **arguments)
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
        (folder / "Test").mkdir(parents=True)
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


@pytest.mark.parametrize(
    "unit", [{}, *({"user": "user", "max_contributions": 1, "per": per} for per in (
        "day", "user-slice"))],
)  # fmt: skip
def test_a_record_is_not_counted_in_two_slices_when_clock_changes_differ(tmp_path, zones, unit):
    with pytest.raises(InputDataError, match="by which a record could be counted in two slices"):
        hours_of(tmp_path, zones, **unit)


def test_a_user_who_is_bounded_in_all_slices_may_have_other_clock_changes(tmp_path, zones):
    assert hours_of(tmp_path, zones, user="user", max_contributions=1) == [1, 0]


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
    assert totals(stream.add(data, DAYS[0])) == [3]


def test_a_series_file_that_was_lost_is_written_again(tmp_path):
    stream, data = create(tmp_path), day_of(tmp_path, DAYS[0], 3)
    first = stream.add(data, DAYS[0])
    (tmp_path / "city.psd.parquet").unlink()
    assert not stream.status().published
    assert stream.add(data, DAYS[0]).digest == first.digest
    with pytest.raises(ParameterError, match="was added before"):
        stream.add(data, DAYS[0])


def test_public_files_do_not_change_while_a_stream_grows(tmp_path):
    import geopandas
    import shapely

    path, data = tmp_path / "land.gpkg", day_of(tmp_path, DAYS[0], 3)
    geopandas.GeoSeries([shapely.box(0, 0, 4, 4)], crs="EPSG:4326").to_file(path)
    from psd.space.public_files import BoundaryFile

    stream = create(tmp_path, boundary=BoundaryFile(path=str(path)))
    assert totals(stream.add(data, DAYS[0])) == [3]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputDataError, match="must not change while a stream grows"):
        stream.add(data, DAYS[1])


# Gaussian noise

GAUSSIAN = {"epsilon": 1, "delta": "1e-6", "noise_law": "gaussian"}
USERS = {"user": "user", "max_contributions": 7, "max_per_slice": 1}


def test_gaussian_slices_have_the_noise_of_k_cap_and_state_the_whole_loss(tmp_path):
    stream = create(tmp_path, **USERS, **GAUSSIAN, totals=True)
    for day in DAYS[:2]:
        series = stream.add(day_of(tmp_path, day, 9, users=3), day)
    for release in series.releases:
        assert release.record.tree.noise == CountNoise.gaussian(7)
        assert (release.record.rho, release.record.epsilon) == (24355970359, 10**9)
    assert series.guarantee_text == stream.status().guarantee
    summed = psd.load(tmp_path / "city.totals.psd.parquet")
    assert [release.record.tree.noise.factor for release in summed.releases] == [1, 2]
    assert {release.record.tree.noise.squared_sensitivity for release in summed.releases} == {7}
    assert summed.releases[0].parameters["counter"] == "slices"
    counts = [release.record.tree.count for release in series.releases]
    assert summed.releases[1].record.tree.count.tolist() == sum(counts).tolist()
    box = [(0, 0, 8, 8)]
    [total], [answer] = (each.query(box).to_dict("records") for each in (
        summed.releases[1], summed.releases[0]))  # fmt: skip
    assert total["perturbation_error"] == pytest.approx(answer["perturbation_error"] * 2**0.5)


def test_running_totals_say_so_and_are_not_added_up_again(tmp_path):
    stream = create(tmp_path, totals=True)
    for day in DAYS[:2]:
        series = stream.add(day_of(tmp_path, day, 9), day)
    summed = psd.load(tmp_path / "city.totals.psd.parquet")
    assert summed.record.counted_text == "records, summed over each time slice and all before it"
    one = summed[DAYS[1]]
    assert one.metadata["counts"] == "records, summed over this time slice and all before it"
    assert round(one.total) == 18
    for ends in [(), (DAYS[0], DAYS[1])]:
        with pytest.raises(ParameterError, match="counts to be added up, got running totals"):
            summed.total([BOUNDS], *ends)
    assert series.record.counted_text == series[DAYS[1]].metadata["counts"] == "records"
    assert series.total([BOUNDS])["estimate"].round().tolist() == [18]


def test_a_limit_in_each_of_the_slices_that_share_rho(tmp_path):
    user = {"user": "user", "max_contributions": 2, "per": "slice"}
    stream = create(tmp_path, **GAUSSIAN, **user)
    series = stream.add(day_of(tmp_path, DAYS[0], 4), DAYS[0])
    assert series.releases[0].record.tree.noise == CountNoise.gaussian(2 * 7 * 2)
    assert series.epsilon == 1


def test_the_law_is_that_of_the_creation_whatever_auto_would_choose_later(tmp_path, monkeypatch):
    auto = {**GAUSSIAN, "noise_law": "auto", "method": psd.decompositions.Quadtree(height=2)}
    stream = create(tmp_path, **USERS, **auto)
    monkeypatch.setattr(request, "chosen_law", lambda *_: "laplace")
    series = stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert series.releases[0].record.tree.noise == CountNoise.gaussian(7)


def test_a_delta_that_nothing_spends_is_not_stated(tmp_path):
    stream = create(tmp_path, epsilon=1, delta="1e-6")
    series = stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert series.releases[0].record.delta is None
    assert series.guarantee_text == stream.status().guarantee == "epsilon 1 per record"


# With a ledger


@pytest.fixture
def account(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", "1000")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return psd.Account(ledger, "rows")


def test_a_ledger_is_charged_once_for_all_slices(tmp_path, account):
    week = psd.TimeSlices.parse("day", f"{DAYS[0]}..{DAYS[1]}")
    ledger = Ledger(tmp_path / "city.ledger")
    ledger.register("days", "1000", columns=psd.Columns(time="time"))
    account = psd.Account(ledger, "days")
    stream = create(tmp_path, slices=week, account=account)
    [charge] = ledger.verify().charges.values()
    assert (charge.loss.epsilon, charge.what, charge.done) == (1000 * 10**9, "stream grid", False)
    for day in week:
        series = stream.add(day_of(tmp_path, day, 3), day)
        account.compare(tmp_path)  # a growing series is what was charged
    assert series.releases[0].parameters["charge"] == charge.id
    [charge] = ledger.verify(releases=tmp_path).charges.values()
    assert charge.done


def test_slices_that_share_epsilon_agree_with_their_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    columns = psd.Columns(time="time", user="user")
    ledger.register("people", 10, unit="user", columns=columns)
    account = psd.Account(ledger, "people")
    user = {"user": "user", "max_contributions": 2, "per": "slice"}
    stream = create(tmp_path, epsilon=1, account=account, **user)
    stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    account.compare(tmp_path)


def test_other_columns_than_the_ledger_registers_are_refused(tmp_path, account):
    with pytest.raises(LedgerError, match="registers other columns"):
        create(tmp_path, account=account, x="lat", y="lon")
    assert Ledger(tmp_path / "city.ledger").verify().charges == {}


def test_a_ledger_without_the_charge_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("days", "1000", columns=psd.Columns(time="time"))
    copy = (tmp_path / "city.ledger").read_bytes()
    stream = create(tmp_path, account=psd.Account(ledger, "days"))
    (tmp_path / "city.ledger").write_bytes(copy)
    with pytest.raises(LedgerError, match="does not have the charge of this stream"):
        stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])


def test_with_a_ledger_the_reason_of_a_fault_is_private(tmp_path):
    ledger, faults = Ledger.create(tmp_path / "city.ledger"), []
    ledger.register("days", "1000", columns=psd.Columns(time="time"))
    stream = create(tmp_path, account=psd.Account(ledger, "days"))
    data = write_rows(tmp_path / "bad.csv", [("one", 1, f"{DAYS[0]}T12:00:00", "u")])
    with pytest.raises(InputDataError, match="could not be read to its end"):
        stream.add(data, DAYS[0], observer=psd.Observer(private_fault=faults.append))
    assert len(faults) == 1
    assert stream.status().added == ()


def test_each_addition_that_lacks_memory_costs_a_twentieth_of_the_budget(tmp_path, monkeypatch):
    """The stream, which costs more than that, was charged once; its additions may be many."""
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("days", "2", columns=psd.Columns(time="time"))
    stream = create(tmp_path, epsilon=1, account=psd.Account(ledger, "days"))
    data = day_of(tmp_path, DAYS[0], 3)

    def lacks_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(addition, "count_slice", lacks_memory)
        for number in (1, 2, 3):
            with pytest.raises(InputDataError, match="could not be read to its end"):
                stream.add(data, DAYS[0])
            assert ledger.state().spent("days") == 10**9 + number * 10**8
    stream.add(data, DAYS[0])
    assert ledger.state().spent("days") == 10**9 + 3 * 10**8


def test_twenty_additions_that_lack_memory_end_a_stream_whose_budget_is_used_up(
    tmp_path, monkeypatch
):
    """Each shows one bit, and costs nothing where nothing is left."""
    ledger, tries = Ledger.create(tmp_path / "city.ledger"), []
    ledger.register("days", "1", columns=psd.Columns(time="time"))
    stream = create(tmp_path, epsilon=1, account=psd.Account(ledger, "days"))
    data = day_of(tmp_path, DAYS[0], 3)

    def lacks_memory(*_, **__):
        tries.append(1)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(addition, "count_slice", lacks_memory)
        for _ in range(MAX_FAULTS):
            with pytest.raises(InputDataError, match="could not be read to its end"):
                stream.add(data, DAYS[0])
        for _ in range(2):
            with pytest.raises(LedgerError, match="has nothing left that another one would cost"):
                stream.add(data, DAYS[0])
    assert len(tries) == MAX_FAULTS
    ledger.raise_budget("days", "1.01")
    stream.add(data, DAYS[0])
    assert stream.status().added == (DAYS[0],)


def test_a_stream_is_created_with_the_files_of_the_folder_it_was_created_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    psd.Stream.create("a.stream", "a.psd.parquet", domain=BOUNDS, epsilon=1, slices=WEEK,
                      method="grid", time="time")  # fmt: skip
    monkeypatch.chdir("/")
    psd.Stream(tmp_path / "a.stream").add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    assert (tmp_path / "a.psd.parquet").exists()
