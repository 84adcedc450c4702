"""Which records a filter selects: the decision about each by its own values. Private side.

The literal decides what is compared, not the type of the column:
- A number compares, as doubles, with numbers and with text that is a plain decimal number.
- A text in single quotes compares with text, character by character, without white space around it;
  a whole number compares by its digits, and a time with a text that is a time.
- ``DATE`` and ``TIMESTAMP`` compare with times, and with text in ISO 8601, on the wall clock of the
  time zone of the columns; ``TRUE`` and ``FALSE`` with these, 1 and 0, and the words.

No other pair can be decided, nor a missing value: NULL, NaN, or an empty text. AND, OR and NOT are
those of SQL with its third value. A record is selected if the filter is true for it, and else left
out; a filter refuses none.

Proof that selecting records one by one keeps every guarantee of what is computed afterwards. Let F
map a set of records to those that the filter selects.

1. Whether a record r is selected is a function f(r) of the public filter, the public options of the
   columns, and the values of r alone: each leaf reads one column, element by element, and AND, OR
   and NOT combine the results of one record. Values do not depend on other records either: fields
   of CSV are text, cells of workbooks and other tables have types of their own. GDAL alone finds
   the type of a property of GeoJSON by all features; so its values are compared in a form that is
   the same whatever type was found (`Rules.is_json`).
2. Hence F(D) = {r in D : f(r)}, and F(D) and F(D') differ for neighbours only where these differ.
   If D' has one record more, F(D') has at most one more. If D' has all records of one user more, or
   of one day or slice of a user, F(D') has at most records of the same user, day or slice more: f
   changes no id and no time. So F maps neighbours to neighbours or equal sets: it is 1-stable.
3. Bounding, counting and noise get F(D) and nothing else of D. A mechanism M that is private for
   neighbours is private for F(D) and F(D'), so M(F(.)) has the loss of M. The k kept records of a
   user are chosen among the user's records in F(D); a choice before the filter would have the same
   loss, and count fewer records.
4. What is refused does not depend on the filter: the form of all records is checked, selected or
   not, and no value refuses one. So a build with a filter is refused if and only if it is refused
   without, except for columns that the input does not have, and for text of CSV in them that is not
   in UTF-8. With a ledger that shows one bit, as the form of any other column.
5. Two builds with different filters, even with filters that no record fulfils together, are not
   disjoint: the values of a record may differ between readings. So losses of builds with a filter
   always add up: their charges count everywhere and always (`psd.publish.charging`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import readable_times
from psd.errors import InputDataError
from psd.ingest.points import DECIMAL, MISSING, SPACES
from psd.ingest.where import (
    Always,
    Comparison,
    Either,
    Literal,
    Membership,
    Missing,
    Negation,
    Pattern,
    Predicate,
    columns_of,
)

if TYPE_CHECKING:
    import pandas

    from psd.ingest.columns import Columns

__all__ = ["LARGEST_WHOLE", "SIGNS"]

LARGEST_WHOLE: Final = 2**53
"""Doubles below it have all their digits."""

SIGNS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
"""What the signs of comparisons mean."""

_Masks: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""For which records a filter is true, and for which it is false. Private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Public options by which values are read."""

    time_zone: str = "UTC"  # to whose wall clock times are converted
    decimal: str = "."  # decimal sign of numbers in text
    # Whether the values are properties of GeoJSON. The type of a property is found by all features,
    # so numbers, TRUE and FALSE compare as text in one form, whatever the type is: the digits of a
    # whole number below 2^53, and 1 or 0.
    is_json: bool = False


def select(
    predicate: Predicate, fields: Mapping[str, Any], rules: Rules | None = None
) -> NDArray[np.bool_]:
    """Whether each record of a batch is selected.

    fields: Arrow array, pandas Series or list of objects of each column, by name, private; all else
    public; returns (n,) bool, private.

    P1. The result of a record is a function of its own values; see the proof of this module.

    P2. No value stops it.
    """
    rules = Rules() if rules is None else rules
    columns = {
        name: [(index, Values(array, rules)) for index, array in typed_parts(fields[name])]
        for name in columns_of(predicate)
    }
    return _decide(predicate, columns)[0]


def matches(
    columns: Columns, fields: Mapping[str, Any], *, is_json: bool = False
) -> NDArray[np.bool_] | None:
    """Whether the filter, with names as in the input, selects each record: (n,) bool, or None."""
    if columns.filter is None:
        return None
    rules = Rules(time_zone=columns.time_zone, decimal=columns.decimal, is_json=is_json)
    return select(columns.filter, fields, rules)


def _decide(predicate: Predicate, columns: Mapping[str, list[Any]]) -> _Masks:
    """Where a filter is true, and where it is false; neither where it cannot be decided."""
    if isinstance(predicate, Negation):
        # What cannot be decided stays so under NOT.
        true, false = _decide(predicate.part, columns)
        return false, true
    if isinstance(predicate, Always | Either):
        masks = [_decide(part, columns) for part in predicate.parts]
        return _all(masks) if isinstance(predicate, Always) else _any(masks)
    parts = columns[predicate.column]
    size = sum(len(index) for index, _ in parts)
    true, false = np.zeros(size, bool), np.zeros(size, bool)
    # Values of different types in one column are decided type by type.
    for index, values in parts:
        true[index], false[index] = _decide_leaf(predicate, values)
    return true, false


def _all(masks: list[_Masks]) -> _Masks:
    """AND: true where all are, and false where any is."""
    true, false = zip(*masks, strict=True)
    return reduce(operator.and_, true), reduce(operator.or_, false)


def _any(masks: list[_Masks]) -> _Masks:
    """OR: true where any is, and false where all are."""
    false, true = _all([(no, yes) for yes, no in masks])
    return true, false


def _decide_leaf(leaf: Comparison | Membership | Pattern | Missing, values: Values) -> _Masks:
    """Masks of one comparison on values of one type."""
    import pyarrow.compute as pc

    if isinstance(leaf, Missing):
        missing = values.missing()
        return missing, ~missing
    if isinstance(leaf, Pattern):
        texts = values.texts
        known = texts.is_valid().to_numpy(zero_copy_only=False)
        found = _bools(pc.match_like(texts, leaf.pattern))
        return known & found, known & ~found
    if isinstance(leaf, Membership):
        return _any([values.compare("=", literal) for literal in leaf.literals])
    return values.compare(leaf.sign, leaf.literal)


# A number of JSON, as GDAL writes it where a property is text in another feature.
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Values:
    """Values of one column and one type, as each kind of literal sees them."""

    array: Any
    rules: Rules

    def compare(self, sign: str, literal: Literal) -> _Masks:
        """Masks of a comparison."""
        found = self._against(literal)
        if found is None:
            return np.zeros(len(self.array), bool), np.zeros(len(self.array), bool)
        values, known, value = found
        # A comparison with NaN is false, and its record is not known anyway.
        with np.errstate(invalid="ignore"):
            holds = np.asarray(SIGNS[sign](values, value), bool)
        return known & holds, known & ~holds

    def _against(self, literal: Literal) -> tuple[Any, NDArray[np.bool_], Any] | None:
        """Values, which of them are known, and the value they compare with; None if none do."""
        kind = _kind_of(self.array)
        if literal.kind == "number":
            numbers = self.numbers
            return numbers, ~np.isnan(numbers), literal.value
        if literal.kind == "flag":
            flags = self.flags
            return flags, flags >= 0, int(literal.value)
        if literal.kind == "time" or kind == "time":
            moment = readable_times([literal.value], self.rules.time_zone)[0]
            if np.isnat(moment):
                return None
            times = self.times
            return times, ~np.isnat(times), moment
        text = str(literal.value)
        if self.rules.is_json:
            text = _json_text(text) or text
        texts = self.texts
        known = texts.is_valid().to_numpy(zero_copy_only=False)
        # Order of Python's text is by code points, that of all engines.
        return texts.fill_null("").to_numpy(zero_copy_only=False), known, text

    def missing(self) -> NDArray[np.bool_]:
        """Whether each value is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing: NDArray[np.bool_] = ~self.array.is_valid().to_numpy(zero_copy_only=False)
        kind = _kind_of(self.array)
        if kind == "text":
            texts = pc.utf8_trim(self.array, characters=SPACES)
            missing |= _bools(pc.equal(texts, ""))
            if self.rules.is_json:
                missing |= _bools(pc.equal(pc.utf8_lower(texts), "nan"))
        if kind == "float":
            missing |= _bools(pc.is_nan(self.array.cast(pa.float64(), safe=False)))
        return missing

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Doubles; NaN where a value is no finite number."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind, array = _kind_of(self.array), self.array
        if kind == "text":
            texts = pc.utf8_trim(array, characters=SPACES)
            if self.rules.decimal == ",":
                has_point = pc.match_substring(texts, ".")
                texts = pc.if_else(has_point, None, pc.replace_substring(texts, ",", "."))
            is_number = pc.match_substring_regex(texts, rf"\A(?:{DECIMAL})\z")
            found = pc.if_else(is_number, texts, None).to_pylist()
            values = np.array([np.nan if t is None else float(t) for t in found], np.float64)
            if self.rules.is_json:  # a flag is 1 or 0 where other features have numbers
                flags = self._words()
                values = np.where(flags >= 0, flags, values)
        elif kind in ("flag", "integer", "float"):
            array = array.cast(pa.int8()) if kind == "flag" else array
            array = array.cast(pa.float64(), safe=False)
            values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            return np.full(len(array), np.nan)
        return np.where(np.isfinite(values), values, np.nan)

    def _words(self) -> NDArray[np.int8]:
        """1 for the word true, 0 for false, -1 for other text."""
        import pyarrow.compute as pc

        words = pc.utf8_lower(pc.utf8_trim(self.array, characters=SPACES))
        true, false = (_bools(pc.equal(words, word)) for word in ("true", "false"))
        return np.where(true, 1, np.where(false, 0, -1)).astype(np.int8)

    @cached_property
    def flags(self) -> NDArray[np.int8]:
        """1 for true, 0 for false, -1 where a value is neither."""
        numbers = self.numbers
        flags = np.where(numbers == 1, 1, np.where(numbers == 0, 0, -1)).astype(np.int8)
        is_text = _kind_of(self.array) == "text"
        return np.where(flags < 0, self._words(), flags) if is_text else flags

    @cached_property
    def texts(self) -> Any:
        """Arrow texts without white space around them; null where a value has no one text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = _kind_of(self.array)
        if kind == "text":
            texts = pc.utf8_trim(self.array.cast(pa.large_string()), characters=SPACES)
            if self.rules.is_json:
                return pa.array([_json_text(t) for t in texts.to_pylist()], pa.large_string())
            return pc.if_else(pc.equal(texts, ""), None, texts)
        if kind == "integer" and not self.rules.is_json:
            return self.array.cast(pa.large_string())
        if kind in ("integer", "float") or (kind == "flag" and self.rules.is_json):
            return pa.array(map(_whole_text, self.numbers), pa.large_string())
        return pa.nulls(len(self.array), pa.large_string())

    @cached_property
    def times(self) -> NDArray[np.datetime64]:
        """Local times; NaT where a value is no time."""
        import pyarrow as pa

        kind, array = _kind_of(self.array), self.array
        if kind == "text":
            array = array.cast(pa.string())
        elif kind != "time":
            return np.full(len(array), np.datetime64("NaT", "us"))
        return readable_times(array, self.rules.time_zone)


def _bools(mask: Any) -> NDArray[np.bool_]:
    """Mask of Arrow as one of NumPy; null is false."""
    values: NDArray[np.bool_] = mask.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return values


def _whole_text(number: float) -> str | None:
    """Digits of a whole number that has all of them; None for other numbers."""
    is_whole = abs(number) < LARGEST_WHOLE and number == int(number)
    return str(int(number)) if is_whole else None


def _json_text(text: str | None) -> str | None:
    """Text of a property of GeoJSON in the form that does not depend on its type; see `Rules`."""
    text = "" if text is None else text.strip(SPACES)
    if text == "" or text[0] in "[{" or text.lower().lstrip("-") in ("nan", "inf", "infinity"):
        return None
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    return _whole_text(float(text)) if _JSON_NUMBER.fullmatch(text) else text


def _kind_of(array: Any) -> str:
    """Kind of the values of an Arrow array, as `Values` treats them."""
    import pyarrow as pa

    kind, types = array.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_boolean(kind):
        return "flag"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "float"
    return "time" if types.is_timestamp(kind) or types.is_date(kind) else "other"


def typed_parts(values: Any) -> list[tuple[NDArray[np.int64], Any]]:
    """Positions and Arrow arrays of values of one type; objects are typed one by one."""
    import pyarrow as pa

    if hasattr(values, "iloc"):
        values = _array_of_series(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if getattr(getattr(values, "type", None), "extension_name", "") == "pandas.period":
        values = values.to_pandas().tolist()  # its storage has numbers of periods
    if isinstance(values, pa.Array):
        values = _decoded(values)
        return [(np.arange(len(values)), _sound(values))]
    groups: dict[Any, list[int]] = {}
    for position, value in enumerate(values):
        groups.setdefault(_type_of(value), []).append(position)
    return [
        (np.array(positions, np.int64), _array_of([values[i] for i in positions], kind))
        for kind, positions in groups.items()
    ]


def _decoded(array: Any) -> Any:
    """Array without extension types, runs and dictionaries, in whatever order they are nested."""
    import pyarrow as pa

    if isinstance(array.type, pa.BaseExtensionType):
        return _decoded(array.storage)
    if pa.types.is_run_end_encoded(array.type):  # Arrow decodes no runs of dictionaries
        places = array.offset + np.arange(len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), places, side="right")
        return _decoded(array.values).take(pa.array(runs))
    if pa.types.is_dictionary(array.type):
        return _decoded(array.dictionary).take(array.indices)
    return array


def _sound(array: Any) -> Any:
    """Text that can be read; text that is not in UTF-8 is no text, and no value of its own."""
    import pyarrow as pa

    if _kind_of(array) != "text":
        return array
    try:
        array.validate(full=True)
        return array.cast(pa.large_string())
    except pa.ArrowException:
        pass
    values = array.cast(pa.large_binary()).to_pylist()
    known = [None if value is None else value.decode(errors="replace") for value in values]
    return pa.array(known, pa.large_string())


def _array_of_series(series: pandas.Series) -> Any:
    """Arrow array of a column of pandas; a list of objects if it has them."""
    import pandas as pd
    import pyarrow as pa

    if hasattr(series, "cat"):
        series = series.astype(object)  # whole numbers have no missing one
    if isinstance(series.dtype, pd.PeriodDtype):
        return series.tolist()  # Arrow would have their numbers
    if series.dtype != object:
        try:
            return pa.Array.from_pandas(series)
        except pa.ArrowException:  # sparse, complex and long numbers
            return series.tolist()
    if pd.api.types.infer_dtype(series, skipna=True) != "string":
        return series.tolist()
    try:
        return pa.array(series, pa.large_string(), from_pandas=True)
    except (UnicodeError, pa.ArrowException):
        return series.tolist()


_TYPES: Final = (
    (bool, bool | np.bool_),
    (int, int | np.integer),
    (float, float | np.floating | Decimal),
    (str, str),
    (datetime, datetime | np.datetime64),
    (date, date),
)
_LARGEST_INTEGER = 10**4000  # Python writes no longer ones


def _type_of(value: Any) -> type | None:
    """Type by which an object of Python is compared; None if it is missing."""
    import pandas as pd

    if value is None or value is pd.NA or value is pd.NaT:
        return None
    is_number = isinstance(value, float | np.floating)
    if value.is_nan() if isinstance(value, Decimal) else is_number and np.isnan(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return tzinfo
    if isinstance(value, np.timedelta64):  # which NumPy counts among integers
        return None if np.isnat(value) else object
    return next((kind for kind, types in _TYPES if isinstance(value, types)), object)


def _array_of(values: list[Any], kind: type | None) -> Any:
    """Arrow array of objects of one type; those of other types have no value to compare."""
    import pyarrow as pa

    if kind is None:
        return pa.nulls(len(values))
    if kind is bool:
        return pa.array([bool(value) for value in values])
    if kind is int:  # integers of Python have no limit, and their digits are those of text
        whole = map(int, values)
        return pa.array([str(v) if abs(v) < _LARGEST_INTEGER else "-" for v in whole], pa.string())
    if kind is float:
        return pa.array([float(value) for value in values])
    if kind is str:
        return pa.array([v.encode(errors="replace").decode() for v in values], pa.large_string())
    if kind is date:
        return pa.array(values, pa.date32())
    if kind in (datetime, tzinfo):
        moments = np.array([_moment(value) for value in values], "datetime64[us]")
        return pa.array(moments, pa.timestamp("us", "UTC" if kind is tzinfo else None))
    return pa.array([b"-"] * len(values), pa.binary())


def _moment(value: datetime | np.datetime64) -> Any:
    """Microseconds of a time, in UTC if it has an offset; NaT beyond the years of a datetime."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]")
    try:
        value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return np.datetime64("NaT", "us")
    return np.datetime64(value, "us")


def selected_values(
    columns: Columns, fields: Mapping[str, Any], *, is_json: bool = False
) -> dict[str, Any]:
    """Whether each record of a batch is selected, its label and its values, as fields of a `Batch`.

    fields: private, Arrow array, Series or list of each column; values of (n, V), or None.
    """
    match = matches(columns, fields, is_json=is_json)
    rules = Rules(time_zone=columns.time_zone, decimal=columns.decimal, is_json=is_json)
    label = None
    if columns.category is not None:
        label = _labels(fields[columns.category], columns.category, rules)
    if not columns.values:
        return {"match": match, "label": label, "values": None}
    read = [_numbers(fields[name], name, rules, columns) for name in columns.values]
    values = np.stack(read, axis=1)
    # A record without one of its values counts nowhere, so all answers are of the same records.
    has_all = ~np.isnan(values).any(axis=1)
    both = has_all if match is None else match & has_all
    return {"match": both, "label": label, "values": values}


# What stands in a text for bytes that are none.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def _labels(column: Any, name: str, rules: Rules) -> Any:
    """Labels of a column as Arrow text, null where one is missing; other values are refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, places, is_read = [pa.nulls(0, pa.large_string())], [np.empty(0, np.int64)], True
    try:
        for index, array in typed_parts(column):
            values = Values(array, rules)
            known = values.texts.is_valid().to_numpy(zero_copy_only=False)
            is_read &= bool((known | values.missing()).all())
            is_read &= not _bools(pc.match_substring(values.texts, _REPLACED)).any()
            texts.append(values.texts)
            places.append(index)
    except pa.ArrowException:  # of a type that Arrow does not convert, such as a union
        is_read = False
    if not is_read:
        raise InputDataError(
            f"column {name!r} must hold labels, which are text or whole numbers; leave unknown "
            "ones empty"
        )
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(places))))


def _numbers(column: Any, name: str, rules: Rules, columns: Columns) -> NDArray[np.float64]:
    """Numbers of a column, NaN where one is missing; a value that is no number is refused."""
    import pyarrow as pa

    try:
        parts = typed_parts(column)
        numbers = np.full(sum(len(index) for index, _ in parts), np.nan)
        is_read = True
        for index, array in parts:
            values = Values(array, rules)
            numbers[index] = values.numbers
            odd = np.isnan(values.numbers) & ~values.missing()
            is_read &= not odd.any() or _are_marks(array, odd)
    except pa.ArrowException:  # of a type that Arrow does not convert, such as a union
        is_read = False
    if not is_read:
        sign = "," if columns.decimal == "," else "."
        raise InputDataError(
            f"column {name!r} must hold finite numbers such as 12{sign}5, without units; leave "
            "unknown values empty, and state decimal commas by decimal="
        )
    return numbers


def _are_marks(array: Any, odd: NDArray[np.bool_]) -> bool:
    """Whether all of some values are the usual marks of a missing number, such as NA."""
    import pyarrow as pa

    if not pa.types.is_large_string(array.type):  # text has this type, see `typed_parts`
        return False
    texts = array.filter(pa.array(odd)).unique().to_pylist()
    return all(text.strip(SPACES).lower() in MISSING for text in texts)
