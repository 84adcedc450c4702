"""Options that say which points are read: the same for every command that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from psd._util.postgres import is_address

__all__ = ["INPUTS", "files", "inputs_of", "places", "times"]

INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

_PLACES = (
    click.option("--x", default="lon", show_default=True, help="Column of x or longitude."),
    click.option("--y", default="lat", show_default=True, help="Column of y or latitude."),
    click.option("--geometry", help="Column of points, where an input has several."),
    click.option("--layer", help="Layer of a file, where it has several."),
    click.option(
        "--table", help="Table of a postgresql:// input or of Spark, such as city.visits."
    ),
    click.option("--query", help="SELECT in place of --table."),
)

_TIMES = (
    click.option("--time", help="Column of moments: timestamps, dates or ISO 8601."),
    click.option(
        "--time-zone",
        default="UTC",
        show_default=True,
        help="Zone of the wall clock, such as Asia/Seoul; times without a zone are on it.",
    ),
)


def places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where the points are."""
    return _with(_PLACES, command)


def times(command: Callable[..., Any]) -> Callable[..., Any]:
    """When they were there."""
    return _with(_TIMES, command)


def _with(options: Sequence[Any], command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with options, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def inputs_of(inputs: Sequence[str], table: str | None, query: str | None) -> list[Any]:
    """What the sources read: names of files as they are, addresses with their table or query."""
    if not any(map(is_address, inputs)):
        for option, value in (("--table", table), ("--query", query)):
            if value is not None:
                raise click.UsageError(f"{option} goes with an input postgresql://...")
        return list(inputs)
    from psd.ingest.sources.postgis import PostGIS

    return [
        PostGIS(item, table=table, query=query) if is_address(item) else item for item in inputs
    ]


def files(inputs: Sequence[str]) -> list[Path]:
    """Files among the inputs, so that none of them is written to; faults are left to reading."""
    from psd.errors import InputDataError
    from psd.ingest.sources import files_of

    try:
        return files_of(inputs)
    except InputDataError:
        return [Path(item) for item in inputs if not is_address(item)]
