"""Time slices: names, ranges, and which moment lies in which."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.space.time_slices import (
    MAX_SLICES,
    TimeSlices,
    names_of_times,
    slice_name,
    slices_from_text,
    slices_text,
)
from support.tables import refused


def test_names_and_refusals(subtests):
    for by, text, *names in (
        ("month", "2024-01", "2024-01"),
        ("month", "2023-11..2024-02", "2023-11", "2023-12", "2024-01", "2024-02"),
        ("month", "2023-11 .. 2023-12, 2024-02", "2023-11", "2023-12", "2024-02"),
        ("day", "2024-02-28..2024-03-01", "2024-02-28", "2024-02-29", "2024-03-01"),
        ("week", "2026-W52..2027-W01", "2026-W52", "2026-W53", "2027-W01"),
        ("week", "1969-W52..1970-W02", "1969-W52", "1970-W01", "1970-W02"),
        ("week", "0001-W01,9999-W51", "0001-W01", "9999-W51"),
        ("hour", "2024-12-31T23..2025-01-01T00", "2024-12-31T23", "2025-01-01T00"),
        ("day", "1969-12-31..1970-01-01", "1969-12-31", "1970-01-01"),
    ):
        slices = TimeSlices.parse(by, text, "Asia/Seoul")
        with subtests.test(text):
            assert (list(slices), slices.time_zone) == (names, "Asia/Seoul")
            assert len(slices) == len(names)
            assert slices == TimeSlices(by=by, names=tuple(names), time_zone="Asia/Seoul")
    assert psd.TimeSlices is TimeSlices
    month, week = "of the form 2024-01 ", "of the form 2024-W05"
    for by, told, *texts in (
        ("month", month, "", "2024-13", "2024-1", "2024-01-01", "\uff12024-01"),
        ("month", r"both ends of FIRST\.\.LAST", "2024-01..", "..2024-01", "2024-01,2024-02.."),
        ("day", "the form 2024-01-31 ", "2023-02-29"),
        ("hour", "of the form 2024-01-31T17", "2024-01-31T24", "2024-01-31 17"),
        ("month", "is repeated", "2024-01,2024-01"),
        ("month", "follows a later one", "2024-02,2024-01", "2024-01..2024-03,2024-02"),
        ("month", "run forward", "2024-02..2024-01"),
        ("hour", "at most 10,000", "2020-01-01T00..2024-01-01T00"),
        ("hour", "at most 10,000", "0001-01-01T00..9999-12-31T23"),
        ("week", f"{week} by week", "2024-01"),
        ("week", week, "2025-W53", "2024-W00", "9999-W52"),
        ("week", "follows a later one", "2026-W53,2026-W02"),
        ("year", "one of hour, day, week, month", "2024"),
    ):
        table = [(told, *((by, text) for text in texts))]
        refused(subtests, ParameterError, table, lambda case: TimeSlices.parse(*case))
    days = {"by": "day", "names": ("2024-01-01",)}
    table = [("time_zone", "", "a\nb", "x" * 101, None)]
    refused(subtests, ParameterError, table, lambda zone: TimeSlices(**days, time_zone=zone))


def test_periods_and_dates_of_pandas_have_the_names_of_their_slices(subtests):
    for freq, names in (
        ("W", ["2026-W53", "2027-W01"]),
        ("M", ["2026-12", "2027-01"]),
        ("D", ["2026-12-31", "2027-01-01"]),
        ("h", ["2026-12-31T00", "2026-12-31T01"]),
    ):
        with subtests.test(freq):
            assert names_of_times(pd.period_range("2026-12-31", periods=2, freq=freq)) == names
    assert names_of_times(pd.date_range("2026-12-31", periods=1)) == ["2026-12-31"]


def test_edges_belong_to_what_begins_there_and_weeks_begin_on_monday():
    slices = TimeSlices.parse("month", "1969-12..1970-01,1970-03")
    moments = ["1969-11-30T23:59:59.999999", "1969-12-01", "1969-12-31T23:59:59.999999"]
    moments += ["1970-01-01", "1970-02-01", "1970-02-28T23:59:59.999999", "1970-03-01"]
    moments += ["1970-03-31T23:59:59.999999", "1970-04-01", "NaT"]
    found = slices.index(np.array(moments, "datetime64[us]"))
    assert found.tolist() == [-1, 0, 0, 1, -1, -1, 2, 2, -1, -1]
    weeks = TimeSlices.parse("week", "2026-W53..2027-W01")
    assert weeks.begins.astype(str).tolist() == ["2026-12-28T00", "2027-01-04T00"]
    assert weeks.ends.astype(str).tolist() == ["2027-01-04T00", "2027-01-11T00"]
    moments = ["2026-12-27T23:59:59.999999", "2026-12-28", "2027-01-03T23:59:59.999999"]
    moments += ["2027-01-04", "2027-01-10T23:59:59.999999", "2027-01-11", "NaT"]
    found = weeks.index(np.array(moments, "datetime64[us]"))
    assert found.tolist() == [-1, 0, 0, 1, 1, -1, -1]
    names = (np.datetime64("2024-01-01", "h") + np.arange(MAX_SLICES + 1)).astype(str).tolist()
    assert len(TimeSlices.parse("hour", f"{names[0]}..{names[-2]}")) == MAX_SLICES
    with pytest.raises(ParameterError, match="10,001"):
        TimeSlices(by="hour", names=tuple(names))
    with pytest.raises(ParameterError, match="got 0"):
        TimeSlices(by="hour", names=())


@pytest.mark.parametrize("by", ["hour", "day", "week", "month"])
def test_a_moment_lies_in_the_slice_that_its_text_names(by):
    rng = np.random.default_rng(3)
    moments = rng.integers(-(10**16), 10**16, 2_000).astype("datetime64[us]")
    if by == "week":
        weeks = [moment.isocalendar() for moment in moments.tolist()]
        texts = [f"{week.year:04}-W{week.week:02}" for week in weeks]
    else:
        length = {"hour": 13, "day": 10, "month": 7}[by]
        texts = [text[:length] for text in moments.astype(str).tolist()]
    names = tuple(sorted(set(texts))[::2])
    slices = TimeSlices(by=by, names=names)
    want = [names.index(text) if text in names else -1 for text in texts]
    assert slices.index(moments).tolist() == want
    assert slices.index(moments[:0]).tolist() == []


def test_a_moment_is_in_the_slice_of_its_week_and_its_month():
    sunday = np.datetime64("2027-01-03T23")
    assert [slice_name(by, sunday) for by in ("week", "month")] == ["2026-W53", "2027-01"]


def test_texts_of_slices_are_read_back():
    assert slices_from_text("2024-01..2024-03", "UTC").by == "month"
    text = "2024-01..2024-03,2024-05"
    assert slices_text(slices_from_text(text, "UTC")) == text


def test_dates_and_periods_of_pandas_are_names_of_slices():
    days = pd.date_range("2024-01-31", periods=2)
    weeks = pd.period_range("2024-01", periods=2, freq="W")
    assert names_of_times(days) == ["2024-01-31", "2024-02-01"]
    assert names_of_times(weeks) == ["2024-W01", "2024-W02"]
    assert names_of_times("2024-01..2024-02") == "2024-01..2024-02"
