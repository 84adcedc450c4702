"""Moments on the wall clock of a zone: what time slices are made of.

Sources give moments as Arrow timestamps, dates or ISO 8601 text, with an offset or without. All of
them become the local time that a clock on the wall of one public zone shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError, ParameterError

if TYPE_CHECKING:
    Times = NDArray[np.datetime64]

__all__ = ["checked_zone", "day", "hour", "month", "wall_clock"]

_FORMATS = "2024-01-31, 2024-01-31 10:00:00 or 2024-01-31T10:00:00+09:00"

# What databases and spreadsheets write where a moment is missing.
_MISSING = ("", "na", "n/a", "nan", "nat", "null", "none", "-", r"\n")

_PARTS = ("day", "minute", "second", "offset")
_ISO = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[t ](?P<minute>\d{2}:\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,6})?)\d*)?"
    r" ?(?P<offset>z|[+-](?:0\d|1[0-5])(?::?[0-5]\d)?)?)?$"
)

# Names in the zone database that mean something else on every machine.
_UNSTABLE = ("localtime", "posixrules", "Factory", "right/", "posix/")

_SPAN = (np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us"))


def checked_zone(zone: str) -> str:
    """Name of a zone in the IANA database.

    Parameters
    ----------
    zone : str
        Such as ``"Asia/Seoul"`` or ``"UTC"``. Public.

    Raises
    ------
    ParameterError
        If there is no such zone.

    Examples
    --------
    >>> checked_zone("Asia/Seoul")
    'Asia/Seoul'
    """
    try:
        if isinstance(zone, str) and not zone.startswith(_UNSTABLE):
            return ZoneInfo(zone).key
    except (KeyError, ValueError, OSError):
        pass
    raise ParameterError(
        f"time zone {str(zone)[:80]!r} is none of the IANA database; write for instance Asia/Seoul "
        "or UTC"
    )


def wall_clock(values: Any, zone: str, *, column: str = "time") -> Times:
    """Local times in a zone.

    Parameters
    ----------
    values : Arrow array, Series or array_like, length n
        Timestamps, dates, or text in ISO 8601. Those without an offset are on the wall clock of
        the zone already, the others are brought to it. Private.
    zone : str
        Name in the IANA database. Public.
    column : str
        What messages call the values.

    Returns
    -------
    ndarray, shape (n,), datetime64[us]
        NaT where there is none. Private.

    Raises
    ------
    InputDataError
        If values are numbers, or text that is no such time.
    ParameterError
        If there is no such zone.

    Notes
    -----
    An hour that a zone passes twice, in autumn, is one hour here: its two halves cannot be told
    apart on the wall.

    Examples
    --------
    >>> wall_clock(["2024-01-31T16:30:00Z", "2024-02-01 10:00"], "Asia/Seoul").tolist()
    [datetime.datetime(2024, 2, 1, 1, 30), datetime.datetime(2024, 2, 1, 10, 0)]
    """
    import pyarrow as pa

    zone = checked_zone(zone)
    array = _arrow(values, column)
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), np.datetime64("NaT", "us"))
    if pa.types.is_string(kind):
        times = _parsed(array, zone, column)
    elif pa.types.is_timestamp(kind):
        times = _local(_microseconds(array, column), zone if kind.tz else None)
    elif pa.types.is_date(kind):
        times = _microseconds(array, column)
    else:
        raise InputDataError(f"column {column!r} {_wrong_kind(kind)}; times look like {_FORMATS}")
    if ((times < _SPAN[0]) | (times > _SPAN[1])).any():
        raise InputDataError(
            f"column {column!r} holds times beyond the years 1 to 9999; are these marks for "
            "moments that are not known? leave them empty"
        )
    return times


def _arrow(values: Any, column: str) -> Any:
    """One Arrow array, text in the plain type."""
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
    """What is wrong with values that are neither moments nor text."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return (
            "holds numbers; seconds and milliseconds since 1970 are not told apart by guessing: "
            "convert them to timestamps first"
        )
    return f"is of type {kind}, which is no moment"


def _microseconds(array: Any, column: str) -> Times:
    """Arrow timestamps or dates as they are, finer parts cut off."""
    import pyarrow as pa

    try:
        if not (pa.types.is_timestamp(array.type) and array.type.unit == "ns"):
            array = array.cast(pa.timestamp("us", getattr(array.type, "tz", None)))
        times: Times = array.to_numpy(zero_copy_only=False).astype("datetime64[us]")
        return times
    except pa.ArrowException:
        pass
    raise InputDataError(f"column {column!r} holds times beyond the years 1 to 9999")


def _local(times: Times, zone: str | None) -> Times:
    """Times in UTC on the wall clock of a zone, or as they are where none is given."""
    import pandas as pd

    if zone is None:
        return times
    moments = pd.DatetimeIndex(times, tz="UTC").tz_convert(ZoneInfo(zone))
    return moments.tz_localize(None).to_numpy().astype("datetime64[us]")


def _parsed(array: Any, zone: str, column: str) -> Times:
    """ISO 8601 text on the wall clock; each row with an offset or without."""
    import pyarrow as pa
    import pyarrow.compute as pc

    given = pc.utf8_lower(pc.utf8_trim_whitespace(array))
    given = pc.if_else(pc.is_in(given, value_set=pa.array(_MISSING)), None, given)
    parts = pc.extract_regex(given, _ISO)
    if parts.null_count == given.null_count:
        day, minute, second, offset = (pc.struct_field(parts, name) for name in _PARTS)
        clock = pc.binary_join_element_wise(
            pc.if_else(pc.equal(minute, ""), "00:00", minute),
            pc.if_else(pc.equal(second, ""), "00", pc.replace_substring(second, ",", ".")),
            ":",
        )
        try:
            shown = pc.binary_join_element_wise(day, clock, " ").cast(pa.timestamp("us"))
        except pa.ArrowException:  # 30 February; the message quotes it
            pass
        else:
            return _with_offsets(_microseconds(shown, column), offset, zone)
    raise InputDataError(
        f"column {column!r} holds text that is no time in ISO 8601; times look like {_FORMATS}, "
        "and seconds since 1970 have to be converted first"
    )


def _with_offsets(times: Times, offset: Any, zone: str) -> Times:
    """Times that were written with an offset brought to the zone, the others left."""
    import pyarrow.compute as pc

    texts = pc.dictionary_encode(pc.fill_null(offset, ""))
    known = texts.dictionary.to_pylist()  # at most some hundred, however many rows there are
    which = texts.indices.to_numpy()
    shift = np.array([_offset(text) for text in known], "timedelta64[m]")[which]
    written = np.array([text != "" for text in known], bool)[which]
    times = times.copy()
    times[written] = _local(times[written] - shift[written], zone)
    return times


def _offset(text: str) -> int:
    """Minutes that an offset such as ``+09:00`` is ahead of UTC."""
    digits = text.lstrip("+-z").replace(":", "").ljust(4, "0")
    return (-1 if text.startswith("-") else 1) * (int(digits[:2]) * 60 + int(digits[2:]))


def month(times: Times) -> Times:
    """First day of the month of each time.

    Examples
    --------
    >>> month(np.array(["2024-01-31T10:20"], "datetime64[us]")).astype(str).tolist()
    ['2024-01']
    """
    return times.astype("datetime64[M]")


def day(times: Times) -> Times:
    """Day of each time.

    Examples
    --------
    >>> day(np.array(["2024-01-31T10:20"], "datetime64[us]")).astype(str).tolist()
    ['2024-01-31']
    """
    return times.astype("datetime64[D]")


def hour(times: Times) -> Times:
    """Full hour of each time.

    Examples
    --------
    >>> hour(np.array(["2024-01-31T10:20"], "datetime64[us]")).astype(str).tolist()
    ['2024-01-31T10']
    """
    return times.astype("datetime64[h]")
