"""Options of reading, the same for every command that reads records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.postgres import is_address
from psd._util.suggestions import check_names

from ..options.command import Decorator, options_of
from ..options.values import parse_settings

if TYPE_CHECKING:
    from psd.ingest.engines import Engine

__all__ = [
    "INPUTS",
    "POINT_KEYS",
    "SOURCES",
    "engine_option",
    "inputs_and_engine",
    "inputs_of",
    "local_files",
    "read_option",
]

INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

SOURCES = click.argument("inputs", nargs=-1, type=click.Path(readable=False))
"""Inputs of commands that read tables of Spark too, which need no path."""

POINT_KEYS = ("x", "y", "geometry", "layer", "table", "query")
"""Keys of ``--read`` that say where the points are."""

_MEANINGS = {
    "user": "column of user ids",
    "x": "column of x or longitude (lon by default)",
    "y": "column of y or latitude (lat by default)",
    "time": "column of times: timestamps, dates or ISO 8601",
    "time_zone": "time zone of days and slices, such as Asia/Seoul (UTC by default)",
    "geometry": "column of points, if an input has several",
    "layer": "layer of a file, if it has several",
    "table": "table of a postgresql:// input or of Spark, such as city.visits",
    "query": "SELECT statement, instead of a table",
    "memory": "limit on the memory for reading, such as 2GB",
}

_option = options_of("Input")


def read_option(*keys: str) -> Decorator:
    """``--read KEY=VALUE`` with some of the keys; the parameter ``read`` is a dict of texts."""
    meanings = "; ".join(f"{key}: {_MEANINGS[key]}" for key in keys)

    def parse(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
        settings = parse_settings(texts, example="x=longitude", option="--read")
        check_names("key of --read", settings, keys)
        return settings

    return _option(
        "--read",
        multiple=True,
        metavar="KEY=VALUE",
        callback=parse,
        help=f"How inputs are read; may be repeated. {meanings}.",
    )


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine``: where records are read and counted."""
    return _option(
        "--engine",
        metavar="ENGINE",
        help="Engine that reads and counts records: duckdb (in this process, the default), or "
        "Spark at an address: spark://host:7077, spark:sc://host:15002 (Spark Connect), "
        "spark:local[2]. The release is the same.",
    )(command)


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
            "--read query must be left out with --engine spark; give --read table or paths"
        )
    from psd.ingest.engines import engine as find_engine
    from psd.ingest.engines.spark import SparkTable

    local = [Path(item.removeprefix("file://")) for item in inputs if _is_local(item)]
    tables = [] if table is None else [SparkTable(table)]
    return [*inputs, *tables], local, find_engine(name, address)


def _parse_engine(text: str | None) -> tuple[str, str]:
    """Name and address of an engine."""
    name, colon, address = (text or "duckdb").partition(":")
    if name == "duckdb" and not colon:
        return name, ""
    if not address:
        raise click.UsageError(
            f"--engine must have an address, got {text}; write for instance --engine spark://host:7077"
        )
    return name, f"{name}:{address}" if address.startswith("//") else address


def _is_local(path: str) -> bool:
    """Whether a path may be local."""
    return "://" not in path or path.startswith("file://")
