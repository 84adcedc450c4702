"""The filter of records as an expression of Ibis. Private side.

It decides about each record as `psd.ingest.selection` does. Literals are values of the tree, which
Ibis quotes; columns have names of this package. AND, OR and NOT of SQL have its third value. Times
in text that have an offset cannot be decided here, since engines have rules of their own for zones.
"""

from __future__ import annotations

import operator
from functools import reduce
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.wall_clock import WHITE_SPACE, readable_times
from psd.apps.spark.parse import (
    count_days,
    count_microseconds,
    is_infinite,
    is_true,
    is_valid_moment,
    literal_double,
    parse_moment,
    parse_number,
    split_moment,
    strip_characters,
    with_point,
)
from psd.ingest.points import SPACES
from psd.ingest.selection import LARGEST_WHOLE, SIGNS
from psd.ingest.where import Always, Either, Membership, Missing, Negation, Pattern

if TYPE_CHECKING:
    from psd.ingest.columns import Columns
    from psd.ingest.where import Literal, Predicate

__all__ = ["is_selected", "role_of"]


def role_of(number: int) -> str:
    """Name of the column of a table that has the values of a column of the filter."""
    return f"filtered_{number}"


def is_selected(table: Any, columns: Columns) -> Any:
    """Whether the filter of the columns is true for each record, and not NULL.

    Parameters
    ----------
    table : ibis.Table
        With a column `role_of` of each column that the filter reads.
    columns : Columns
        With a filter. Public.
    """
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
        return SIGNS[sign](_flag(value, columns), ibis.literal(bool(literal.value)))
    if literal.kind == "time" or is_time:
        moment = readable_times([literal.value], columns.time_zone)[0]
        if np.isnat(moment) or not (is_time or value.type().is_string()):
            return ibis.null("boolean")
        number = moment.astype("datetime64[us]").astype(np.int64).item()
        return SIGNS[sign](_moment(value, columns), ibis.literal(number, "int64"))
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


def _moment(value: Any, columns: Columns) -> Any:
    """Microseconds of local time, NULL where a value is no time, or has an offset."""
    import ibis

    text = strip_characters(value.cast("string"), WHITE_SPACE).lower()
    parts = SimpleNamespace(**split_moment(parse_moment(text)[0]))
    parts.days = count_days(parts)
    is_valid = is_true(is_valid_moment(parts, columns.time_zone))
    return ibis.ifelse(is_valid, count_microseconds(parts), ibis.null("int64"))


def _flag(value: Any, columns: Columns) -> Any:
    """True or false, else NULL."""
    import ibis

    number = _number(value, columns)
    cases = [
        (is_true(number == 1), ibis.literal(True)),
        (is_true(number == 0), ibis.literal(False)),
    ]
    if value.type().is_string():
        word = value.lower()
        cases += [(is_true(word == "true"), ibis.literal(True))]
        cases += [(is_true(word == "false"), ibis.literal(False))]
    return ibis.cases(*cases, else_=ibis.null("boolean"))


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
