"""Which records of a batch are counted, and what is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd.errors import InputDataError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import RecordFilter
from psd.space.time_slices import TimeSlices

PLANE = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
DEGREES = psd.Domain(bounds=(-10, -10, 10, 10), crs="EPSG:4326", lattice=(4, 4))
SLICES = TimeSlices.parse("day", "2024-01-01,2024-01-03")


class East:
    """The half of the plane with x of at least 2."""

    def contains(self, x, y):
        assert len(x) == len(y)
        return x >= 2


class Bands:
    """A region for each column; none in the north, or without a number as the bid."""

    def assign(self, x, y, bid=None, /):
        has_bid = True if bid is None else np.isfinite(bid)
        return np.where((y < 3) & has_bid, x, -1).astype(np.int32)


class Kinds:
    """The two labels that are counted."""

    def assign(self, x, y, label=None, /):
        assert len(label) == len(x) == len(y)
        return np.array([{"a": 0, "b": 1}.get(each, -1) for each in label.to_pylist()], np.int32)


def batch(points, times=None):
    x, y = np.array(points, float).reshape(-1, 2).T
    return Batch(x=x, y=y, time=None if times is None else np.array(times, "datetime64[us]"))


def filter_of(domain=PLANE, **options):
    plain = {"area": None, "slices": None, "needs_time": False, "strata": None}
    return RecordFilter(domain, **{**plain, **options})


def cells(filtered):
    return list(zip(filtered.columns.tolist(), filtered.rows.tolist(), strict=True))


def test_records_inside_have_cells_and_the_others_are_dropped():
    records = filter_of()
    points = [(0.5, 3.5), (np.nan, 1), (1, np.nan), (9, 1), (3.5, 0.5), (-0.1, 1)]
    filtered = records.filter_batch(batch(points))
    assert filtered.inside.tolist() == [True, False, False, False, True, False]
    assert cells(filtered) == [(0, 3), (3, 0)]
    assert (filtered.columns.dtype, filtered.rows.dtype) == (np.int32, np.int32)
    assert filtered.time is None
    assert records.report == {"read": 6, "without coordinates": 2, "outside": 2}
    filtered = filter_of(area=East()).filter_batch(batch([(1, 1)]))
    assert (filtered.inside.tolist(), repr(filtered)) == ([False], "<FilteredBatch: private>")


def test_records_outside_the_area_are_dropped():
    records = filter_of(area=East())
    filtered = records.filter_batch(batch([(1, 1), (9, 9), (2, 1), (3, 3), (1, 3)]))
    assert filtered.inside.tolist() == [False, False, True, True, False]
    assert cells(filtered) == [(2, 1), (3, 3)]
    assert records.report == {"read": 5, "without coordinates": 0, "outside": 3}
    for points in ([], [(np.nan, np.nan), (2, 2)]):  # batches are reported together
        records.filter_batch(batch(points))
    assert records.report == {"read": 7, "without coordinates": 1, "outside": 3}


TIMES = ["2024-01-01T12:00", "2024-01-02", "2024-01-03T23:59:59.5", "2024-01-03"]


def test_records_outside_all_slices_are_dropped():
    for area, expected in (
        (None, [True, False, True, True]),
        (East(), [False, False, True, False]),
    ):
        records = filter_of(slices=SLICES, area=area, needs_time=True)
        filtered = records.filter_batch(batch([(1, 1), (2, 1), (3, 1), (0, 1)], TIMES))
        assert filtered.inside.tolist() == expected
        times = np.array(TIMES, "datetime64[us]").astype(np.int64)[expected]
        assert filtered.time.tolist() == times.tolist()
        assert len(filtered.columns) == len(filtered.rows) == sum(expected)


def test_a_record_outside_is_reported_as_outside_whatever_its_bid():
    records = filter_of(slices=SLICES, area=East(), needs_time=True, strata=Bands())
    points = [(1.5, 1), (3.5, 3), (2.5, 1), (3.5, 1)]  # not in the area, a region, a slice; in all
    times = [TIMES[0], TIMES[0], TIMES[1], TIMES[0]]
    filtered = records.filter_batch(batch(points, times))
    assert filtered.inside.tolist() == [False, False, False, True]
    assert (cells(filtered), filtered.stratum.tolist()) == ([(3, 1)], [3])
    assert records.report == {"read": 4, "without coordinates": 0, "outside": 3}
    records = filter_of(strata=Bands())
    bids = np.array([np.nan, np.nan, np.inf, 2.0])
    records.filter_batch(replace(batch([(1, 1), (9, 9), (2, 2), (2, 1)]), bid=bids))
    left = {"without coordinates": 0, "outside": 1, "without a bid": 2}
    assert records.report == {"read": 4, **left}


def test_labels_stay_with_their_records():
    points = [(9, 9), (0.5, 1), (1.5, 1), (2.5, 1), (np.nan, 1), (3.5, 1), (3.5, 3)]
    labels = pa.array(["a", "b", None, "a", "b", "c", "b"], pa.large_string())
    labelled = replace(batch(points), label=labels)
    filtered = filter_of(strata=Kinds()).filter_batch(labelled)
    assert cells(filtered) == [(0, 1), (2, 1), (3, 3)]
    assert filtered.stratum.tolist() == [1, 0, 1]
    match = np.array([True, False, True, True, True, True, True])
    filtered = filter_of(strata=Kinds()).filter_batch(replace(labelled, match=match))
    assert cells(filtered) == [(2, 1), (3, 3)]
    assert filtered.stratum.tolist() == [0, 1]


def test_times_without_slices_are_kept():
    records = filter_of(needs_time=True)
    filtered = records.filter_batch(batch([(1, 1), (9, 9)], TIMES[:2]))
    assert filtered.time.tolist() == [1_704_110_400_000_000]
    with pytest.raises(InputDataError, match="no time"):
        records.filter_batch(batch([(1, 1)]))


def test_coordinates_that_are_not_degrees_are_outside():
    points = [(180.5, 0), (-181, 0), (0, 90.1), (0, -91), (np.inf, 0), (1e6, 2e6), (200, 95)]
    metres = psd.Domain(bounds=(-10, -10, 10, 10), crs="EPSG:3857")
    for domain, point in product((DEGREES, PLANE, metres), [*points, (np.inf, np.inf)]):
        records = filter_of(domain)
        assert records.filter_batch(batch([(1, 1), point])).inside.tolist() == [True, False]
        assert records.report == {"read": 2, "without coordinates": 0, "outside": 1}
    ends = [(180, 90), (-180, -90), (np.nan, np.nan), (1, 1)]
    assert filter_of(DEGREES).filter_batch(batch(ends)).inside.sum() == 1
    filter_of(DEGREES).filter_batch(batch([]))


def test_records_that_are_not_selected_are_dropped_before_all_others():
    points = [(0.5, 1), (np.nan, 9), (1, np.nan), (2.5, 1), (9, 9), (3.5, 3)]
    match = np.array([True, False, True, True, False, True])
    plain = batch(points)
    assert plain.selected() is plain
    few = replace(plain, match=match).selected()
    assert few.x[[0, 2, 3]].tolist() == [0.5, 2.5, 3.5]
    assert few.y[[0, 2, 3]].tolist() == [1, 1, 3]
    assert (few.user, few.time, few.bid, few.label, few.values, few.match) == (None,) * 6
    times = np.array([TIMES[0]] * 3 + [TIMES[3]] * 3, "datetime64[us]")
    values = np.arange(12.0).reshape(6, 2)
    whole = replace(
        plain, user=pa.array(list("abcdef")), time=times, bid=np.arange(6.0), values=values,
        label=pa.array(list("uvwxyz")), match=match,
    )  # fmt: skip
    few = whole.selected()
    assert few.user.to_pylist() == list("acdf")
    assert few.label.to_pylist() == list("uwxz")
    assert few.time.tolist() == times[match].tolist()
    assert few.bid.tolist() == [0, 2, 3, 5]
    assert few.values.tolist() == values[match].tolist()
    assert few.match is None
    for area, expected in (
        (None, match & ~np.isnan(plain.y)),
        (East(), [False] * 3 + [True, False, True]),
    ):
        records = filter_of(area=area)
        for repeats in (1, 2):
            filtered = records.filter_batch(whole)
            assert filtered.inside.tolist() == list(expected)
            assert filtered.values.tolist() == values[expected].tolist()
            assert filtered.time.tolist() == times[expected].astype(np.int64).tolist()
            left = {"read": 6, "without coordinates": 1, "outside": 0 if area is None else 1}
            left |= {"not selected": 2, "without a bid": 0}
            assert records.report == {name: repeats * number for name, number in left.items()}
    assert match.tolist() == [True, False, True, True, False, True]
