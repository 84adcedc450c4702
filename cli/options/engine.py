"""Options that say where rows are read and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util import plugins

from ..options.inputs import files, inputs_of

if TYPE_CHECKING:
    from psd.ingest.engines import Engine

__all__ = ["INPUTS", "engine_options", "inputs_and_engine"]

# A table of Spark needs no path.
INPUTS = click.argument("inputs", nargs=-1, type=click.Path(readable=False))

_ENGINE = click.option(
    "--engine",
    type=click.Choice(("duckdb", *plugins.names("psd.ingest.engines"))),
    default="duckdb",
    show_default=True,
    help="Where rows are read and counted: in this process, or on a cluster; same result.",
)
_URL = click.option(
    "--spark-url",
    help="spark://host:7077, sc://host:15002 (Spark Connect) or local[2]; with --engine spark.",
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine`` and ``--spark-url``."""
    return _ENGINE(_URL(command))


def inputs_and_engine(
    inputs: Sequence[str], table: str | None, query: str | None, engine: str, url: str | None
) -> tuple[list[Any], list[Path], Engine | None]:
    """What is read, the files of this machine among it, and the engine, None for this process."""
    from psd.ingest.engines import engine as engine_of

    if not inputs and (engine != "spark" or table is None):
        raise click.MissingParameter(param_hint="'INPUTS...'", param_type="argument")
    if engine != "spark":
        if url is not None:
            raise click.UsageError("--spark-url goes with --engine spark")
        return inputs_of(inputs, table, query), files(inputs), None
    if url is None:
        raise click.UsageError("--engine spark needs --spark-url")
    if query is not None:
        raise click.UsageError("--query does not go with --engine spark; give --table or paths")
    from psd.ingest.engines.spark import SparkTable

    here = [Path(item.removeprefix("file://")) for item in inputs if _is_here(item)]
    tables = [] if table is None else [SparkTable(table)]
    return [*inputs, *tables], here, engine_of(engine, url)


def _is_here(path: str) -> bool:
    """Whether a path may be one of this machine."""
    return "://" not in path or path.startswith("file://")
