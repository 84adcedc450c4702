"""Sums of charges over space and time: against a naive twin, and what never counts as apart."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psd.ledger.charged_slices import ChargedSlices, slices_of
from psd.ledger.extents import ALWAYS_AND_EVERYWHERE, Extent, extent_for_unit, largest_sum
from psd.ledger.regions import Region
from psd.space.time_slices import TimeSlices

HOURS = range(8)
EDGES = range(3)
FRAMES = ("a", "b")

# A slow machine fails no test.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def region(*bounds, crs="EPSG:4326"):
    return Region(bounds=bounds, crs=crs, columns=("x=lon",))


def hourly(*spans, rules="a", by="hour", zone="UTC"):
    return ChargedSlices(column="t", time_zone=zone, rules=rules, by=by, spans=spans)


def days(text, zone="Asia/Seoul", by="day"):
    return slices_of(TimeSlices.parse(by, text, zone), "t")


def runs(hours):
    """Runs of neighbouring hours."""
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


@untimed
@given(CHARGES, EXTENTS)
def test_it_is_the_largest_sum_over_all_points_and_hours(charges, within):
    assert largest_sum(charges, within) == naive(charges, within)


@untimed
@given(CHARGES, st.tuples(EXTENTS, st.integers(1, 10**12)))
def test_a_charge_that_fits_where_and_when_it_is_fits_everywhere(charges, new):
    before, there = largest_sum(charges, Extent()), largest_sum(charges, new[0])
    assert largest_sum([*charges, new], Extent()) == max(before, there + new[1])


FRAMED = st.tuples(
    st.none() | st.builds(lambda spans, rules: hourly(*spans, rules=rules), SPANS,
                          st.sampled_from(FRAMES)),
    st.integers(1, 10**12),
)  # fmt: skip


@untimed
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


@pytest.mark.parametrize(
    ("other", "spent"),
    [
        pytest.param(hourly((24, 47)), 5, id="next-day"),
        pytest.param(hourly((23, 23)), 10, id="last-hour"),
        pytest.param(hourly((0, 5), (90, 95)), 10, id="in-part"),
        pytest.param(hourly((24, 47), rules="newer"), 10, id="other-rules"),
        pytest.param(hourly((24, 47), zone="Asia/Seoul"), 10, id="other-zone"),
        pytest.param(replace(hourly((24, 47)), column="left"), 10, id="other-column"),
        pytest.param(None, 10, id="always"),
    ],
)
def test_only_slices_without_a_common_moment_are_apart(other, spent):
    charges = [(Extent(slices=hourly((0, 23))), 5), (Extent(slices=other), 5)]
    assert largest_sum(charges, Extent()) == spent
    assert largest_sum(charges[:1], Extent(slices=other)) == spent - 5


def test_regions_and_slices_meet_only_together():
    west, east = region(0, 0, 1, 1), region(2, 0, 3, 1)
    first, second = hourly((0, 23)), hourly((24, 47))
    charges = [
        (Extent(region=west, slices=first), 1),
        (Extent(region=west, slices=second), 2),
        (Extent(region=east, slices=first), 4),
        (Extent(region=west), 8),
        (Extent(slices=second), 16),
    ]
    assert largest_sum(charges, Extent()) == 2 + 8 + 16
    assert largest_sum(charges, Extent(slices=first)) == 1 + 8
    assert largest_sum(charges, Extent(region=east)) == 16
    assert largest_sum(charges, Extent(region=east, slices=first)) == 4


def test_many_slices_of_many_charges():
    """More first hours than are looked at together, in every second of which two charges meet."""
    alone = tuple((2 * hour, 2 * hour) for hour in range(9_000))
    pairs = tuple((4 * hour, 4 * hour) for hour in range(4_500))
    charges = [(Extent(slices=hourly(*alone)), 3), (Extent(slices=hourly(*pairs)), 4)]
    assert largest_sum(charges, Extent()) == 7
    assert largest_sum(charges, Extent(slices=hourly((17_998, 18_000)))) == 3
    assert largest_sum(charges, Extent(slices=hourly((17_997, 17_997)))) == 0


@pytest.mark.parametrize(
    ("unit", "slices", "kept"),
    [
        ("record", days("2026-01-05"), True),
        ("record", days("2026-01-05T07", by="hour"), True),
        ("user-day", days("2026-01-05"), True),
        ("user-day", days("2026-01", by="month"), True),
        ("user-day", days("2026-W02", by="week"), True),
        ("user-day", days("2026-01-05", "UTC"), False),
        ("user-day", days("2026-01-05T07", by="hour"), False),
        ("user-day", days("2026-01-05T00..2026-01-05T23", by="hour"), False),
        ("user", days("2026-01-05"), False),
    ],
)
def test_what_holds_for_all_records_of_a_unit(unit, slices, kept):
    zone = "Asia/Seoul" if unit == "user-day" else None
    here = Extent(region=region(0, 0, 1, 1), slices=slices)
    found = extent_for_unit(here, unit, zone)
    assert found.slices == (slices if kept else None)
    assert found.region == (here.region if unit == "record" else None)
    assert extent_for_unit(ALWAYS_AND_EVERYWHERE, unit, zone) == ALWAYS_AND_EVERYWHERE
