"""Options of reading, the same for every command that reads records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.postgres import is_address
from psd._util.suggestions import check_names

from ..options.command import Decorator, options_of
from ..options.values import parse_settings

if TYPE_CHECKING:
    from psd.ingest.engine import Engine

__all__ = [
    "INPUTS",
    "SOURCES",
    "inputs_and_engine",
    "inputs_of",
    "local_files",
    "read_option",
]

INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

SOURCES = click.argument("inputs", nargs=-1, type=click.Path(readable=False))
"""Inputs of commands that read tables of Spark too, which need no path."""

_MEANINGS = {
    "user": "column of user ids",
    "x": "column of x or longitude (lon by default, else longitude, x or easting)",
    "y": "column of y or latitude (lat by default, else latitude, y or northing)",
    "wkt": "column of text such as POINT (127.01 37.5), WKT, EWKT or hexadecimal WKB, instead of x "
    "and y",
    "delimiter": "separator of CSV: , ; tab or | (auto, from the header line, by default)",
    "decimal": "decimal sign of coordinates in text, . or , (. by default)",
    "encoding": "of CSV: utf-8, utf-16 or windows-1252, which latin-1 means too (UTF-8 by default; "
    "UTF-16 by its mark)",
    "skip_rows": "number of lines above the header of CSV or of a sheet (0 by default)",
    "time": "column of times: timestamps, dates or ISO 8601",
    "time_zone": "time zone of days and slices, such as Asia/Seoul (UTC by default)",
    "geometry": "column of points, if an input has several",
    "input_crs": "CRS of the coordinates, if it is not --crs; they are transformed",
    "layer": "layer of a file or sheet of a workbook, if it has several",
    "table": "table of a postgresql:// input or of Spark, such as city.visits",
    "query": "SELECT statement, instead of a table",
    "memory": "limit on the memory for reading, such as 2GB",
    "coordinate_resolution": "step to which the coordinates are rounded in the input, such as "
    "0.0001, in units of --crs; a public fact about the source, never found in the data; cells are "
    "no smaller, and edges of queries move to the middle between two values "
    "(--coordinate-resolution STEP is the same)",
    "engine": "what reads and counts records: duckdb (in this process, the default), or Spark at "
    "an address, such as spark://host:7077, spark:sc://host:15002 (Spark Connect), spark:local[2]; "
    "the release is the same",
}

_TABLE = "table of a postgresql:// input, such as city.visits"
"""Meaning of the key ``table`` where nothing is counted on a cluster."""

# A key may be written with hyphens, as options are: skip-rows=2.
_HYPHENS = re.compile(r"^[a-z-]+(?==)")

_option = options_of("Input")


def read_option(*keys: str) -> Decorator:
    """``--read KEY=VALUE`` with some of the keys; the parameter ``read`` is a dict of texts."""
    meaning = _MEANINGS if "engine" in keys else _MEANINGS | {"table": _TABLE}
    meanings = "; ".join(f"{key}: {meaning[key]}" for key in keys)

    def parse(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
        settings = parse_settings(
            tuple(_HYPHENS.sub(lambda key: key[0].replace("-", "_"), text) for text in texts),
            example="x=longitude",
            option="--read",
        )
        if "engine" in settings and "engine" not in keys:
            raise click.UsageError(
                "--read engine must be left out; psd build alone counts on a cluster; write the "
                "records to Parquet there, and name these files"
            )
        check_names("key of --read", settings, keys)
        if "wkt" in settings and not settings.keys().isdisjoint(("x", "y")):
            raise click.UsageError(
                "--read x and --read y must be left out with --read wkt; the points are in one "
                "column, or in two"
            )
        return settings

    return _option(
        "--read",
        multiple=True,
        metavar="KEY=VALUE",
        callback=parse,
        help=f"How inputs are read; may be repeated. {meanings}.",
    )


def inputs_of(inputs: Sequence[str], table: str | None, query: str | None) -> list[Any]:
    """Inputs for the sources: paths unchanged, addresses with their table or query."""
    if not any(map(is_address, inputs)):
        for key, value in (("table", table), ("query", query)):
            if value is not None:
                raise click.UsageError(f"--read {key} must be given with an input postgresql://...")
        return list(inputs)
    from psd.ingest.sources.postgis import PostGIS

    return [
        PostGIS(item, table=table, query=query) if is_address(item) else item for item in inputs
    ]


def local_files(inputs: Sequence[str]) -> list[Path]:
    """Files among the inputs, which must not be overwritten; reading reports faults later."""
    from psd.errors import InputDataError
    from psd.ingest.sources import files_of

    try:
        return files_of(inputs)
    except InputDataError:
        return [Path(item) for item in inputs if not is_address(item)]


def inputs_and_engine(
    inputs: Sequence[str], table: str | None, query: str | None, engine: str | None
) -> tuple[list[Any], list[Path], Engine | None]:
    """Inputs, the local files among them, and the engine; None for this process."""
    name, address = _parse_engine(engine)
    if not inputs and (name != "spark" or table is None):
        raise click.MissingParameter(param_hint="'INPUTS...'", param_type="argument")
    if name == "duckdb":
        return inputs_of(inputs, table, query), local_files(inputs), None
    if query is not None:
        raise click.UsageError(
            "--read query must be left out with --read engine=spark:...; give --read table or paths"
        )
    from psd._apps import load_member
    from psd.ingest.engine import engine as find_engine

    local = [Path(item.removeprefix("file://")) for item in inputs if _is_local(item)]
    tables = [] if table is None else [load_member("SparkTable")(table)]
    return [*inputs, *tables], local, find_engine(name, address)


def _parse_engine(text: str | None) -> tuple[str, str]:
    """Name and address of an engine."""
    name, colon, address = (text or "duckdb").partition(":")
    if name == "duckdb" and not colon:
        return name, ""
    if not address:
        raise click.UsageError(
            f"--read engine must have an address, got {text}; write for instance "
            "--read engine=spark://host:7077"
        )
    return name, f"{name}:{address}" if address.startswith("//") else address


def _is_local(path: str) -> bool:
    """Whether a path may be local."""
    return "://" not in path or path.startswith("file://")
