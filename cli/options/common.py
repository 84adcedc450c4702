"""Arguments and options that several commands share: inputs, releases, and tables as outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.postgres import is_address
from psd.release.node_reader import MAX_NODES

from ..output.tables import FORMATS
from .command import INTEGER, LIMITS, Decorator, chain_options

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Tally


__all__ = [
    "FORMAT",
    "INPUTS",
    "RELEASE",
    "RELEASE_OPTION",
    "TABLE_OR_JSON",
    "TABLE_OUTPUT",
    "chosen_max_nodes",
    "local_files",
    "overwrite",
    "read_slice_tally",
    "table_or",
]

_KEY = "psd.max_nodes"


def _keep_max_nodes(ctx: click.Context, param: click.Parameter, value: int) -> None:
    """Store the limit for all files that the command reads; check it before any is read."""
    if value < 1:
        raise click.UsageError(f"--max-nodes must be at least 1, got {value}", ctx)
    ctx.meta[_KEY] = value


def chosen_max_nodes() -> int:
    """Most nodes of a release that the running command reads."""
    limit: int = click.get_current_context().meta[_KEY]
    return limit


_MAX_NODES = click.option(
    "--max-nodes",
    type=INTEGER,
    default=MAX_NODES,
    show_default=True,
    expose_value=False,
    callback=_keep_max_nodes,
    help="Refuse a release of more nodes, all slices together; raise it for trusted senders.",
)

RELEASE = chain_options(
    click.argument("release", type=click.Path(dir_okay=False, readable=False)), _MAX_NODES
)
"""A release file that a command reads, and ``--max-nodes`` for it and others like it."""

RELEASES = chain_options(
    click.argument(
        "releases",
        metavar="RELEASE...",
        nargs=-1,
        required=True,
        type=click.Path(dir_okay=False, readable=False),
    ),
    _MAX_NODES,
)
"""The same for a command of several releases."""

RELEASE_OPTION = chain_options(
    click.option(
        "--release",
        required=True,
        type=click.Path(dir_okay=False, readable=False),
        help="Release whose area and density are used.",
    ),
    _MAX_NODES,
)
"""The same for a command whose arguments are other files."""


def overwrite(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--overwrite``: every command that writes."""
    return click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")(
        command
    )


def write_build_tally(
    path: str,
    tally: PartialTally | Tally,
    built: Release,
    release: str,
    data: Sequence[Any],
    columns: Columns,
    *,
    overwrite: bool,
) -> None:
    """Write the tally of a build, with the digest of its release."""
    from dataclasses import replace

    from psd.ingest.tally import Tally
    from psd.ingest.tally_file import file_digest, write_tally
    from psd.publish.tally_parts import tally_of_build

    if isinstance(tally, Tally):
        partial_tally = tally_of_build(tally, built, data, columns=columns, release=Path(release))
    else:
        partial_tally = replace(tally, release=file_digest(release))
    write_tally(partial_tally, path, overwrite=overwrite)


def read_slice_tally(tally: str, loaded: Release, release: str, slice_name: str | None) -> Tally:
    """Tally of a build, or its slice."""
    from psd.ingest.tally_file import read_tally_of_release
    from psd.publish.drawing import slice_tally

    partial_tally = read_tally_of_release(tally, loaded.domain, release)
    if slice_name is None or partial_tally.rules.slices is None:
        return partial_tally.tally
    return slice_tally(partial_tally.tally, partial_tally.rules.slices.names.index(slice_name))


INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

SOURCES = click.argument("inputs", nargs=-1, type=click.Path(readable=False))
"""Inputs of commands that read tables of Spark too, which need no path."""


def local_files(inputs: Sequence[str]) -> list[Path]:
    """Files among the inputs, which must not be overwritten; reading reports faults later."""
    from psd.errors import InputDataError
    from psd.ingest.sources import files_of

    try:
        return files_of(inputs)
    except InputDataError:
        return [Path(item) for item in inputs if not is_address(item)]


FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the output; by default from the ending of -o, or a table.",
)


def table_or(*forms: str, notes: str = "") -> Decorator:
    """``--format`` of a command that prints one thing: a table by default, or another form."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", *forms]),
        default="table",
        show_default=True,
        help=f"Format of the output.{notes}",
    )


TABLE_OR_JSON = table_or("json")
"""The format of commands that print one thing."""

TABLE_OUTPUT = chain_options(
    FORMAT,
    click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen."),
    overwrite,
)
"""The format, the file that is written, and whether it may replace another."""


unreliable_options = chain_options(
    click.option(
        "--unreliable",
        type=click.Choice(["keep", "mark", "drop"]),
        default="keep",
        show_default=True,
        help="Estimates that are not reliable: keep them as they are, mark them by u in a column "
        "flag, or drop them.",
    ),
    click.option(
        "--threshold",
        type=LIMITS,
        default="0.12,0.3",
        show_default=True,
        help="Largest relative error of a good estimate and of a reliable one, or of a reliable "
        "one alone, such as 0.3 or 30%. The file states them.",
    ),
)
"""``--unreliable`` and ``--threshold``, of commands that write estimates."""
