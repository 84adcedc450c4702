"""Options of commands that print or write a table."""

from __future__ import annotations

import click

from ..output.tables import FORMATS
from .command import chain_options
from .common import overwrite

__all__ = ["FORMAT", "TABLE_OUTPUT"]

FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the output; by default from the ending of -o, or a table.",
)

TABLE_OUTPUT = chain_options(
    FORMAT,
    click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen."),
    overwrite,
)
"""The format, the file that is written, and whether it may replace another."""
