"""Columns of a caller's table in files: what each format holds as it is, and what becomes text.

`_RULES` has a row for each format. A column that it cannot hold becomes text, all of it, from which
values can be read back; what is no text of the format is refused by the name of the column. A
missing value, and NaN, is missing in every format. CSV has text in which no spreadsheet finds a
formula; records and public files are read alike.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import WriteError

if TYPE_CHECKING:
    import pandas

__all__ = ["AUTOMATIC", "DELIMITERS", "csv_text", "guard_text"]


# Whole numbers up to which programs with doubles have all.
_DOUBLE = 2**53 - 1

_UNLIMITED = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What a format holds as it is."""

    kinds: str  # kinds of columns, see `kind_of`
    largest: int = 2**64 - 1  # largest whole number; a column with a larger one becomes text
    infinity: bool = True  # whether numbers may be infinite
    first: str = "0001-01-01"  # first date or time; the last one is in the year 9999
    step: str = "ms"  # smallest step of times
    longest: int = _UNLIMITED  # most characters of a text
    null: bool = True  # whether texts and names may have the character U+0000
    caseless: bool = False  # whether names that differ in the case of letters alone are one
    nameless: bool = True  # whether a name may be empty


_BASIC = "truth integer number text"

_GDAL: dict[str, Any] = {"largest": 2**63 - 1, "null": False, "caseless": True}

_RULES = {
    "parquet": _Rules(kinds=f"{_BASIC} bytes date time zoned clock duration decimal list geometry"),
    "gpkg": _Rules(kinds=f"{_BASIC} bytes date time zoned", **_GDAL),
    "fgb": _Rules(kinds=f"{_BASIC} bytes time zoned", **_GDAL),
    # Tiles, and GeoJSON of cells and regions.
    "pmtiles": _Rules(kinds=_BASIC, **_GDAL | {"largest": _DOUBLE}, infinity=False, nameless=False),
    "json": _Rules(kinds=f"{_BASIC} list json mixed", largest=_DOUBLE, infinity=False),
    "xlsx": _Rules(
        kinds=f"{_BASIC} date time clock mixed",
        largest=10**15 - 1,  # programs keep 15 digits
        infinity=False,
        first="1900-03-01",  # programs count earlier days differently
        step="s",
        longest=32_767,
    ),
    "csv": _Rules(kinds=_BASIC),
}


def _rules(form: str) -> _Rules:
    """Row of a format; answers as GeoJSON are as JSON, and all other formats as CSV."""
    return _RULES.get("json" if form == "geojson" else form, _RULES["csv"])


def lossless_type(arrow: Any) -> Any:
    """Type of pandas for one of Arrow whose values the default would change; else None."""
    import pandas as pd
    import pyarrow as pa

    types = pa.types
    if types.is_boolean(arrow):
        return pd.BooleanDtype()
    if types.is_integer(arrow):
        return pd.api.types.pandas_dtype(str(arrow).replace("int", "Int").replace("u", "U"))
    kept = [types.is_date, types.is_time, types.is_decimal, types.is_nested]
    kept += [types.is_binary, types.is_large_binary, types.is_fixed_size_binary]
    return pd.ArrowDtype(arrow) if any(test(arrow) for test in kept) else None


def kind_of(column: Any) -> str:
    """Kind of a column, by its type or, of objects, by its values."""
    return _kind(_simplified(column))


def check_columns(table: Any, form: str, others: Iterable[str] = ()) -> None:
    """Refuse columns, names and texts that a format cannot hold, beside others, before any work."""
    rules = _rules(form)
    seen: dict[str, str] = {}
    for name in (*map(str, table.columns), *(name for name in others if name not in table)):
        key = name.lower() if rules.caseless else name
        if key in seen:
            rule = (
                "be different" if name == seen[key] else "differ in more than the case of letters"
            )
            raise WriteError(
                f"names of columns must {rule} in {form}, got {seen[key][:40]!r} and "
                f"{name[:40]!r}; rename one" + _ELSEWHERE * (name != seen[key])
            )
        seen[key] = name
        if not name and not rules.nameless:
            raise WriteError(f"names of columns must not be empty in {form}; rename it")
        if "\0" in name and not rules.null:
            raise WriteError(
                f"names of columns must be without the character U+0000 in {form}, got "
                f"{name[:40]!r}"
            )
    if rules.null and rules.longest == _UNLIMITED:
        return
    for number, name in enumerate(map(str, table.columns)):
        column = table.iloc[:, number]
        if column.dtype.kind in "biufcmM" or str(column.dtype) == "geometry":
            continue
        texts = [value for value in _held(column, form) if isinstance(value, str)]
        if not rules.null and any("\0" in text for text in texts):
            raise WriteError(
                f"column {name[:40]!r} must have texts without the character U+0000 in {form}, "
                f"where it ends a text; remove it{_ELSEWHERE}"
            )
        if any(len(text) > rules.longest for text in texts):
            raise WriteError(
                f"column {name[:40]!r} must have texts of at most {rules.longest:,} characters in "
                f"{form}, got a longer one; shorten it{_ELSEWHERE}"
            )


_ELSEWHERE = ", or write .parquet or .csv"


def held_columns(table: Any, form: str) -> Any:
    """Table with every column but the geometry as a format holds it; the same rows and index."""
    check_columns(table, form)
    held = table.copy(deep=False)
    active = getattr(table, "_geometry_column_name", None)
    for number, name in enumerate(table.columns):
        if name != active:
            held.isetitem(number, _held(table.iloc[:, number], form).array)
    if active is not None and active in table.columns:
        return held.set_axis(list(map(str, held.columns)), axis=1).set_geometry(str(active))
    return held.set_axis(list(map(str, held.columns)), axis=1)


def plain_values(column: Any) -> list[Any]:
    """Values of Python's own types; None where one is missing, inside lists too."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_nested(column.dtype.pyarrow_dtype):
        return _nested_values(pa.array(column.array))
    return [
        None if missing else value.item() if isinstance(value, np.generic) else value
        for value, missing in zip(column.astype(object), column.isna(), strict=True)
    ]


def _nested_values(arrow: Any) -> list[Any]:
    """Values of an Arrow array, part by part: in lists pandas loses digits and time zones."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    types, kind = pa.types, arrow.type
    rows: list[Any]
    if isinstance(arrow, pa.ChunkedArray):
        return [value for chunk in arrow.chunks for value in _nested_values(chunk)]
    if not types.is_nested(kind):
        column = _simplified(pd.Series(pd.arrays.ArrowExtensionArray(arrow)))
        leaf = _kind(column)
        if leaf == "clock":
            return list(_texts(column, leaf))
        if leaf in ("date", "time", "duration"):  # of any year, so of numpy
            return list(_moments(column, leaf) if leaf == "date" else column.to_numpy())
        return plain_values(column)
    if types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [_nested_values(part) for part in arrow.flatten()]
        rows = [
            {n: part[row] for n, part in zip(names, parts, strict=True)}
            for row in range(len(arrow))
        ]
    elif types.is_map(kind):
        keys, items = _nested_values(arrow.keys), _nested_values(arrow.items)
        pairs = [list(pair) for pair in zip(keys, items, strict=True)]
        rows = [pairs[start:end] for start, end in itertools.pairwise(arrow.offsets.to_pylist())]
    elif types.is_union(kind):
        rows = arrow.to_pylist()
    else:
        values = iter(_nested_values(arrow.flatten()))
        lengths: Any = pc.list_value_length(arrow)
        rows = [list(itertools.islice(values, length or 0)) for length in lengths.to_pylist()]
    missing = arrow.is_null().to_pylist()
    return [None if none else row for row, none in zip(rows, missing, strict=True)]


def json_text(table: Any) -> str:
    """Rows as JSON, one a line: no infinity, and no number that JavaScript would round."""
    held = held_columns(table, "json")
    columns = [plain_values(held.iloc[:, number]) for number in range(held.shape[1])]
    rows = [dict(zip(held.columns, row, strict=True)) for row in zip(*columns, strict=True)]
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def value_texts(column: Any) -> list[str | None]:
    """Values of a column as texts that can be read back; None where one is missing."""
    plain = _simplified(column)
    return _texts(plain, _kind(plain))


def _simplified(column: Any) -> Any:
    """The same values without categories, and with Arrow only where pandas has no such type."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        return _simplified(column.astype(object))
    if not isinstance(column.dtype, pd.ArrowDtype):
        return column
    arrow: Any = pa.array(column.array)
    if isinstance(arrow.type, pa.Bool8Type):
        arrow = arrow.cast(pa.bool_())  # stored as whole numbers
    elif isinstance(arrow.type, pa.BaseExtensionType):
        arrow = arrow.cast(arrow.type.storage_type)
    if pa.types.is_dictionary(arrow.type):
        arrow = arrow.cast(arrow.type.value_type)
    plain = arrow.to_pandas(types_mapper=lossless_type)
    return pd.Series(plain.array, index=column.index, name=column.name)


_DTYPES = {
    "b": "truth", "i": "integer", "u": "integer", "f": "number", "c": "complex", "M": "time",
    "m": "duration",
}  # fmt: skip

_INFERRED = {
    "empty": "text", "string": "text", "bytes": "bytes", "boolean": "truth", "integer": "integer",
    "floating": "number", "mixed-integer-float": "number", "decimal": "decimal",
    "complex": "complex", "date": "date", "datetime": "time", "datetime64": "time",
    "time": "clock", "timedelta": "duration", "timedelta64": "duration",
}  # fmt: skip
"""Kinds by what pandas infers of objects."""


def _kind(column: Any) -> str:
    """Kind of a simplified column."""
    import pandas as pd
    import pyarrow as pa

    dtype: Any = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        arrow, types = dtype.pyarrow_dtype, pa.types
        tests = {"list": types.is_nested, "decimal": types.is_decimal, "date": types.is_date}
        tests["clock"] = types.is_time
        return next((kind for kind, test in tests.items() if test(arrow)), "bytes")
    if str(dtype) == "geometry":
        return "geometry"
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "zoned"
    if isinstance(dtype, pd.StringDtype):
        return "text"
    if dtype.kind in _DTYPES:
        return _DTYPES[dtype.kind]
    objects = column.dropna().to_numpy()
    inferred = pd.api.types.infer_dtype(objects, skipna=True)
    if inferred == "datetime" and any(value.tzinfo is not None for value in objects):
        return "mixed"  # their offsets differ
    if inferred == "mixed-integer-float" and any(abs(value) > _DOUBLE for value in objects):
        return "mixed"
    if any(isinstance(value, list | tuple | dict | np.ndarray) for value in objects):
        return "json"
    return _INFERRED.get(inferred, "mixed")


def _held(column: Any, form: str) -> Any:
    """Column as a format holds it."""
    import pandas as pd

    rules, plain = _rules(form), _simplified(column)
    kind = _kind(plain)
    # Of objects, readers of Parquet would make numbers with a fraction where one is missing.
    counts = plain.dtype == object and kind in ("truth", "integer")
    if kind in rules.kinds.split() and form == "parquet" and not counts:
        return column
    if kind in rules.kinds.split() and _fits(plain, kind, rules):
        return pd.Series(_native(plain, kind, rules), index=column.index, name=column.name)
    return pd.Series(_texts(plain, kind), index=column.index, name=column.name, dtype=object)


def _fits(column: Any, kind: str, rules: _Rules) -> bool:
    """Whether the values of a column of a kind that a format holds are in its range."""
    present = column.dropna()
    if not len(present):
        return True
    if kind == "integer":
        low, high = int(present.min()), int(present.max())
        is_typed = (high < 2**63 and low >= -(2**63)) or low >= 0
        return is_typed and -rules.largest - 1 <= low and high <= rules.largest
    if kind == "number":
        return rules.infinity or bool(np.isfinite(present.to_numpy(np.float64)).all())
    if kind == "clock":
        return not any("." in str(text) for text in _texts(present, kind))  # whole seconds
    if kind not in ("date", "time", "zoned"):
        return True
    moments = _moments(present, kind)
    seconds = moments.astype("datetime64[s]")  # limits lie beyond the years of nanoseconds
    within = seconds.min() >= np.datetime64(rules.first) and seconds.max() < np.datetime64("10000")
    return bool(within and (moments.astype(f"datetime64[{rules.step}]") == moments).all())


def _native(column: Any, kind: str, rules: _Rules) -> Any:
    """Values of a kind that a format holds, in the type that its writer takes."""
    import pandas as pd
    import pyarrow as pa

    if kind == "truth":
        return pd.array(column, dtype="boolean" if column.hasnans else "bool")
    if kind == "integer":  # pandas has types with and without a sign, each with or without nulls
        signed = column.isna().all() or column.dropna().max() < 2**63
        name = "Int64" if signed else "UInt64"
        return pd.array(column, dtype=name if column.hasnans else name.lower())
    if kind == "number":
        is_single = column.dtype == np.float32
        return column if is_single else column.to_numpy(np.float64, na_value=np.nan)
    if kind == "date":
        days = _moments(column, kind).astype(object)
        return pd.array(days, dtype=pd.ArrowDtype(pa.date32()))
    if kind in ("time", "zoned"):
        return _moments(column, kind) if kind == "time" else column.array
    values: Any = plain_values(column)
    if kind == "bytes":
        return pd.array(values, dtype=pd.ArrowDtype(pa.binary()))
    if kind in ("list", "json", "mixed"):
        values = [_json_value(value, rules.largest) for value in values]
    return pd.Series(values, dtype=object).array


def _texts(column: Any, kind: str) -> list[str | None]:
    """Values of a column as texts that can be read back; None where one is missing."""
    import pyarrow as pa

    is_far = False
    if kind == "zoned":  # Python has no zones in other years
        moments = _moments(column.dropna(), kind).astype("datetime64[s]")
        is_far = bool(((moments < np.datetime64("0002")) | (moments > np.datetime64("9999"))).any())
    if kind in ("date", "time") or is_far:
        texts = np.datetime_as_string(_moments(column, kind)).tolist()
        end = "+00:00" if is_far else ""
        return [None if text == "NaT" else _with_sign(_trimmed(text)) + end for text in texts]
    if kind == "clock":
        arrow: Any = pa.array(column, from_pandas=True)
        texts = arrow.cast(pa.string()).to_pylist()
        return [None if text is None else _trimmed(text) for text in texts]
    if kind == "duration":
        spans = column.to_numpy() if column.dtype.kind == "m" else column.astype("timedelta64[us]")
        return [None if np.isnat(span) else _duration_text(span) for span in np.asarray(spans)]
    write = _WRITERS.get(kind, str)
    return [None if value is None else write(value) for value in plain_values(column)]


def _moments(column: Any, kind: str) -> Any:
    """Dates, or times without their zones, as numpy has them, in UTC if they had zones."""
    import pandas as pd
    import pyarrow as pa

    if kind == "zoned":
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if isinstance(column.dtype, pd.ArrowDtype):
        days: Any = pa.array(column.array).cast(pa.date32()).cast(pa.timestamp("s"))
        return np.asarray(days.to_numpy(zero_copy_only=False)).astype("datetime64[D]")
    if column.dtype.kind == "M":
        return column.to_numpy()
    moments: Any = ["NaT" if value is None else value for value in plain_values(column)]
    return np.array(moments, dtype="datetime64[D]" if kind == "date" else "datetime64[us]")


def _trimmed(text: str) -> str:
    """Time without the zeros at its end that say nothing."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _with_sign(text: str) -> str:
    """Date or time with a sign and six digits of the year outside 1 to 9999, by ISO 8601."""
    minus, year, rest = text[:1] == "-", *text.lstrip("-").split("-", 1)
    number = -int(year) if minus else int(year)
    return text if 1 <= number <= 9999 else f"{number:+07d}-{rest}"


def _duration_text(span: np.timedelta64) -> str:
    """Duration of ISO 8601, such as ``-P1DT1H1M1.5S``."""
    unit = np.datetime_data(span.dtype)[0]
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    count = int(span.astype(np.int64))
    seconds, fraction = divmod(abs(count), 10**digits)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = _trimmed(f"{seconds}.{fraction:0{digits}d}") if digits else str(seconds)
    return f"{'-' * (count < 0)}P{days}DT{hours}H{minutes}M{text}S"


def _number_text(value: float) -> str:
    """Shortest text of a number; infinity as all programs read it."""
    return repr(float(value)).replace("inf", "Infinity")


def _json_value(value: Any, largest: int = 2**64) -> Any:
    """Value of a list or a mixed column, for JSON; larger whole numbers are texts."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else _with_sign(_trimmed(str(value)))
    if isinstance(value, np.timedelta64):
        return None if np.isnat(value) else _duration_text(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(name): _json_value(each, largest) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_json_value(each, largest) for each in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= largest else str(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else None if np.isnan(value) else _number_text(value)
    return _value_text(value)


def _value_text(value: Any) -> str:
    """Text of one value of a column of several kinds."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, timedelta):
        return _duration_text(np.timedelta64(value))
    if isinstance(value, float):
        return _number_text(value)
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _json_text(value: Any) -> str:
    """JSON of a list."""
    return json.dumps(_json_value(value), ensure_ascii=False)


_WRITERS: dict[str, Callable[[Any], str]] = {
    "bytes": bytes.hex,
    "complex": lambda value: str(value).strip("()"),
    "geometry": lambda value: str(value.wkt),
    "json": _json_text,
    "list": _json_text,
    "mixed": _value_text,
    "number": _number_text,
    "zoned": lambda value: str(value.isoformat()),
}
"""Texts of one value, by the kind of its column; others are what `str` writes."""


_NUMBER = r"[0-9.,]+(e[+-]?[0-9]+)?"

# How a spreadsheet begins a formula, unless the text is a number or a range of numbers.
_FORMULA = re.compile(rf"[=@\t\r]|[+-](?!{_NUMBER}( to -?{_NUMBER})?$)", re.IGNORECASE)


def csv_text(table: pandas.DataFrame, *, heading: bool = True) -> str:
    """CSV of a table without its index; a formula becomes a text that begins with an apostrophe."""
    held = held_columns(table, "csv")
    # All columns but those of numbers, times or truth values alone.
    kinds = [getattr(each, "kind", "O") for each in held.dtypes]
    columns = [number for number, kind in enumerate(kinds) if kind not in "biufcmM"]
    guarded = held.set_axis([guard_text(name) for name in held.columns], axis=1)
    for number in columns:
        texts = held.iloc[:, number].map(guard_text, na_action="ignore")
        guarded.isetitem(number, texts.array)
    return str(guarded.to_csv(index=False, header=heading, lineterminator="\n"))


def guard_text(value: Any) -> Any:
    """Value with an apostrophe before it if it would be a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


DELIMITERS = {",": ",", ";": ";", "tab": "\t", "|": "|"}
"""Words for the characters that separate the fields of a text file."""

AUTOMATIC = (",", ";", "tab")
"""Words for the delimiters that are tried on the header line, in this order."""


class OpenQuoteError(ValueError):
    """A name has a quote that is not closed in its line."""


def split_names(line: str, word: str) -> list[str]:
    """Names in a header line; OpenQuoteError for a quote that would go on in the rows."""
    names, *after = csv.reader([line + "\n", "next"], delimiter=DELIMITERS[word])
    if not after:
        raise OpenQuoteError
    return [name.strip() for name in names]


def match_name(name: str, names: Sequence[str]) -> str | None:
    """Find a name: spelled exactly so, else the only one that differs in the case of letters."""
    if name in names:
        return name
    key = name.strip().casefold()
    matches = [other for other in names if other.strip().casefold() == key]
    return matches[0] if len(matches) == 1 else None


def is_separator_line(line: str) -> bool:
    """Whether a line such as ``sep=;`` names the separator for a spreadsheet program."""
    text = line.strip().strip('"').casefold()
    return text.startswith("sep=") and len(text) <= len("sep=;")
