"""Inputs as data frames of Spark: columns x, y, user and time of files and tables. Private side."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from psd._util.wall_clock import check_zone
from psd.errors import InputDataError, ParameterError

if TYPE_CHECKING:
    from psd.ingest.sources import Columns

__all__ = ["SparkTable", "rows_of", "viewed"]

# As in `psd.ingest.sources.csv`: quotes are doubled, and may hold line ends; a malformed row is a
# fault.
_CSV = {
    "header": "true",
    "inferSchema": "false",
    "enforceSchema": "false",
    "columnPruning": "false",
    "multiLine": "true",
    "mode": "FAILFAST",
    "sep": ",",
    "quote": '"',
    "escape": '"',
    "encoding": "UTF-8",
}
_IS_CSV = re.compile(r"\.(csv|txt)(\.[a-z0-9]{2,4})?$", re.IGNORECASE)

_ZONE = "spark.sql.session.timeZone"

# A winter and a summer of 2024, seconds since 1970.
_PROBES = (1_704_067_200, 1_719_792_000)

_WHOLE = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64"}
_REAL = {"float": "float32", "double": "float64"}
_TEXT = {"string": "string"}
_MOMENTS = {"timestamp": "timestamp('UTC')", "timestamp_ntz": "timestamp", "date": "date"}

# Types of Spark that each column may have, and what Ibis calls them.
_TYPES = {
    "x": {**_WHOLE, **_REAL, **_TEXT},
    "y": {**_WHOLE, **_REAL, **_TEXT},
    "user": {**_WHOLE, **_TEXT},
    "time": {**_MOMENTS, **_TEXT},
}


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table or view that Spark knows.

    Parameters
    ----------
    name : str
        Such as ``"city.visits"``.

    Examples
    --------
    >>> SparkTable("city.visits")
    SparkTable(name='city.visits')
    """

    name: str


def rows_of(spark: Any, data: Any, columns: Columns) -> Any:
    """One data frame of all inputs, with columns x, y, and user and time where they are named.

    Parameters
    ----------
    spark : SparkSession
    data : str, SparkTable or list of them
        Paths as the cluster sees them. A path that ends like one of CSV is CSV, each other one
        Parquet.
    columns : Columns
        Public.
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    _check_asked(items, columns)
    read = [_frame(spark, item) for item in items]
    if len(read) > 1:
        _check_files(read)
    frames = [_chosen(item, frame, columns) for item, frame in zip(items, read, strict=True)]
    if len({tuple(frame.dtypes) for frame in frames}) > 1:
        raise InputDataError("the inputs have columns of different types; bring them to one")
    return reduce(lambda one, other: one.unionAll(other), frames)


def _check_asked(items: list[Any], columns: Columns) -> None:
    """Refuse what does not go with this engine, or with itself."""
    for item in items:
        if not isinstance(item, str | os.PathLike | SparkTable):
            raise InputDataError(
                f"input of type {type(item).__name__} is none that Spark reads: give paths as the "
                "cluster sees them, or psd.SparkTable(...)"
            )
    if len(set(items)) < len(items):
        raise InputDataError("an input is given twice; its rows would count double")
    if not items:
        raise InputDataError("an empty list is none that can be read; give at least one input")
    if len(set(columns)) < len(list(columns)):
        raise ParameterError(
            f"{', '.join(columns)}: x, y, user and time have to be different columns"
        )
    if columns.geometry is not None or columns.layer is not None:
        raise ParameterError(
            "geometry and layer do not go with the engine spark; give columns of x and y"
        )
    check_zone(columns.time_zone)


def _check_files(frames: Sequence[Any]) -> None:
    """Refuse inputs that have a file in common, under whatever names."""
    files = [name for frame in frames for name in set(frame.inputFiles())]
    if len(set(files)) < len(files):
        raise InputDataError("two inputs hold the same file; its rows would count double")


@contextmanager
def viewed(frame: Any, name: str, zone: str) -> Iterator[Any]:
    """A data frame as a table of Ibis for as long as it is used, moments on the clock of a zone."""
    import ibis

    spark, kinds = frame.sparkSession, dict(frame.dtypes)
    schema = {field: _TYPES[field][kind] for field, kind in kinds.items()}
    before = spark.conf.get(_ZONE)
    frame.createOrReplaceTempView(name)
    try:
        if kinds.get("time") == "timestamp":
            _set_zone(spark, zone)
        yield ibis.table(schema, name=name)
    finally:
        spark.catalog.dropTempView(name)
        spark.conf.set(_ZONE, before)


def _set_zone(spark: Any, zone: str) -> None:
    """Have moments written in a zone; some servers take the setting and do not follow it."""
    spark.conf.set(_ZONE, zone)
    for moment in _PROBES:
        shown = spark.sql(f"SELECT CAST(TIMESTAMP_SECONDS({moment}) AS STRING) AS shown")
        if shown.collect()[0]["shown"] != f"{datetime.fromtimestamp(moment, ZoneInfo(zone)):%F %T}":
            raise InputDataError(
                f"Spark does not bring moments to the time zone {zone} here; give a column of "
                "timestamps without a zone, on the wall clock"
            )


def _frame(spark: Any, item: Any) -> Any:
    """All columns of one input, those of CSV as text."""
    if isinstance(item, SparkTable):
        return spark.table(item.name)
    path = os.fspath(item)
    if not _IS_CSV.search(path):
        return spark.read.parquet(path)
    _check_quotes(spark, path)
    return spark.read.options(**_CSV).csv(path)


def _check_quotes(spark: Any, path: str) -> None:
    """Refuse a quote that is not closed; a parser that meets the end inside one says nothing."""
    each = "length(value) - length(replace(value, '\"', ''))"
    (row,) = spark.read.text(path).selectExpr(f"sum({each}) % 2 AS odd").collect()
    if row["odd"]:
        raise InputDataError(f"{path} has a quote that is not closed")


def _chosen(item: Any, frame: Any, columns: Columns) -> Any:
    """The columns that are used, by their roles; found by place, since Spark joins ann and Ann."""
    what = item.name if isinstance(item, SparkTable) else os.fspath(item)
    names = [name.removeprefix("\ufeff").strip() for name in frame.columns]
    asked = {"x": columns.x, "y": columns.y, "user": columns.user, "time": columns.time}
    roles = {role: name for role, name in asked.items() if name is not None}
    for name in roles.values():
        if names.count(name) != 1:
            raise InputDataError(
                f"{what} has no single column {name!r}; see --x, --y, --user, --time, and give "
                "the path as the cluster sees it"
            )
    frame = frame.toDF(*(f"c{place}" for place in range(len(names))))
    chosen = [f"c{names.index(name)} AS {role}" for role, name in roles.items()]
    frame = frame.selectExpr(*chosen)
    _check_types(what, frame.dtypes, roles)
    return frame


def _check_types(what: str, types: Sequence[tuple[str, str]], roles: dict[str, str]) -> None:
    """Refuse columns whose values another engine would read otherwise."""
    for role, kind in types:
        if kind not in _TYPES[role]:
            raise InputDataError(
                f"column {roles[role]!r} of {what} is of type {kind}; this engine takes "
                f"{', '.join(_TYPES[role])}: convert it first"
            )
