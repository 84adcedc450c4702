"""Options of all kinds of private choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..options.area import resolution_option
from ..options.command import READ_KEYS, chain_options, options_of
from ..options.ledger import ledger_options
from ..options.reading import INPUTS, read_option
from ..options.unit import unit_options

__all__ = ["choice_options"]


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Inputs, epsilon, CRS, unit of privacy, format and ledger."""
    return chain_options(
        INPUTS,
        click.option(
            "--epsilon", required=True, help="Epsilon of the choice, a decimal such as 0.1."
        ),
        options_of("Area")(
            "--crs",
            default="EPSG:4326",
            show_default=True,
            help="CRS of the bounds and of coordinate columns.",
        ),
        resolution_option,
        unit_options(
            bound="Largest number of records of each user that are counted.", per=("day",)
        ),
        read_option(*READ_KEYS),
        click.option(
            "--format",
            "form",
            type=click.Choice(["table", "csv", "json"]),
            default="table",
            show_default=True,
            help="Format of the output.",
        ),
        ledger_options,
        options_of("Private output")(
            "--report-private", is_flag=True, help="Print PRIVATE numbers of records to stderr."
        ),
    )(command)
