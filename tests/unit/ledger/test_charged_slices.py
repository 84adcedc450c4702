"""Slices of a charge: runs of hours of local time, and texts of them."""

import json

import pytest

from psd._util.wall_clock import zone_rules
from psd.ledger.charged_slices import is_slices, parse_slices, slices_fields, slices_of
from psd.space.time_slices import TimeSlices


def made(by, text, zone="Asia/Seoul"):
    return slices_of(TimeSlices.parse(by, text, zone), "seen")


def test_slices_that_follow_each_other_are_one_run():
    days = made("day", "2026-01-30..2026-02-02,2026-02-04")
    assert days.text == "2026-01-30..2026-02-02, 2026-02-04"
    (first, last), (alone, end) = days.spans
    assert (last - first + 1, end - alone + 1, alone - last - 1) == (96, 24, 24)
    assert made("week", "2026-W52..2027-W01,2027-W03").text == "2026-W52..2027-W01, 2027-W03"


@pytest.mark.parametrize(
    ("by", "text", "fields"),
    [
        ("hour", "2026-01-01T05,2026-01-01T06", [["2026-01-01T05", "2026-01-01T06"]]),
        ("day", "1969-12-31", [["1969-12-31T00", "1969-12-31T23"]]),
        ("week", "2026-W53", [["2026-12-28T00", "2027-01-03T23"]]),
        ("month", "2024-02", [["2024-02-01T00", "2024-02-29T23"]]),
        (
            "month",
            "2024-02,2024-04..2024-05",
            [["2024-02-01T00", "2024-02-29T23"], ["2024-04-01T00", "2024-05-31T23"]],
        ),
    ],
)
def test_an_entry_states_first_and_last_hours(by, text, fields):
    slices = made(by, text)
    entered = slices_fields(slices)
    assert entered["spans"] == fields
    assert (entered["column"], entered["by"]) == ("seen", by)
    assert is_slices(json.loads(json.dumps(entered)))
    assert parse_slices(json.loads(json.dumps(entered))) == slices


def test_no_slices_are_all_times():
    assert slices_fields(None) is None
    assert parse_slices(None) is None


WHOLE = [("day", "2026-01-01"), ("week", "2026-W01"), ("month", "2026-01")]


@pytest.mark.parametrize(("by", "text"), WHOLE)
def test_days_weeks_and_months_are_whole_days(by, text):
    assert made(by, text).are_whole_days
    assert not made("hour", "2026-01-01T00..2026-01-01T23").are_whole_days


@pytest.mark.parametrize(
    ("other", "is_in"),
    [
        (("day", "2026-01-01..2026-01-31"), True),
        (("day", "2026-01-05,2026-01-31"), True),
        (("day", "2026-01-05,2026-02-01"), False),
        (("day", "2025-12-31"), False),
        (("day", "2026-01-05", "UTC"), False),
        (("hour", "2026-01-05T00"), False),
        (("month", "2026-01"), False),
    ],
)
def test_slices_that_a_charge_contains(other, is_in):
    charged = made("day", "2026-01-01..2026-01-31,2026-02-02")
    assert charged.contain(TimeSlices.parse(*other[:2], (*other, "Asia/Seoul")[2])) is is_in
    assert not charged.contain(None)


def test_a_frame_is_the_column_the_zone_and_its_clock_changes():
    assert made("day", "2026-01-01").frame == ("seen", "Asia/Seoul", zone_rules("Asia/Seoul"))


def test_an_autumn_night_has_a_day_of_24_hours_of_local_time():
    """The hour that clocks repeat is one hour, so neighbouring days have no common hour."""
    night = made("day", "2026-10-25", "Europe/Paris")
    ((first, last),) = night.spans
    assert last - first + 1 == 24
    ((after, _),) = made("day", "2026-10-26", "Europe/Paris").spans
    assert after == last + 1
