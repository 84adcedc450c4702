"""Read files and tables as data frames of Spark with columns x, y, user, time. Private side."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from psd._util.column_kinds import AUTOMATIC, DELIMITERS
from psd._util.wall_clock import check_zone
from psd.apps.spark.parse import role_of
from psd.errors import InputDataError, ParameterError
from psd.ingest.columns import check_roles, resolve_columns
from psd.ingest.input_names import NamedInput
from psd.ingest.input_paths import uncompressed_name
from psd.ingest.tally_marks import refuse_tally_columns

if TYPE_CHECKING:
    from psd.ingest.sources import Columns


# As in `psd.ingest.sources.csv`: quotes are doubled and may hold line ends; a malformed row is an
# error.
_CSV = {
    "header": "true",
    "inferSchema": "false",
    "enforceSchema": "false",
    "columnPruning": "false",
    "multiLine": "true",
    "mode": "FAILFAST",
    "quote": '"',
    "escape": '"',
    "encoding": "UTF-8",
}
_IS_CSV = re.compile(r"\.(csv|txt)(\.[a-z0-9]{2,4})?$", re.IGNORECASE)

_ZONE = "spark.sql.session.timeZone"

# A time in winter and one in summer of 2024, in seconds since 1970.
_PROBES = (1_704_067_200, 1_719_792_000)

_INTEGERS = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64"}
_FLOATS = {"float": "float32", "double": "float64"}
_TEXT = {"string": "string"}
_TIMES = {"timestamp": "timestamp('UTC')", "timestamp_ntz": "timestamp", "date": "date"}

_FLAGS = {"boolean": "boolean"}
_COMPARED = {**_INTEGERS, **_FLOATS, **_TEXT, **_TIMES, **_FLAGS}

# Types of Spark that each column may have, and their names in Ibis.
_TYPES = {
    "x": {**_INTEGERS, **_FLOATS, **_TEXT},
    "y": {**_INTEGERS, **_FLOATS, **_TEXT},
    "user": {**_INTEGERS, **_TEXT},
    "time": {**_TIMES, **_TEXT},
}


@dataclass(frozen=True, slots=True)
class SparkTable(NamedInput):
    """A table or view in the catalogue of Spark.

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

    @property
    def input_name(self) -> str:
        """See `psd.ingest.input_names.NamedInput`."""
        return f"table of Spark {self.name}"


def read_rows(spark: Any, data: Any, columns: Columns) -> Any:
    """Read all inputs, CSV or else Parquet, to one frame with x, y, and user and time if named."""
    items = list(data) if isinstance(data, list | tuple) else [data]
    _check_request(items, columns)
    read = [_frame(spark, item, columns) for item in items]
    if len(read) > 1 or not isinstance(items[0], SparkTable):
        # Refuse a file that is read twice, also under another name, or beside its compressed form.
        files = [name for frame in read for name in set(frame.inputFiles())]
        identities: set[object] = set()
        for address in files:
            parts = urlsplit(address)
            identity: object = address
            if parts.scheme == "file":  # on this machine, a file is its device and inode
                with suppress(OSError):
                    state = os.stat(unquote(parts.path))
                    identity = (state.st_dev, state.st_ino)
            identities.add(identity)
        if len(identities) < len(files):
            raise InputDataError("two inputs hold the same file; its records would count twice")
        if len(set(map(uncompressed_name, files))) < len(files):
            raise InputDataError(
                "two inputs must not be one file and its compressed form; its records would "
                "count twice"
            )
    frames = [_select(item, frame, columns) for item, frame in zip(items, read, strict=True)]
    if len({tuple(frame.dtypes) for frame in frames}) > 1:
        raise InputDataError("the inputs must have columns of the same types; convert them")
    return reduce(lambda first, second: first.unionAll(second), frames)


def _check_request(items: list[Any], columns: Columns) -> None:
    """Refuse inputs and columns that this engine does not support."""
    for item in items:
        if not isinstance(item, str | os.PathLike | SparkTable):
            raise InputDataError(
                f"Spark cannot read an input of type {type(item).__name__}; pass paths as the "
                "cluster sees them, or psd.apps.spark.SparkTable(...)"
            )
    if len(set(items)) < len(items):
        raise InputDataError("an input is repeated; its records would count twice")
    if not items:
        raise InputDataError("data must hold at least one input, got an empty list")
    if len(set(columns)) < len(list(columns)):
        raise ParameterError(
            f"x, y, user and time must be different columns, got {', '.join(columns)}"
        )
    if columns.geometry is not None or columns.layer is not None:
        raise ParameterError(
            "geometry= and layer= are not supported by the engine spark; name x=NAME and y=NAME"
        )
    if columns.encoding not in ("auto", "utf-8") or columns.skip_rows:
        raise ParameterError(
            "encoding= and skip_rows= are not supported by the engine spark, whose files are read "
            "in UTF-8 from the first line; convert them, or build without engine="
        )
    check_zone(columns.time_zone)


@contextmanager
def register_view(frame: Any, name: str, zone: str) -> Iterator[Any]:
    """Register a data frame as a table of Ibis, with times in the local time of a zone."""
    import ibis

    spark, kinds = frame.sparkSession, dict(frame.dtypes)
    schema = {field: _TYPES.get(field, _COMPARED)[kind] for field, kind in kinds.items()}
    before = spark.conf.get(_ZONE)
    frame.createOrReplaceTempView(name)
    try:
        if "timestamp" in kinds.values():
            # Times are written in this zone; some servers ignore the setting, so it is checked.
            spark.conf.set(_ZONE, zone)
            for moment in _PROBES:
                shown = spark.sql(f"SELECT CAST(TIMESTAMP_SECONDS({moment}) AS STRING) AS shown")
                local = f"{datetime.fromtimestamp(moment, ZoneInfo(zone)):%F %T}"
                if shown.collect()[0]["shown"] != local:
                    raise InputDataError(
                        f"Spark does not convert times to the time zone {zone} here; give a "
                        "column of timestamps without a zone, in local time"
                    )
        yield ibis.table(schema, name=name)
    finally:
        spark.catalog.dropTempView(name)
        spark.conf.set(_ZONE, before)


@contextmanager
def shared_tables(spark: Any, prefix: str) -> Iterator[Callable[[str, Any], Any]]:
    """Give a function that registers tables of Arrow as tables of Ibis, until the end."""
    import ibis

    names: list[str] = []

    def share(name: str, table: Any) -> Any:
        names.append(f"{prefix}_{name}")
        spark.createDataFrame(table).createOrReplaceTempView(names[-1])
        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=names[-1])

    try:
        yield share
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def _frame(spark: Any, item: Any, columns: Columns) -> Any:
    """Read all columns of one input, those of CSV as text; the header line tells the delimiter."""
    if isinstance(item, SparkTable):
        return spark.table(item.name)
    path = os.fspath(item)
    if not _IS_CSV.search(path):
        frame = spark.read.parquet(path)
        refuse_tally_columns(f"input {path}", frame.columns)
        return frame
    # The parser ignores a file that ends inside quotes.
    each = "length(value) - length(replace(value, '\"', ''))"
    (row,) = spark.read.text(path).selectExpr(f"sum({each}) % 2 AS odd").collect()
    if row["odd"]:
        raise InputDataError(f"{path} has a quote that is not closed")
    words = AUTOMATIC if columns.delimiter == "auto" else (columns.delimiter,)
    frames = []
    for word in words:
        frames.append(spark.read.options(**_CSV, sep=DELIMITERS[word]).csv(path))
        names = _names(frames[-1])
        if set(resolve_columns(columns, names).needed) <= set(names):
            return frames[-1]
    return frames[0]


def _names(frame: Any) -> list[str]:
    """Names of the columns, without a byte order mark and spaces."""
    return [name.removeprefix("\ufeff").strip() for name in frame.columns]


def _select(item: Any, frame: Any, columns: Columns) -> Any:
    """Select columns by their roles, by position since Spark ignores the case of names."""
    what = item.name if isinstance(item, SparkTable) else os.fspath(item)
    names = _names(frame)
    chosen = resolve_columns(columns, names)
    x, y = (chosen.x, chosen.y) if chosen.wkt is None else (chosen.wkt, chosen.wkt)
    by_role = {"x": x, "y": y, "user": chosen.user, "time": chosen.time}
    roles = {role: name for role, name in by_role.items() if name is not None}
    filtered = {role_of(number): name for number, name in enumerate(chosen.filtered)}
    for name in chosen.needed:
        if names.count(name) != 1:
            raise InputDataError(
                f"{what} must have exactly one column {name!r}; see x=, y=, user=, time=, and give "
                "the path as the cluster sees it"
            )
    check_roles(what, chosen)
    frame = frame.toDF(*(f"c{index}" for index in range(len(names))))
    decimals = {name for name, kind in frame.dtypes if kind.startswith("decimal")}
    fields = {role: f"c{names.index(name)}" for role, name in filtered.items()}
    selected = [f"c{names.index(name)} AS {role}" for role, name in roles.items()]
    selected += [
        f"CAST({field} AS DOUBLE) AS {role}" if field in decimals else f"{field} AS {role}"
        for role, field in fields.items()
    ]
    frame = frame.selectExpr(*selected)
    # Engines would read values of other types differently.
    for role, kind in frame.dtypes:
        name, known = (roles | filtered)[role], _TYPES.get(role, _COMPARED)
        if chosen.wkt is not None and role in ("x", "y") and kind != "string":
            raise InputDataError(
                f"column {name!r} of {what} must hold points in WKT as text, got {kind}"
            )
        if kind not in known:
            raise InputDataError(
                f"column {name!r} of {what} must be of type {', '.join(known)}, got {kind}; "
                "convert it first"
            )
    return frame
