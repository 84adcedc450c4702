"""Text and numbers as the sources of `psd.ingest.sources` take them, in Ibis. Private side.

Regular expressions keep to what RE2, Java and Rust read alike; numbers that stand in a query are
written as text, since engines round decimal literals differently. No engine's own notion of time
is used: moments are integers made of digits.
"""

from __future__ import annotations

import sys
from typing import Any

from psd.ingest import user_ids as ids
from psd.ingest.sources import csv

__all__ = [
    "COMPOSED",
    "bare",
    "days_of",
    "double",
    "flag",
    "identifier",
    "is_bad",
    "is_moment",
    "micros_of",
    "moment",
    "number",
    "parts",
    "truth",
]

_DAY_SECONDS = 86_400

# Letters that compose with nothing, so that any text of them is in NFC: Latin, Cyrillic, kana,
# Chinese characters, Hangul syllables.
COMPOSED = (
    (0x01, 0x2FF), (0x400, 0x482), (0x48A, 0x52F), (0x3041, 0x3096), (0x30A1, 0x30FA),
    (0x30FC, 0x30FE), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
)  # fmt: skip

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[t ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
_PLACES = {
    "year": (0, 4), "month": (5, 2), "day": (8, 2),
    "hour": (11, 2), "minute": (14, 2), "second": (17, 2), "micro": (20, 6),
}  # fmt: skip
_OFFSET = " ?(z|[+-][0-9]{2}(:?[0-9]{2})?)"


def double(value: float) -> Any:
    """A number that every engine reads as the same double."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def flag(condition: Any) -> Any:
    """1 where a condition holds, else 0; also where it is unknown."""
    import ibis

    return ibis.ifelse(condition.fill_null(False), ibis.literal(1, "int64"), 0)


def truth(condition: Any) -> Any:
    """A condition that does not hold where it is unknown."""
    return condition.fill_null(False)


def bare(column: Any, marks: str) -> Any:
    """Text without marks at its ends; what is no text stays as it is."""
    if not column.type().is_string():
        return column
    several = _ranges((ord(mark), ord(mark)) for mark in marks)
    return column.re_replace(rf"\A[{several}]+|[{several}]+\z", "")


def is_infinite(value: Any) -> Any:
    """Whether a number is beyond all finite ones; engines disagree on functions that say so."""
    return truth(value.abs() > double(sys.float_info.max))


def number(column: Any) -> Any:
    """Coordinate, NULL where there is none."""
    import ibis

    value, plain = column.try_cast("float64"), ~truth(column.cast("float64").isnan())
    if column.type().is_string():
        plain = truth(column.re_search(rf"\A(?:{csv.DECIMAL})\z"))
    else:
        value = column.cast("float64")
    return ibis.ifelse(plain, value, ibis.null("float64"))


def is_bad(column: Any, value: Any) -> Any:
    """Whether a field is neither a finite number nor a usual mark for a missing one."""
    if not column.type().is_string():
        return is_infinite(value)
    text = column.notnull() & ~column.lower().isin(sorted(csv.MISSING))
    return truth(text & (value.isnull() | is_infinite(value)))


def identifier(text: Any) -> tuple[Any, Any]:
    """Id as `psd.ingest.tally_builder` writes it, NULL where missing, and whether it is refused.

    No engine composes letters and accents; where that would change nothing, an id is taken.
    """
    import ibis

    missing = text.lower().isin(ids.MISSING)
    strange = ~text.re_search(rf"\A[{_ranges(COMPOSED)}]*\z")
    return ibis.ifelse(truth(missing), ibis.null("string"), text), truth(strange)


def moment(text: Any) -> tuple[Any, Any, Any]:
    """Moment as the text of all its digits, whether a field is none, and whether it has an offset.

    What engines and files write comes to the form 2024-01-31t10:00:00.000000; NULL for none.
    """
    import ibis

    plain = truth(text.re_search(rf"\A{_DATE}({_CLOCK})?\z"))
    aware = truth(text.re_search(rf"\A{_DATE}{_CLOCK}{_OFFSET}\z"))
    missing = text.isnull() | text.isin((*sorted(csv.MISSING), "nat"))
    begin = ibis.literal("2024-01-31t00:00:00.000000")
    whole = text + begin.substr(text.length(), 26)
    return ibis.ifelse(plain, whole, ibis.null("string")), ~plain & ~aware & ~missing, aware


def parts(whole: Any) -> dict[str, Any]:
    """Numbers that a moment's text is made of, NULL for none."""
    return {name: whole.substr(*place).cast("int64") for name, place in _PLACES.items()}


def is_moment(rows: Any) -> Any:
    """Whether the parts of a moment are on a calendar and on a clock."""
    import ibis

    year, month = rows.year, rows.month
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    february = ibis.ifelse(leap, 29, 28)
    days = ibis.ifelse(month.isin((4, 6, 9, 11)), 30, 31)
    date = (year >= 1) & month.between(1, 12) & (rows.day >= 1)
    date &= rows.day <= ibis.ifelse(month == 2, february, days)
    return date & (rows.hour < 24) & (rows.minute < 60) & (rows.second < 60)


def days_of(rows: Any) -> Any:
    """Days since 1970 in the calendar of Gregory; a year begins in March here."""
    import ibis

    year = rows.year - ibis.ifelse(rows.month <= 2, 1, 0)
    of_year = ((rows.month + 9) % 12 * 153 + 2) // 5 + rows.day - 1
    days = year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return days.cast("int64")


def micros_of(rows: Any) -> Any:
    """Microseconds since 1970."""
    seconds = rows.hour * 3600 + rows.minute * 60 + rows.second
    return (rows.days * _DAY_SECONDS + seconds) * 1_000_000 + rows.micro


def _ranges(points: Any) -> str:
    """Inside of a character class."""
    return "".join(
        rf"\x{{{low:x}}}" if low == high else rf"\x{{{low:x}}}-\x{{{high:x}}}"
        for low, high in points
    )
