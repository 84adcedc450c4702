"""Options of commands that print or write a table."""

from __future__ import annotations

import click

from ..output.tables import FORMATS
from .command import Decorator, chain_options
from .common import overwrite

__all__ = ["FORMAT", "TABLE_OR_JSON", "TABLE_OUTPUT", "table_or"]

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
