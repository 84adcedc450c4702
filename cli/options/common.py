"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from psd.release.node_limit import MAX_NODES

from ..options.command import INTEGER, chain_options

__all__ = ["RELEASE", "RELEASE_OPTION", "chosen_max_nodes", "overwrite"]

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
