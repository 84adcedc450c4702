"""Moments on the wall clock: what is read, what is refused, and that no value is quoted."""

import zoneinfo
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd._util import wall_clock as module
from psd._util.wall_clock import (
    check_zone,
    day,
    hour,
    is_zone_name,
    leap_minutes,
    month,
    readable_times,
    wall_clock,
    zone_rules,
)
from psd.errors import InputDataError, ParameterError
from support.tables import refused

SEOUL, LONDON = "Asia/Seoul", "Europe/London"


def shown(values, zone=SEOUL):
    return wall_clock(values, zone).astype(str).tolist()


TEXTS = {
    **dict.fromkeys(
        ["2024-01-31 10:00", "2024-01-31 10:00:00", "2024-01-31T10:00:00", "2024-01-31t10:00:00",
         " 2024-01-31 10:00:00\t", "2024-01-31T10:00:00+09:00", "2024-01-31T10:00:00+0900",
         "2024-01-31 10:00:00+09", "2024-01-31 10:00:00 +09:00", "2024-01-31 01:00:00 UTC",
         "2024-01-31 01:00:00.000000 UTC", "2024-01-31T01:00Z", "2024-01-31 01:00:00GMT",
         "2024-01-31 10:00:00 UTC+09:00", "2024-01-31 10:00:00 GMT+0900",
         "2024-01-31T10:00+09:00[Asia/Seoul]", "2024-01-31T01:00:00Z[Etc/UTC]"],
        "2024-01-31T10:00:00.000000",
    ),
    "2024-01-31": "2024-01-31T00:00:00.000000",
    "2024-01-31T10:00:00.5": "2024-01-31T10:00:00.500000",
    "2024-01-31T10:00:00,25": "2024-01-31T10:00:00.250000",
    "2024-01-31T10:00:00.123456789": "2024-01-31T10:00:00.123456",
    "2024-01-31T10:00:00Z": "2024-01-31T19:00:00.000000",
    "2024-01-31T20:00:00z": "2024-02-01T05:00:00.000000",

    "2024-01-31T10:00-03:30": "2024-01-31T22:30:00.000000",
    "2024-02-29": "2024-02-29T00:00:00.000000",
    "2024-07-01T08:59:60": "2024-07-01T08:59:59.999999",
    "2024-06-30T20:29:60-03:30": "2024-07-01T08:59:59.999999",
    "2024-06-30T23:59:60Z": "2024-07-01T08:59:59.999999",
    "2024-07-01T08:59:60.25+09:00": "2024-07-01T08:59:59.999999",
    "2024-02-28T24:00:00": "2024-02-29T00:00:00.000000",
    "2024-12-31 24:00": "2025-01-01T00:00:00.000000",
    "2024-12-31 24:00:00.000 UTC": "2025-01-01T09:00:00.000000",
    "0001-01-01": "0001-01-01T00:00:00.000000",
    **dict.fromkeys(["", "  ", "NULL", r"\N", None], "NaT"),
}  # fmt: skip


def test_text():
    assert {text: shown(pa.array([text], pa.string()))[0] for text in TEXTS} == TEXTS
    texts = ["2024-01-31T10:00:00", "2024-01-31T10:00:00Z", None, "2024-01-31T10:00:00+01:00"]
    hours = ["2024-01-31T10", "2024-01-31T19", "NaT", "2024-01-31T18"]
    assert hour(wall_clock(texts, SEOUL)).astype(str).tolist() == hours
    times = ["2024-03-31T00:59Z", "2024-03-31T01:00Z", "2024-10-27T00:30Z", "2024-10-27T01:30Z"]
    hours = [text[11:16] for text in shown(times, LONDON)]
    assert hours == ["00:59", "02:00", "01:30", "01:30"]
    times = np.array(["2024-02-29T23:59:59.999999", "1969-12-31T23:00", "NaT"], "M8[us]")
    assert month(times).astype(str).tolist() == ["2024-02", "1969-12", "NaT"]
    assert day(times).astype(str).tolist() == ["2024-02-29", "1969-12-31", "NaT"]
    assert hour(times).astype(str).tolist() == ["2024-02-29T23", "1969-12-31T23", "NaT"]


# All that is ever said about text, whatever it is.
MESSAGES = (
    "column 'seen' holds text that is not a time in ISO 8601; times look like 2024-01-31, "
    "2024-01-31 10:00:00 or 2024-01-31T10:00:00+09:00, and seconds since 1970 must be "
    "converted first",
    "column 'seen' holds times outside the years 1 to 9999; leave unknown times empty",
)
OTHER_TEXTS = [
    "8642-13-57", "2023-02-29", "2024-04-31", "2024-01-31 24:00:01", "2024-01-31 10:60:00",
    "2024-01-31 24:01", "2024-01-31 24:00:00.5", "2024-01-31 25:00", "2024-01-31 24:00:60",
    "2024-01-31 10:00:00 UTC+9", "2024-01-31 10:00:00 CET", "2024-01-31 10:00 [Asia/Seoul]",
    "2024-01-31 10:00:00 PM", "2024-01-31T10:00:00UTCZ", "2024-01-31 UTC", "2024-13-01 24:00",
    "2024-01-31 10:00:61", "31.01.2024", "01/31/2024", "20240131", "2024-1-31", "2024-01",
    "2024-01-31 10", "10:00:00", "1706695200", "1706695200.5", "yesterday", "\uff12024-01-31",
    "2024-01-31T10:00:00+16:00", "2024-01-31T10:00:00+09:60", "2024-01-31T10:00:00KST",
    "2024-01-31 10:00:00 AM", "-2024-01-31", "0000-01-01", "2024-01-31T10:00:00ZZ",
    "2024-01-31+09:00", "2024-06-30T12:30:60Z", "2024-06-30T23:59:60", "2024-06-30T23:59:60+09:00",
    "2024-06-30T08:59:60Z", "2024-07-01T08:29:60", "2024-07-01 08:59:61",
]  # fmt: skip


def refusal(values, zone=SEOUL):
    with pytest.raises(InputDataError) as raised:
        wall_clock(values, zone, column="seen")
    assert raised.value.__context__ is None
    return str(raised.value)


def test_other_text_is_refused_and_not_quoted(subtests):
    for text in OTHER_TEXTS:
        with subtests.test(text):
            assert refusal([text]) in MESSAGES
            assert refusal(["2024-01-31", None, text]) in MESSAGES


LAST, FIRST = "9999-12-31T23:59:59", "0001-01-01T00:00:00"
NEW_YORK, HONOLULU = "America/New_York", "Pacific/Honolulu"


def test_ends_of_the_range_are_those_of_local_time(subtests):
    ends = {
        (f"{LAST}-05:00", NEW_YORK): f"{LAST}.000000",
        (f"{LAST}-10:00", HONOLULU): f"{LAST}.000000",
        (f"{LAST}+12:00", HONOLULU): "9999-12-31T01:59:59.000000",
        ("0001-01-01T08:30:00+08:30", SEOUL): "0001-01-01T08:27:52.000000",  # mean solar time
        (f"{FIRST}-12:00", SEOUL): "0001-01-01T20:27:52.000000",
    }
    assert {(text, zone): shown([text], zone)[0] for text, zone in ends} == ends
    for text, zone in [
        (f"{LAST}-12:00", NEW_YORK),
        (f"{FIRST}+12:00", NEW_YORK),
        (f"{LAST}-15:59", "Pacific/Kiritimati"),
    ]:
        with subtests.test(text):
            assert refusal([text], zone) == MESSAGES[1]
    for value, unit, zone in [
        (253_402_300_800, "s", SEOUL),
        (-62_135_596_801, "s", NEW_YORK),
        (9 * 10**12, "s", SEOUL),
        (-9 * 10**12, "s", SEOUL),
        (2**63 - 1, "us", SEOUL),
    ]:
        with subtests.test(str(value)):
            moments = pa.array([value, None, 0], pa.timestamp(unit, "UTC"))
            assert refusal(moments, zone) == MESSAGES[1]


MOMENT = datetime(2024, 7, 1, 23, 30, 0, 250_000, UTC)
WALL = MOMENT.replace(tzinfo=None)
MOMENTS = {
    "arrow": pa.array([MOMENT], pa.timestamp("us", "UTC")),
    "another zone": pa.array([MOMENT], pa.timestamp("ns", "America/Lima")),
    "milliseconds": pa.chunked_array([pa.array([MOMENT], pa.timestamp("ms", "UTC"))]),
    "pandas": pd.Series([MOMENT]),
    "pandas in Seoul": pd.Series([pd.Timestamp(MOMENT).tz_convert(SEOUL)]),
    "objects": [MOMENT],
    "text": [MOMENT.isoformat()],
    "large text": pa.array([MOMENT.isoformat()], pa.large_string()),
    "views": pa.array([MOMENT.isoformat()], pa.string_view()),
    "dictionary": pa.array([MOMENT.isoformat()]).dictionary_encode(),
    "pandas text": pd.Series([MOMENT.isoformat()]),
}
WITHOUT_ZONE = {
    "arrow": pa.array([WALL], pa.timestamp("ns")),
    "numpy": np.array(["2024-07-01T23:30:00.25"], "datetime64[ms]"),
    "pandas": pd.Series([WALL]),
    "text": ["2024-07-01 23:30:00.25"],
}
ZONES = (SEOUL, LONDON, "UTC")


def test_moments_are_brought_to_the_zone_and_times_without_one_are_on_the_wall():
    expected = ["2024-07-02T08:30:00.250000", "2024-07-02T00:30:00.250000", WALL.isoformat()]
    found = {name: [shown(v, zone)[0] for zone in ZONES] for name, v in MOMENTS.items()}
    assert found == dict.fromkeys(MOMENTS, expected)
    found = {name: {shown(v, zone)[0] for zone in ZONES} for name, v in WITHOUT_ZONE.items()}
    assert found == {name: {WALL.isoformat()} for name in WITHOUT_ZONE}
    for kind in (pa.date32(), pa.date64()):
        array = pa.array([date(2024, 1, 31), None], kind)
        assert shown(array) == ["2024-01-31T00:00:00.000000", "NaT"]
    assert shown(pa.array([-1], pa.timestamp("ns"))) == ["1969-12-31T23:59:59.999999"]


UTC_TIMES = pa.timestamp("us", "UTC")
NO_MOMENTS = [
    ("numbers", [1706695200], [1706695200.5], pa.array([1706695200]).cast(pa.decimal128(20))),
    ("not a time", [True], pa.array([1], pa.duration("s")), pa.array([1], pa.time32("s"))),
    (r"^(?!.*8642).*several kinds", ["a", 8642], [object()]),
    ("years 1 to 9999", pa.array([2**62], pa.timestamp("s")), pa.array([2**62], pa.timestamp("us")),
     pa.array([-(2**63) + 5], UTC_TIMES), pa.array([2**31 - 1], pa.date32())),
]  # fmt: skip


def test_what_is_no_moment_is_refused(subtests):
    refused(subtests, InputDataError, NO_MOMENTS, lambda values: wall_clock(values, SEOUL))
    for values in ([], [None, None], pa.array([], pa.string()), pa.nulls(2)):
        times = wall_clock(values, SEOUL)
        assert times.dtype == "M8[us]"
        assert len(times) == len(values)
        assert np.isnat(times).all()


OTHER_ZONES = ["KST9", "Asia/Soul", "+09:00", "", "../etc", "/etc/localtime", "localtime", "Asia",
               "a\0b", "posix/UTC", "right/UTC", 9, None, "서울"]  # fmt: skip


def test_other_zones_are_refused_with_an_example(subtests):
    for zone in (*ZONES, "America/Argentina/Salta"):
        assert check_zone(zone) == zone
    for zone in OTHER_ZONES:
        with subtests.test(zone), pytest.raises(ParameterError, match="Asia/Seoul"):
            wall_clock(["2024-01-31"], zone)


@pytest.mark.deep
@given(
    st.lists(
        st.datetimes(datetime(1902, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)), max_size=9
    ),
    st.sampled_from([*ZONES, "America/Lima", "Australia/Lord_Howe"]),
)
def test_arrays_agree_with_the_standard_library(moments, zone):
    expected = [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments]
    assert wall_clock(pa.array(moments, pa.timestamp("us", "UTC")), zone).tolist() == expected
    assert wall_clock([moment.isoformat() for moment in moments], zone).tolist() == expected


def test_rules_of_a_zone_are_those_of_its_file(tmp_path, monkeypatch):
    (tmp_path / "Asia").mkdir()
    (tmp_path / "Asia" / "Seoul").write_bytes(b"other rules")
    before = zone_rules("Asia/Seoul")
    assert before == zone_rules.__wrapped__("Asia/Seoul")
    assert before != zone_rules("Europe/Paris")
    with pytest.raises(ParameterError, match="must be in the IANA database"):
        zone_rules("Asia/Soul")
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"), str(tmp_path)))
    assert zone_rules.__wrapped__("Asia/Seoul") not in (before, zone_rules("Europe/Paris"))


def test_names_of_zones_have_a_form():
    assert is_zone_name("America/North_Dakota/New_Salem")
    assert not is_zone_name("Seoul (local)")


def test_a_leap_second_ends_a_minute_of_each_offset_of_its_zone():
    minutes = [f"{minute // 60}:{minute % 60}" for minute in leap_minutes("Europe/London")]
    assert minutes == ["0:59", "23:59"]


def test_times_that_cannot_be_read_are_missing():
    times = readable_times(["2024-02-29", "2023-02-29", "soon"], "UTC").astype(str).tolist()
    assert times == ["2024-02-29T00:00:00.000000", "NaT", "NaT"]
    # Of the form of a time, and before the first year in UTC.
    texts = ["0001-01-01 00:00:00+09:00", "2024-02-29", "2024-03-01"]
    assert np.isnat(readable_times(texts, "UTC")).tolist() == [True, False, False]


def test_texts_of_the_form_of_a_time_that_are_none_are_found_at_once(monkeypatch):
    """Each alone agrees with `wall_clock`, and all together ask for it once."""
    days, clocks = ("2024-02-29", "2023-02-29", "0000-01-01", "2024-13-01"), (
        "", " 23:59", " 24:00", " 24:00:00,0", " 24:01", " 25:00", " 12:60", " 12:30:61",
        " 12:30:59.5", " 12:30:00+09:00",
    )  # fmt: skip
    texts = [day + clock for day in days for clock in clocks]

    def alone(text):
        try:
            return str(wall_clock([text], "UTC")[0])
        except InputDataError:
            return "NaT"

    expected, calls = [alone(text) for text in texts], []
    monkeypatch.setattr(module, "wall_clock", lambda *a: calls.append(a) or wall_clock(*a))
    assert readable_times(texts, "UTC").astype(str).tolist() == expected
    assert len(calls) == 1
