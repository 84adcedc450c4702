"""Options of commands that print or write a table, and what is done with unreliable estimates."""

from __future__ import annotations

import click

from ..output.tables import FORMATS
from .command import LIMITS, Decorator, chain_options
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
