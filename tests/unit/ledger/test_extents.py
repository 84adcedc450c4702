"""Sums of charges over space and time: against a naive twin, and what never counts as apart."""

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd._util.wall_clock import zone_rules
from psd.ledger.extents import (
    ALWAYS_AND_EVERYWHERE,
    ChargedSlices,
    Extent,
    Region,
    extent_for_unit,
    is_slices,
    largest_sum,
    parse_slices,
    slices_fields,
    slices_of,
    spent_within,
)
from psd.space.time_slices import TimeSlices

HOURS = range(8)
EDGES = range(4)  # so that two regions may have no common point
FRAMES = ("a", "b")


def region(*bounds, crs="EPSG:4326", columns=("x=lon", "y=lat")):
    return Region(bounds=bounds, crs=crs, columns=columns)


def hourly(*spans, rules="a", by="hour", zone="UTC"):
    return ChargedSlices(column="t", time_zone=zone, rules=rules, by=by, spans=spans)


def days(text, zone="Asia/Seoul", by="day"):
    return slices_of(TimeSlices.parse(by, text, zone), "t")


def runs(hours):
    spans = []
    for hour in sorted(hours):
        if spans and spans[-1][1] == hour - 1:
            spans[-1] = (spans[-1][0], hour)
        else:
            spans.append((hour, hour))
    return tuple(spans)


SIDES = st.sampled_from(list(itertools.combinations(EDGES, 2)))
REGIONS = st.none() | st.builds(lambda x, y: region(x[0], y[0], x[1], y[1]), SIDES, SIDES)
SPANS = st.sets(st.sampled_from(HOURS), min_size=1).map(runs)
SLICES = st.none() | st.builds(lambda spans: hourly(*spans), SPANS)
EXTENTS = st.builds(lambda place, slices: Extent(region=place, slices=slices), REGIONS, SLICES)
CHARGES = st.lists(st.tuples(EXTENTS, st.integers(1, 10**12)), max_size=7)


def holds(extent, x, y, hour):
    """Whether a record at a point and an hour is charged."""
    if extent.region is not None:
        west, south, east, north = extent.region.bounds
        if not (west <= x <= east and south <= y <= north):
            return False
    spans = extent.slices and extent.slices.spans
    return spans is None or any(first <= hour <= last for first, last in spans)


def naive(charges, within):
    """Largest sum over all points and hours, by looking at each; -1 is an hour in no slice."""
    points = itertools.product(EDGES, EDGES, (-1, *HOURS))
    return max(
        sum(nano for extent, nano in charges if holds(extent, *point))
        for point in points
        if holds(within, *point)
    )


@pytest.mark.deep
@given(CHARGES, EXTENTS)
def test_it_is_the_largest_sum_over_all_points_and_hours(charges, within):
    assert largest_sum(charges, within) == naive(charges, within)


FRAMED = st.tuples(
    st.none() | st.builds(lambda spans, rules: hourly(*spans, rules=rules), SPANS,
                          st.sampled_from(FRAMES)),
    st.integers(1, 10**12),
)  # fmt: skip


@pytest.mark.deep
@given(st.lists(FRAMED, max_size=7), FRAMED)
def test_a_record_has_any_time_in_each_frame(charges, within):
    """No sum is below that of a record whose hours in the two frames are any two."""
    extents = [(Extent(slices=slices), nano) for slices, nano in charges]
    found = largest_sum(extents, Extent(slices=within[0]))
    for moments in itertools.product((-1, *HOURS), repeat=2):
        hours = dict(zip(FRAMES, moments, strict=True))

        def is_charged(slices, hours=hours):
            return slices is None or holds(Extent(slices=slices), 0, 0, hours[slices.rules])

        if is_charged(within[0]):
            assert found >= sum(nano for slices, nano in charges if is_charged(slices))


def test_only_slices_without_a_common_moment_are_apart(subtests):
    for name, other, spent in (
        ("next day", hourly((24, 47)), 5),
        ("last hour", hourly((23, 23)), 10),
        ("in part", hourly((0, 5), (90, 95)), 10),
        ("other rules", hourly((24, 47), rules="newer"), 10),
        ("other zone", hourly((24, 47), zone="Asia/Seoul"), 10),
        ("other column", replace(hourly((24, 47)), column="left"), 10),
        ("always", None, 10),
    ):
        with subtests.test(name):
            charges = [(Extent(slices=hourly((0, 23))), 5), (Extent(slices=other), 5)]
            assert largest_sum(charges, Extent()) == spent
            assert largest_sum(charges[:1], Extent(slices=other)) == spent - 5


def test_charges_for_all_times_are_apart_in_space():
    west, east = region(0, 0, 1, 1), region(2, 0, 3, 1)
    day, next_day = hourly((0, 23)), hourly((24, 47))
    charges = [(Extent(region=west), 5), (Extent(region=east, slices=day), 6)]
    for slices, largest in ((None, 6), (day, 6), (next_day, 5), (replace(day, rules="newer"), 11)):
        assert largest_sum(charges, Extent(slices=slices)) == largest
    assert largest_sum([], Extent()) == largest_sum([], Extent(slices=day)) == 0


def test_many_slices_of_many_charges():
    """More first hours than are looked at together, in every second of which two charges meet."""
    alone = tuple((2 * hour, 2 * hour) for hour in range(9_000))
    pairs = tuple((4 * hour, 4 * hour) for hour in range(4_500))
    charges = [(Extent(slices=hourly(*alone)), 3), (Extent(slices=hourly(*pairs)), 4)]
    assert largest_sum(charges, Extent()) == 7
    assert largest_sum(charges, Extent(slices=hourly((17_998, 18_000)))) == 3
    assert largest_sum(charges, Extent(slices=hourly((17_997, 17_997)))) == 0


def test_what_holds_for_all_records_of_a_unit(subtests):
    for unit, slices, kept in (
        ("record", days("2026-01-05"), True),
        ("record", days("2026-01-05T07", by="hour"), True),
        ("user-day", days("2026-01-05"), True),
        ("user-day", days("2026-01", by="month"), True),
        ("user-day", days("2026-W02", by="week"), True),
        ("user-day", days("2026-01-05", "UTC"), False),
        ("user-day", days("2026-01-05T07", by="hour"), False),
        ("user-day", days("2026-01-05T00..2026-01-05T23", by="hour"), False),
        ("user", days("2026-01-05"), False),
    ):
        with subtests.test(unit, slices=slices):
            zone = "Asia/Seoul" if unit == "user-day" else None
            here = Extent(region=region(0, 0, 1, 1), slices=slices)
            found = extent_for_unit(here, unit, zone)
            assert found.slices == (slices if kept else None)
            assert found.region == (here.region if unit == "record" else None)
            assert extent_for_unit(ALWAYS_AND_EVERYWHERE, unit, zone) == ALWAYS_AND_EVERYWHERE


# Slices of a charge: runs of hours of local time, and texts of them


def made(by, text, zone="Asia/Seoul"):
    return slices_of(TimeSlices.parse(by, text, zone), "seen")


def test_slices_that_follow_each_other_are_one_run():
    """The hour that clocks repeat in autumn is one hour, so neighbours have no common hour."""
    days = made("day", "2026-01-30..2026-02-02,2026-02-04")
    assert days.text == "2026-01-30..2026-02-02, 2026-02-04"
    (first, last), (alone, end) = days.spans
    assert (last - first + 1, end - alone + 1, alone - last - 1) == (96, 24, 24)
    assert made("week", "2026-W52..2027-W01,2027-W03").text == "2026-W52..2027-W01, 2027-W03"
    ((first, last),) = made("day", "2026-10-25", "Europe/Paris").spans
    ((after, _),) = made("day", "2026-10-26", "Europe/Paris").spans
    assert (last - first + 1, after) == (24, last + 1)


def test_an_entry_states_first_and_last_hours(subtests):
    february, to_may = ["2024-02-01T00", "2024-02-29T23"], ["2024-04-01T00", "2024-05-31T23"]
    for by, text, fields in (
        ("hour", "2026-01-01T05,2026-01-01T06", [["2026-01-01T05", "2026-01-01T06"]]),
        ("hour", "2026-01-01T05,2026-01-01T07", [["2026-01-01T05"] * 2, ["2026-01-01T07"] * 2]),
        ("day", "1969-12-31", [["1969-12-31T00", "1969-12-31T23"]]),
        ("week", "2026-W53", [["2026-12-28T00", "2027-01-03T23"]]),
        ("month", "2024-02", [february]),
        ("month", "2024-02,2024-04..2024-05", [february, to_may]),
    ):
        with subtests.test(text):
            slices = made(by, text)
            entered = slices_fields(slices)
            assert (entered["column"], entered["by"], entered["spans"]) == ("seen", by, fields)
            assert is_slices(json.loads(json.dumps(entered)))
            assert parse_slices(json.loads(json.dumps(entered))) == slices
    assert slices_fields(None) is parse_slices(None) is None  # all times
    for by, text in (("day", "2026-01-01"), ("week", "2026-W01"), ("month", "2026-01")):
        assert made(by, text).are_whole_days
    assert not made("hour", "2026-01-01T00..2026-01-01T23").are_whole_days


def test_every_run_of_an_entry_has_its_hours_in_order(monkeypatch):
    monkeypatch.setattr("psd.ledger.extents.MAX_SLICES", 3)

    def is_entry(by, *runs):
        spans = [[f"2026-01-{day}" for day in run] for run in runs]
        return is_slices({**slices_fields(made("month", "2026-01")), "by": by, "spans": spans})

    ones = [[f"01T{hour}", f"01T{hour}"] for hour in ("05", "07", "09", "11")]
    assert is_entry("hour", *ones[:3])
    assert not is_entry("hour", *ones)
    assert not is_entry("hour", ones[0], ["01T09", "01T07"])
    assert not is_entry("hour", *ones[:2], ["01T08", "01T09"])  # one run with the second
    days = [["01T00", "01T23"], ["03T00", "03T23"]]
    assert is_entry("day", *days)
    assert not is_entry("day", days[0], ["03T00", "04T22"])


def test_slices_that_a_charge_contains(subtests):
    charged = made("day", "2026-01-01..2026-01-31,2026-02-02")
    assert charged.frame == ("seen", "Asia/Seoul", zone_rules("Asia/Seoul"))
    assert not charged.contain(None)
    for by, text, zone, is_in in (
        ("day", "2026-01-01..2026-01-31", "Asia/Seoul", True),
        ("day", "2026-01-05,2026-01-31", "Asia/Seoul", True),
        ("day", "2026-01-05,2026-02-01", "Asia/Seoul", False),
        ("day", "2025-12-31", "Asia/Seoul", False),
        ("day", "2026-01-05", "UTC", False),
        ("hour", "2026-01-05T00", "Asia/Seoul", False),
        ("month", "2026-01", "Asia/Seoul", False),
    ):
        with subtests.test(text, zone=zone):
            assert charged.contain(TimeSlices.parse(by, text, zone)) is is_in


def test_only_regions_without_a_common_point_are_apart(subtests):
    for name, other, spent in (
        ("apart", region(2, 0, 3, 1), 5),
        ("common edge", region(1, 0, 2, 1), 10),
        ("common corner", region(1, 1, 2, 2), 10),
        ("overlapping", region(0.5, 0.5, 3, 3), 10),
        ("other crs", region(2, 0, 3, 1, crs="EPSG:3857"), 10),
        ("other columns", region(2, 0, 3, 1, columns=("x=home", "y=lat")), 10),
        ("everywhere", None, 10),
    ):
        with subtests.test(name):
            assert spent_within([(region(0, 0, 1, 1), 5), (other, 5)], None) == spent


def test_a_region_says_nothing_of_places_in_another_frame():
    charges = [(region(0, 0, 1, 1), 5)]
    assert spent_within(charges, region(2, 0, 3, 1)) == 0
    for other in ({"crs": "EPSG:3857"}, {"columns": ("x=home", "y=lat")}):
        assert spent_within(charges, region(2, 0, 3, 1, **other)) == 5
    # Sums beyond the range of one budget are exact.
    charges = [(region(i, 0, i + 0.5, 1), 10**12) for i in range(300)]
    assert spent_within([*charges, (region(0, 0, 300, 1), 7)], None) == 10**12 + 7


def test_columns_and_rows_are_not_mistaken_for_each_other():
    """Far from the diagonal, where west is not among the souths."""
    charges = [
        (region(100, 0, 102, 1), 1),
        (region(101, 0.5, 103, 3), 2),
        (region(104, 2, 105, 3), 4),
        (region(104, 0, 105, 1), 8),
    ]
    assert spent_within(charges, None) == 8
    assert spent_within(charges[:3], None) == 4
    assert spent_within(charges[:2], None) == 3
    assert spent_within(charges, region(99, 0, 103, 3)) == 3
    assert spent_within(charges, region(99, 2, 103, 3)) == 2
    assert spent_within(charges, region(104, 1.5, 110, 3)) == 4
    assert spent_within(charges, region(106, 0, 107, 3)) == 0
    in_one = [(region(0, 0, 1, 10), 1), (region(0, 5, 1, 6), 2), (region(0, 7, 1, 8), 2)]
    assert spent_within(in_one, None) == 3  # the one that begins first ends last
