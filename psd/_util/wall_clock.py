"""Local times in one public time zone, from which time slices are made.

Arrow timestamps, dates or ISO 8601 text become local times. In text, UTC and GMT are the offset 0,
24:00 is the next midnight, and a leap second (23:59:60 in UTC) the last microsecond of its minute.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import nulls_as_zeros
from psd._util.instances import shown
from psd.errors import InputDataError, ParameterError

if TYPE_CHECKING:
    Times = NDArray[np.datetime64]

__all__ = [
    "NAMED_ZONE",
    "OFFSET",
    "WHITE_SPACE",
    "check_zone",
    "leap_minutes",
    "readable_times",
    "zone_rules",
]

_FORMATS = "2024-01-31, 2024-01-31 10:00:00 or 2024-01-31T10:00:00+09:00"

# What databases and spreadsheets write for a missing time.
_MISSING = ("", "na", "n/a", "nan", "nat", "null", "none", "-", r"\n")

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""White space of Unicode, which is removed around a time."""

OFFSET = r"z|(?:utc|gmt)?[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?|utc|gmt"
"""Pattern of an offset in small letters, in the syntax that RE2, Java and Rust share."""

NAMED_ZONE = r"(?:\[[a-z0-9_/+-]+\])?"
"""Pattern of the name of a zone that some programs write after an offset, which alone decides."""

_PARTS = ("day", "minute", "second", "offset")
_ISO = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[t ](?P<minute>\d{2}:\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,6})?)\d*)?"
    rf"(?: ?(?P<offset>{OFFSET}){NAMED_ZONE})?)?$"
)

# Minutes and seconds of a clock that shows them, joined by a colon.
_CLOCK = r"^(?:(?:[01]\d|2[0-3]):[0-5]\d:(?:|(?:[0-5]\d|60).*)|24:00:(?:|00(?:[.,]0+)?)|:)$"

_END_OF_DAY = r"^24:00(?::00(?:[.,]0+)?)?$"

# Names in the zone database whose meaning differs between machines.
_UNSTABLE = ("localtime", "posixrules", "Factory", "right/", "posix/")

_RANGE = (np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us"))

# Calendar and zones repeat after 400 years. Times near the ends of the range are converted in a
# year that libraries have, even if their year in UTC is 0 or 10000.
_CYCLE = np.timedelta64(146_097, "D")
_EARLY, _LATE = np.datetime64("1000-01-01", "us"), np.datetime64("9000-01-01", "us")
_MINUTE, _DAY_MINUTES = np.timedelta64(1, "m"), 1440
_LONGEST_OFFSET = np.timedelta64(2, "D")


_ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")


def is_zone_name(zone: object) -> bool:
    """Whether a text has the form of an IANA name, whatever this machine's database has."""
    return isinstance(zone, str) and len(zone) <= 100 and _ZONE_NAME.fullmatch(zone) is not None


def check_zone(zone: str) -> str:
    """Check the name of a zone in the IANA database, such as ``"Asia/Seoul"`` or ``"UTC"``."""
    try:
        if isinstance(zone, str) and not zone.startswith(_UNSTABLE):
            return ZoneInfo(zone).key
    except (KeyError, ValueError, OSError):
        pass
    raise ParameterError(
        f"time_zone must be in the IANA database, such as Asia/Seoul or UTC, got {shown(zone)}"
    )


@cache
def zone_rules(zone: str) -> str:
    """Digest of a zone's clock changes on this machine: equal ones give equal local times."""
    name = check_zone(zone)
    folders = (Path(folder) for folder in zoneinfo.TZPATH)
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    content = (files("tzdata") / "zoneinfo" / name) if path is None else path
    return blake2b(content.read_bytes(), digest_size=8).hexdigest()


@cache
def leap_minutes(zone: str) -> tuple[int, ...]:
    """Minutes of the local day that a leap second may end, by offsets at ends of months to 2037."""
    rules = ZoneInfo(check_zone(zone))
    ends = [
        datetime(year, month, 1, tzinfo=UTC) - timedelta(minutes=1)
        for year in range(1972, 2038)
        for month in range(1, 13)
    ]
    local = (end.astimezone(rules) for end in ends)
    return tuple(sorted({time.hour * 60 + time.minute for time in local if not time.second}))


def wall_clock(values: Any, zone: str, *, column: str = "time") -> Times:
    """Convert private times to the local time of a zone, (n,) datetime64[us], NaT for missing.

    Timestamps, dates, or ISO 8601 text; without an offset they are local already.
    """
    import pyarrow as pa

    zone = check_zone(zone)
    array = _arrow(values, column)
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), np.datetime64("NaT", "us"))
    if pa.types.is_string(kind):
        times = _parsed(array, zone, column)
    elif pa.types.is_timestamp(kind):
        # The hour that a zone repeats in autumn is one hour here: local time cannot tell the two
        # apart.
        times = _local(_microseconds(array, column), zone if kind.tz else None)
    elif pa.types.is_date(kind):
        times = _microseconds(array, column)
    else:
        raise InputDataError(f"column {column!r} {_wrong_kind(kind)}; times look like {_FORMATS}")
    if ((times < _RANGE[0]) | (times > _RANGE[1])).any():
        raise InputDataError(
            f"column {column!r} holds times outside the years 1 to 9999; leave unknown times empty"
        )
    return times


def readable_times(values: Any, zone: str) -> Times:
    """Convert times as `wall_clock` does, each by itself: NaT for those that it refuses."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_string(array.type):
        texts = pc.utf8_lower(pc.utf8_trim(array, characters=WHITE_SPACE))
        parts = pc.extract_regex(texts, _ISO)
        day, minute, second = (pc.struct_field(parts, name) for name in _PARTS[:3])
        is_clock = pc.match_substring_regex(
            pc.binary_join_element_wise(minute, second, ":"), _CLOCK
        )
        days = pc.dictionary_encode(day)
        is_day = pa.array([_is_day(text) for text in days.dictionary.to_pylist()], pa.bool_())
        array = pc.if_else(pc.and_(is_day.take(days.indices), is_clock), array, None)
    try:
        return wall_clock(array, zone)
    except InputDataError:
        if len(array) < 2:
            return np.full(len(array), np.datetime64("NaT", "us"))
    half = len(array) // 2  # few are left that have the form of a time and are none
    parts = (readable_times(part, zone) for part in (array[:half], array[half:]))
    return np.concatenate([*parts])


def _is_day(text: str) -> bool:
    """Whether a text of the form of a day is one; 30 February is none."""
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _arrow(values: Any, column: str) -> Any:
    """Convert values to one Arrow array, text in the plain type."""
    import pyarrow as pa

    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_large_string(array.type) or array.type == pa.string_view():
            array = array.cast(pa.string())
        array.validate(full=True)
        return array
    except (pa.ArrowException, ValueError, TypeError):
        pass  # the message quotes a value
    raise InputDataError(
        f"column {column!r} holds values of several kinds, or text that is not in UTF-8; times "
        f"look like {_FORMATS}"
    )


def _wrong_kind(kind: Any) -> str:
    """Explain what is wrong with values that are neither times nor text."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return (
            "holds numbers, which may be seconds or milliseconds since 1970; convert them to "
            "timestamps first"
        )
    return f"is of type {kind}, which is not a time"


def _microseconds(array: Any, column: str) -> Times:
    """Truncate Arrow timestamps or dates to microseconds."""
    import pyarrow as pa

    try:
        unit = array.type.unit if pa.types.is_timestamp(array.type) else "s"
        if unit != "ns":
            array, unit = array.cast(pa.timestamp("us", getattr(array.type, "tz", None))), "us"
        numbers, is_null = nulls_as_zeros(array.view(pa.int64()))
        times: Times = numbers.view(f"datetime64[{unit}]").astype("datetime64[us]")
        times[is_null] = np.datetime64("NaT", "us")
        return times
    except pa.ArrowException:
        pass
    raise InputDataError(f"column {column!r} holds times outside the years 1 to 9999")


def _local(times: Times, zone: str | None) -> Times:
    """Convert UTC to the local time of a zone, if any; times beyond the range are refused later."""
    if zone is None:
        return times
    import pandas as pd

    shift = np.where(times < _EARLY, _CYCLE, np.where(times > _LATE, -_CYCLE, 0 * _CYCLE))
    is_near = (times >= _RANGE[0] - _LONGEST_OFFSET) & (times <= _RANGE[1] + _LONGEST_OFFSET)
    moments = pd.DatetimeIndex(times[is_near] + shift[is_near], tz="UTC").tz_convert(ZoneInfo(zone))
    local = times.copy()
    local[is_near] = moments.tz_localize(None).to_numpy().astype("datetime64[us]") - shift[is_near]
    return local


def _parsed(array: Any, zone: str, column: str) -> Times:
    """Parse ISO 8601 text as local times; each row with an offset or without."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_lower(pc.utf8_trim(array, characters=WHITE_SPACE))
    texts = pc.if_else(pc.is_in(texts, value_set=pa.array(_MISSING)), None, texts)
    # A text that is no time gives a null, so a number of nulls above that of missing values is a
    # fault. Whole columns are handled at once, for a loop over rows takes as long as reading them.
    parts = pc.extract_regex(texts, _ISO)
    if parts.null_count == texts.null_count:
        day, minute, second, offset = (pc.struct_field(parts, name) for name in _PARTS)
        second = pc.if_else(pc.equal(second, ""), "00", pc.replace_substring(second, ",", "."))
        # A leap second is the end of the second before it, and 24:00 is 00:00 of the next day.
        is_leap = pc.starts_with(second, "60")
        second = pc.if_else(is_leap, "59.999999", second)
        clock = pc.binary_join_element_wise(
            pc.if_else(pc.equal(minute, ""), "00:00", minute), second, ":"
        )
        is_end = pc.match_substring_regex(clock, _END_OF_DAY)
        clock = pc.if_else(is_end, "00:00:00", clock)
        try:
            times = pc.binary_join_element_wise(day, clock, " ").cast(pa.timestamp("us"))
        except pa.ArrowException:  # 30 February; the message quotes it
            pass
        else:
            ends = pc.fill_null(is_end, False).to_numpy(zero_copy_only=False)
            moments: Times = _microseconds(times, column) + ends.astype("timedelta64[D]")
            shift, is_written = _shifts(offset)
            leap = np.flatnonzero(pc.fill_null(is_leap, False).to_numpy(zero_copy_only=False))
            # Leap seconds are in the last minute of a day of UTC alone: by the offset where it is
            # written, else at the minutes at which they can be in the zone.
            clocks = (moments[leap] - moments[leap].astype("datetime64[D]")) // _MINUTE
            in_utc = (clocks - shift[leap].astype(np.int64)) % _DAY_MINUTES == _DAY_MINUTES - 1
            if np.where(is_written[leap], in_utc, np.isin(clocks, leap_minutes(zone))).all():
                moments[is_written] = _local(moments[is_written] - shift[is_written], zone)
                return moments
    raise InputDataError(
        f"column {column!r} holds text that is not a time in ISO 8601; times look like {_FORMATS}, "
        "and seconds since 1970 must be converted first"
    )


def _shifts(offset: Any) -> tuple[NDArray[np.timedelta64], NDArray[np.bool_]]:
    """Offsets from UTC in minutes, and whether each is written; those that are not are 0."""
    import pyarrow.compute as pc

    texts = pc.dictionary_encode(pc.fill_null(offset, ""))
    offsets = texts.dictionary.to_pylist()  # a few hundred at most, for any number of rows
    which = texts.indices.to_numpy()
    minutes = []
    for text in offsets:  # such as ``+09:00``, ``z`` or ``utc-03``
        digits = re.sub("[^0-9]", "", text).ljust(4, "0")
        minutes.append((-1 if "-" in text else 1) * (int(digits[:2]) * 60 + int(digits[2:])))
    shift = np.array(minutes, "timedelta64[m]")[which]
    written = np.array([text != "" for text in offsets], bool)[which]
    return shift, written


def month(times: Times) -> Times:
    """First day of the month of each time."""
    return times.astype("datetime64[M]")


def day(times: Times) -> Times:
    """Day of each time."""
    return times.astype("datetime64[D]")


def hour(times: Times) -> Times:
    """Full hour of each time."""
    return times.astype("datetime64[h]")
