"""Windows of time: what texts say, what is refused, and changes of clocks."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError, PsdWarning
from psd.space.time_slices import TimeWindow
from psd.space.windows import read_windows, warn_of_clock_changes

HOURS = psd.TimeSlices.parse("hour", "2008-05-17T00..2008-06-06T23")  # Saturday to Friday
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-05")
QUARTER = psd.TimeSlices.parse("day", "2024-01-01..2024-03-31")
MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-03")
WEEKS = psd.TimeSlices.parse("week", "2024-W01..2024-W08")


def names(text, slices):
    return [slices.names[n] for n in slices.window(text).numbers]


def hours(date, *clock):
    return [f"{date}T{hour:02}" for hour in clock]


def test_a_text_is_the_slices_that_lie_in_it(subtests):
    tuesday = hours("2008-05-20", *range(24))
    for text, slices, wanted in (
        ("2008-05-20T07..2008-05-20T09", HOURS, hours("2008-05-20", 7, 8)),
        ("2008-05-20T07:00..2008-05-20T09:00", HOURS, hours("2008-05-20", 7, 8)),
        ("2008-05-20T22..2008-05-20T24", HOURS, hours("2008-05-20", 22, 23)),
        ("2008-05-20T23..2008-05-21T01", HOURS, ["2008-05-20T23", "2008-05-21T00"]),
        ("2008-05-20T07", HOURS, hours("2008-05-20", 7)),
        ("2008-05-20", HOURS, tuesday),
        ("2008-05-20T01..2008-05-20", HOURS, tuesday[1:]),
        (" 2008-05-20 .. 2008-05-20 ", HOURS, tuesday),
        ("07-09 2008-05-20", HOURS, hours("2008-05-20", 7, 8)),
        ("Mondays 22-02 2008-05-19..2008-05-20", HOURS,
         [*hours("2008-05-19", 22, 23), *hours("2008-05-20", 0, 1)]),
        ("tuesdays 7..9 2008-W21", HOURS, hours("2008-05-20", 7, 8)),
        ("2008-05-20 22-02", HOURS,
         [*hours("2008-05-20", 22, 23), *hours("2008-05-21", 0, 1)]),
        ("2008-05-18,2008-05-20 sundays 23-01", HOURS, ["2008-05-18T23", "2008-05-19T00"]),
        ("2024", MONTHS, None),
        ("2024-01,2024-03", MONTHS, ["2024-01", "2024-03"]),
        ("2024-02", MONTHS, ["2024-02"]),
        ("2024-W02..2024-W03", WEEKS, ["2024-W02", "2024-W03"]),
        ("2024-01-08..2024-01-14", WEEKS, ["2024-W02"]),
        ("2024-W01..2024-01-09", QUARTER, list(QUARTER.names[:9])),
        ("weekends 2024-01", QUARTER, [f"2024-01-{d:02}" for d in (6, 7, 13, 14, 20, 21, 27, 28)]),
        ("mondays, fridays", DAYS, ["2024-01-01", "2024-01-05"]),
        ("daily 00-24", DAYS, list(DAYS.names)),
    ):  # fmt: skip
        with subtests.test(text):
            if wanted is None:
                with pytest.raises(ParameterError, match=r'try when="2024-01..2024-03"$'):
                    names(text, slices)
            else:
                assert names(text, slices) == wanted


def test_days_and_hours_are_those_of_the_calendar():
    """Against the calendar of Python, an hour at a time."""
    for text, days, clock in (
        ("weekdays 07-09", range(5), (7, 8)),
        ("weekends", (5, 6), range(24)),
        ("wednesdays 00-01", (2,), (0,)),
    ):
        wanted = []
        for name in HOURS.names:
            hour = datetime.datetime.fromisoformat(name)
            if hour.weekday() in days and hour.hour in clock:
                wanted.append(name)
        assert names(text, HOURS) == wanted
    parts = names("weekdays", HOURS) + names("weekends", HOURS)
    assert sorted(parts) == list(HOURS.names)


def test_windows_that_are_not_made_of_slices_are_refused(subtests):
    gap = psd.TimeSlices.parse("month", "2024-01,2024-03")
    for sentence, slices, text in (
        ("got 2024-01-02..2024-01-09; try when=.2024-01-02..2024-01-05.$",
         DAYS, "2024-01-02..2024-01-09"),
        ("got 2023-12-31..2024-01-02; try when=.2024-01-01..2024-01-02.$",
         DAYS, "2023-12-31..2024-01-02"),
        ("which are days from 2024-01-01 to 2024-01-05, got 2024-01; try", DAYS, "2024-01"),
        ("try when=.2024-01-02.$", DAYS, "2024-01-02T05"),
        ("try when=.2008-05-20T07..2008-05-20T09.$", HOURS, "2008-05-20T07:30..2008-05-20T09"),
        ("try when=.2008-06-06T22..2008-06-07T00.$", HOURS, "2008-06-06T22..2008-06-07T02"),
        ("try when=.2008-06-06.$", HOURS, "2008-06-06..2008-06-09"),
        ("got weekdays 07:30-09; try when=.weekdays 07-09.$", HOURS, "weekdays 07:30-09"),
        ("try when=.23-01.$", HOURS, "23:30-00:10"),
        ("got daily 07-09; try when=.daily.$", DAYS, "daily 07-09"),
        ("try when=.2024-01-02.$", DAYS, "2024-01-02 22-02"),
        ("which are months .*, got weekdays; try when=.2024-01.$", MONTHS, "weekdays"),
        ("try when=.2024-02.$", MONTHS, "2024-02-03"),
        ("must be in the slices, from 2024-01-01 until before 2024-04-01, got 2025-07$",
         MONTHS, "2025-07"),
        ("must be in the slices, .* until before 2024-04-01, got 2023$", MONTHS, "2023"),
        ("there are none from 2024-02-01 to 2024-03-01", gap, "2024-01..2024-03"),
        ("must run forward, got 2024-01-04..2024-01-02$", DAYS, "2024-01-04..2024-01-02"),
        ("must run forward, .*T09..2008-05-20T07; hours are times of the clock",
         HOURS, "2008-05-20T09..2008-05-20T07"),
        ("must run forward, .*; hours are times of the clock", HOURS,
         "2008-05-20T07..2008-05-20T07"),
        ("must run forward, .*; hours are times of the clock", HOURS, "2008-05-20T07:00"),
        ("must have a slice in it, got 'sundays'; .* from 2024-01-01 to 2024-01-06$",
         DAYS, "sundays"),
        ("must have a slice in it", HOURS, "sundays 22-02 2008-05-20"),
        ("must have whole days with hours over midnight, got .*; one night is such as", HOURS,
         "2008-05-20T20..2008-05-21T05 22-02"),
        ("got 'monday morning'; 'morning' is none of these$", HOURS, "monday morning"),
        *(("must have days, one span of hours and a period, at most once each, got .*; several "
           "windows are a list, or one --when each$", HOURS, text) for text in (
            "weekdays 07-10, weekends 10-12", "weekdays weekends", "2024-01 2024-02", "07-09 08-10",
            "mondays,x", "weekdays 07-09,17-19")),
        *(("must have hours of the clock", HOURS, text) for text in (
            "25-26", "07-07", "7:60-9", "24-02", "07-24:01")),
        *(("when must be a year, month, week, day or hour", MONTHS, text) for text in (
            "2024-1", "..", "2024-01..", "", " ", ",", "2024-01,", 5, None, b"2024-01", "2024-13",
            "2024-01-01T25",
            "2024-01-01T07+09:00", "2024-01..2024-02..2024-03", "\u0661-\u0663",
            "\x1b[31m", "x" * 10_000)),
    ):  # fmt: skip
        with subtests.test(str(text)[:40]):
            with pytest.raises(ParameterError, match=sentence) as told:
                slices.window(text)
            assert len(str(told.value)) < 400
            assert "\x1b" not in str(told.value)


@pytest.mark.filterwarnings("ignore::psd.errors.PsdWarning")
def test_a_window_that_is_named_in_place_of_a_refused_one_is_one(subtests):
    rng = np.random.default_rng(5)
    gaps = psd.TimeSlices.parse("hour", "2008-05-17T05..2008-05-18T09,2008-05-18T12..2008-05-20T23")
    days = [str(np.datetime64("2008-05-15") + np.timedelta64(day, "D")) for day in range(8)]
    times = [f"{day}T{clock}" for day in days for clock in ("05", "09", "12:30", "24")]
    tried = 0
    for slices in (gaps, HOURS, QUARTER, MONTHS, WEEKS):
        moved = [str(np.datetime64(day) + np.timedelta64(5_727, "D")) for day in days]  # to 2024
        for _ in range(60):
            text = "..".join(sorted(rng.choice(times if slices.by == "hour" else moved, 2)))
            text = rng.choice([text, f"weekdays {rng.integers(24):02}:20-{rng.integers(24):02}:40"])
            try:
                slices.window(text)
            except ParameterError as refused:
                _, found, like = str(refused).partition('; try when="')
                if found:
                    tried += 1
                    with subtests.test(f"{text}: {like}"):
                        assert len(slices.window(like.removesuffix('"')))
    assert tried > 100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sundays 22-02 2008-05-18", None),
        ("daily 00-24", None),
        ("2008-05-18T01..2008-05-18T02 00-02", None),
        ("fridays 22-02", "in part: from 2008-05-16T22 to 2008-05-17T02, and 1 more of such hours"),
        ("2008-06-06 22-02", "in part: from 2008-06-06T22 to 2008-06-07T02$"),
    ],
)
def test_hours_that_slices_have_in_part_are_told(text, told):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        HOURS.window(text)
    assert len(found) == (told is not None)
    if told:
        assert found[0].category is PsdWarning
        assert re.search(told, str(found[0].message))


def test_windows_of_a_caller_are_texts_times_and_windows(subtests):
    own = TimeWindow(name="holidays", numbers=[0, 4])
    january = pd.Timestamp("2024-01-02")
    for when, wanted, is_list in (
        ("2024-01-02", [[1]], False),
        (january, [[1]], False),
        (datetime.date(2024, 1, 2), [[1]], False),
        (own, [[0, 4]], False),
        ([own, "weekends", january, "2024-01-02"], [[0, 4], [5, 6], [1], [1]], True),
        (("2024-01-02",), [[1]], True),
        (pd.period_range("2024-01-01", "2024-01-02", freq="D"), [[0], [1]], True),
        (pd.date_range("2024-01-01", "2024-01-02"), [[0], [1]], True),
        (DAYS, [[0], [1], [2], [3], [4]], True),
    ):
        with subtests.test(str(when)):
            days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-07")
            windows, found = read_windows(when, days)
            assert [window.numbers.tolist() for window in windows] == wanted
            assert found == is_list
    for when, sentence in (
        ([], "when must be 1 to 10,000 windows, got 0"),
        (["2024-01-02"] * 10_001, "when must be 1 to 10,000 windows, got 10,001"),
        ([["2024-01-02"]], "FIRST..LAST.*, got a value of type list"),
        (pd.Series(["2024-01-02"]), "got a value of type Series"),
        (np.array(["2024-01-02"]), "got a value of type ndarray"),
        ({"2024-01-02"}, "got a value of type set"),
        (TimeWindow(name="x", numbers=[5]), "must be a window of the 5 slices .* number 5"),
        ([pd.Timestamp("2024-01-02T05:00")], "when must be dates, got times of a day"),
    ):
        with subtests.test(sentence), pytest.raises(ParameterError, match=sentence):
            read_windows(when, DAYS)


def test_a_window_is_frozen(subtests):
    window = DAYS.window("2024-01-02..2024-01-04")
    assert (window.name, len(window)) == ("2024-01-02..2024-01-04", 3)
    with pytest.raises(ValueError, match="read-only"):
        window.numbers[0] = 5
    with pytest.raises(AttributeError):
        window.name = "other"
    given = np.array([3, 4])
    made = TimeWindow(name="x", numbers=given)
    given[0] = 4
    assert made.numbers.tolist() == [3, 4]
    beyond = np.array([2**63], np.uint64)  # negative as a signed number
    for numbers in ([], [1, 1], [2, 1], [-1], [0.5], [[1]], "1", [True], beyond):
        with subtests.test(str(numbers)), pytest.raises(ParameterError, match="numbers must be"):
            TimeWindow(name="x", numbers=numbers)
    with pytest.raises(ParameterError, match="name must be a text"):
        TimeWindow(name="", numbers=[1])


@pytest.mark.parametrize(
    ("zone", "text", "told"),
    [
        ("Europe/Berlin", "2026-03-29", "in Europe/Berlin: the hour 2026-03-29T02 does not exist"),
        ("Europe/Berlin", "weekends", "does not exist, and 1 more of such hours"),
        ("Europe/Berlin", "2026-10-25T02", "hour 2026-10-25T02 occurs twice and is one slice"),
        ("Australia/Lord_Howe", "2026-04-05", "hour 2026-04-05T01 occurs twice"),
        ("Europe/Berlin", "2026-03-29T03..2026-03-29T05", None),
        ("Asia/Seoul", "daily", None),
        ("Nowhere/Here", "daily", None),  # of a newer zone database
    ],
)
def test_a_change_of_clocks_in_a_window_is_told(zone, text, told):
    slices = psd.TimeSlices.parse("hour", "2026-03-28T00..2026-11-01T23", zone)
    window = slices.window(text)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_clock_changes([window, window], slices)
    assert len(found) == (told is not None)
    if told:
        assert found[0].category is PsdWarning
        assert str(found[0].message).endswith(told) or told in str(found[0].message)
