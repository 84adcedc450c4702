"""Text, numbers and filters as expressions of Ibis, read as in this process. Private side.

Regular expressions use only syntax that RE2, Java and Rust interpret alike. Numbers in a query are
text, since engines round decimal literals differently. Times are integers from digits; those with
an offset cannot be decided, since engines have rules of their own for zones. Filters decide as in
`psd.ingest.selection`, by SQL's third value; Ibis quotes literals, and no name is of the input.
"""

from __future__ import annotations

import operator
import sys
from functools import reduce
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.wall_clock import NAMED_ZONE, OFFSET, WHITE_SPACE, leap_minutes, readable_times
from psd.ingest import user_ids
from psd.ingest.points import DECIMAL, MISSING, SPACES, empty_pattern, point_pattern
from psd.ingest.selection import LARGEST_WHOLE, SIGNS
from psd.ingest.where import Always, Either, Membership, Missing, Negation, Pattern

if TYPE_CHECKING:
    from psd.ingest.columns import Columns
    from psd.ingest.where import Literal, Predicate


_DAY_MINUTES = 1_440

# Characters that never compose, so that any text of them is in NFC: Latin, Cyrillic, kana, Chinese
# characters, Hangul syllables.
COMPOSED = (
    (0x01, 0x2FF), (0x400, 0x482), (0x48A, 0x52F), (0x3041, 0x3096), (0x30A1, 0x30FA),
    (0x30FC, 0x30FE), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
)  # fmt: skip

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[t ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
_POSITIONS = {
    "year": (0, 4), "month": (5, 2), "day": (8, 2),
    "hour": (11, 2), "minute": (14, 2), "second": (17, 2), "micro": (20, 6),
}  # fmt: skip


def literal_double(value: float) -> Any:
    """Write a literal that every engine reads as the same double."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def as_integer(condition: Any) -> Any:
    """Return 1 if a condition is true, 0 if it is false or NULL."""
    import ibis

    return ibis.ifelse(condition.fill_null(False), ibis.literal(1, "int64"), 0)


def is_true(condition: Any) -> Any:
    """Whether a condition is true and not NULL."""
    return condition.fill_null(False)


def strip_characters(column: Any, characters: str) -> Any:
    """Strip characters from both ends of text; other columns stay as they are."""
    if not column.type().is_string():
        return column
    members = _ranges((ord(character), ord(character)) for character in characters)
    return column.re_replace(rf"\A[{members}]+|[{members}]+\z", "")


def is_infinite(value: Any) -> Any:
    """Whether a number is infinite; engines disagree on their functions for this."""
    return is_true(value.abs() > literal_double(sys.float_info.max))


def with_point(column: Any) -> Any:
    """Write a decimal comma as a point; a text with a point becomes one that is not a number."""
    import ibis

    if not column.type().is_string():
        return column
    return ibis.ifelse(is_true(column.contains(".")), ibis.literal(","), column.replace(",", "."))


def point_part(column: Any, group: int, srid: int | None) -> Any:
    """Text of a coordinate of a point in WKT or EWKT; a word for a text that is none."""
    import ibis

    point, empty = point_pattern(srid), empty_pattern(srid)
    return ibis.cases(
        (is_true(column.re_search(rf"\A(?:{point})\z")), column.re_extract(point, group)),
        (is_true(column.re_search(rf"\A(?:{empty})\z")), ibis.literal("")),
        # A text with a digit could be a number, so a word takes its place.
        (is_true(column.re_search("[0-9]")), ibis.literal("POINT")),
        else_=column,
    )


def parse_number(column: Any) -> Any:
    """Parse a coordinate, NULL if missing."""
    import ibis

    value, plain = column.try_cast("float64"), ~is_true(column.cast("float64").isnan())
    if column.type().is_string():  # engines cast words that are no numbers in this process
        plain = is_true(column.re_search(rf"\A(?:{DECIMAL})\z"))
    else:
        value = column.cast("float64")
    return ibis.ifelse(plain, value, ibis.null("float64"))


def is_bad(column: Any, value: Any) -> Any:
    """Whether a field is neither a finite number nor a usual mark of a missing one."""
    if not column.type().is_string():
        return is_infinite(value)
    text = column.notnull() & ~column.lower().isin(sorted(MISSING))
    return is_true(text & (value.isnull() | is_infinite(value)))


def parse_id(text: Any) -> tuple[Any, Any]:
    """Parse an id as `psd.ingest.user_ids` does, NULL if missing; and whether it is refused."""
    import ibis

    missing = text.lower().isin(user_ids.MISSING)
    # Engines do not compose letters and accents, so ids that this could change are refused.
    strange = ~text.re_search(rf"\A[{_ranges(COMPOSED)}]*\z")
    return ibis.ifelse(is_true(missing), ibis.null("string"), text), is_true(strange)


def parse_moment(text: Any) -> tuple[Any, Any, Any]:
    """Parse a time to 2024-01-31t10:00:00.000000 or NULL; whether it is bad, or has an offset."""
    import ibis

    plain = is_true(text.re_search(rf"\A{_DATE}({_CLOCK})?\z"))
    aware = is_true(text.re_search(rf"\A{_DATE}{_CLOCK} ?(?:{OFFSET}){NAMED_ZONE}\z"))
    missing = text.isnull() | text.isin((*sorted(MISSING), "nat"))
    begin = ibis.literal("2024-01-31t00:00:00.000000")
    complete = text + begin.substr(text.length(), 26)
    return ibis.ifelse(plain, complete, ibis.null("string")), ~plain & ~aware & ~missing, aware


def split_moment(text: Any) -> dict[str, Any]:
    """Parse the numbers in the text of a time, NULL for NULL."""
    return {name: text.substr(*position).cast("int64") for name, position in _POSITIONS.items()}


def is_valid_moment(rows: Any, zone: str) -> Any:
    """Whether the numbers of a time are a valid date and time of day in a zone."""
    import ibis

    year, month = rows.year, rows.month
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    february = ibis.ifelse(leap, 29, 28)
    days = ibis.ifelse(month.isin((4, 6, 9, 11)), 30, 31)
    date = (year >= 1) & month.between(1, 12) & (rows.day >= 1)
    date &= rows.day <= ibis.ifelse(month == 2, february, days)
    is_leap = (rows.second == 60) & (rows.hour * 60 + rows.minute).isin(leap_minutes(zone))
    is_clock = (rows.hour < 24) & (rows.minute < 60) & ((rows.second < 60) | is_leap)
    is_end = (rows.hour == 24) & (rows.minute + rows.second + rows.micro == 0)
    is_end &= (year < 9999) | (month < 12) | (rows.day < 31)
    return date & (is_clock | is_end)


def count_days(rows: Any) -> Any:
    """Count Gregorian days since 1970, with years from March; 24:00 is in the next day."""
    import ibis

    year = rows.year - ibis.ifelse(rows.month <= 2, 1, 0)
    of_year = ((rows.month + 9) % 12 * 153 + 2) // 5 + rows.day - 1
    days = year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468 + rows.hour // 24
    return days.cast("int64")


def count_microseconds(rows: Any) -> Any:
    """Count microseconds since 1970; a leap second is the last microsecond of its minute."""
    import ibis

    minutes = rows.days * _DAY_MINUTES + rows.hour % 24 * 60 + rows.minute
    is_leap = rows.second == 60
    return minutes * 60_000_000 + ibis.ifelse(
        is_leap, 59_999_999, rows.second * 1_000_000 + rows.micro
    )


def _ranges(points: Any) -> str:
    """Content of a character class of a regular expression."""
    return "".join(
        rf"\x{{{low:x}}}" if low == high else rf"\x{{{low:x}}}-\x{{{high:x}}}"
        for low, high in points
    )


def role_of(number: int) -> str:
    """Name of the column of a table that has the values of a column of the filter."""
    return f"filtered_{number}"


def is_selected(table: Any, columns: Columns) -> Any:
    """Whether the filter of the columns, each its `role_of`, is true for a record, and not NULL."""
    assert columns.filter is not None
    fields = {name: table[role_of(number)] for number, name in enumerate(columns.filtered)}
    return is_true(_expression(columns.filter, fields, columns))


def _expression(predicate: Predicate, fields: dict[str, Any], columns: Columns) -> Any:
    """Expression of a filter; NULL where it cannot be decided."""
    if isinstance(predicate, Negation):
        return ~_expression(predicate.part, fields, columns)
    if isinstance(predicate, Always | Either):
        parts = [_expression(part, fields, columns) for part in predicate.parts]
        return reduce(operator.and_ if isinstance(predicate, Always) else operator.or_, parts)
    value = fields[predicate.column]
    if value.type().is_string():
        value = strip_characters(value, SPACES).nullif("")
    if isinstance(predicate, Missing):
        missing = value.isnull()
        return missing | is_true(value.isnan()) if value.type().is_floating() else missing
    if isinstance(predicate, Pattern):
        return _text(value).like(predicate.pattern)
    if isinstance(predicate, Membership):
        parts = [_compare(value, "=", literal, columns) for literal in predicate.literals]
        return reduce(operator.or_, parts)
    return _compare(value, predicate.sign, predicate.literal, columns)


def _compare(value: Any, sign: str, literal: Literal, columns: Columns) -> Any:
    """Expression of a comparison."""
    import ibis

    is_time = value.type().is_timestamp() or value.type().is_date()
    if literal.kind == "number":
        return SIGNS[sign](_number(value, columns), literal_double(float(literal.value)))
    if literal.kind == "flag":
        number = _number(value, columns)
        cases = [
            (is_true(number == 1), ibis.literal(True)),
            (is_true(number == 0), ibis.literal(False)),
        ]
        if value.type().is_string():
            word = value.lower()
            cases += [(is_true(word == "true"), ibis.literal(True))]
            cases += [(is_true(word == "false"), ibis.literal(False))]
        flag = ibis.cases(*cases, else_=ibis.null("boolean"))
        return SIGNS[sign](flag, ibis.literal(bool(literal.value)))
    if literal.kind == "time" or is_time:
        moment = readable_times([literal.value], columns.time_zone)[0]
        if np.isnat(moment) or not (is_time or value.type().is_string()):
            return ibis.null("boolean")
        number = moment.astype("datetime64[us]").astype(np.int64).item()
        # Microseconds of local time, NULL where a value is no time, or has an offset.
        text = strip_characters(value.cast("string"), WHITE_SPACE).lower()
        parts = SimpleNamespace(**split_moment(parse_moment(text)[0]))
        parts.days = count_days(parts)
        is_valid = is_true(is_valid_moment(parts, columns.time_zone))
        since = ibis.ifelse(is_valid, count_microseconds(parts), ibis.null("int64"))
        return SIGNS[sign](since, ibis.literal(number, "int64"))
    return SIGNS[sign](_text(value), ibis.literal(str(literal.value)))


def _number(value: Any, columns: Columns) -> Any:
    """Finite double, else NULL."""
    import ibis

    kind = value.type()
    if kind.is_boolean():
        cases = [(is_true(value), literal_double(1)), (is_true(~value), literal_double(0))]
        return ibis.cases(*cases, else_=ibis.null("float64"))
    if not (kind.is_string() or kind.is_integer() or kind.is_floating()):
        return ibis.null("float64")
    text = with_point(value) if columns.decimal == "," else value
    number = parse_number(text)
    return ibis.ifelse(is_infinite(number), ibis.null("float64"), number)


def _text(value: Any) -> Any:
    """Text of a value, NULL if it has no one text."""
    import ibis

    kind = value.type()
    if kind.is_string():
        return value
    if kind.is_integer():
        return value.cast("string")
    if not kind.is_floating():
        return ibis.null("string")
    is_small = is_true(value.abs() < literal_double(LARGEST_WHOLE))
    safe = ibis.ifelse(is_small, value, literal_double(0))  # casts of large ones fail
    is_whole = is_small & (safe == safe.floor())
    return ibis.ifelse(is_whole, safe.cast("int64").cast("string"), ibis.null("string"))
