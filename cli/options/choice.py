"""Options of all kinds of private choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..options.command import chain_options, options_of, parse_integer
from ..options.common import INPUTS
from ..options.fields import LEDGER, POINTS, TIMES, UNIT, field_options

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["MAX_ZONE_DEPTH", "check_unrounded", "choice_domain", "choice_options", "zone_numbers"]


MAX_ZONE_DEPTH = 8
"""Most halvings of each axis of a map of zones."""

_MAX_ZONES = 100


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
        field_options("coordinate_resolution"),
        field_options(*UNIT, *POINTS, *TIMES, "table", "query", "memory", into="read"),
        click.option(
            "--format",
            "form",
            type=click.Choice(["table", "csv", "json"]),
            default="table",
            show_default=True,
            help="Format of the output.",
        ),
        field_options(*LEDGER, "report_private"),
    )(command)


def choice_domain(
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    *,
    instead: str = "",
) -> Domain:
    """Domain of a choice that needs no cells: the bounds, as one of them.

    Without bounds, the message names what the command takes instead of them.

    Raises
    ------
    UsageError
        If there are no bounds.
    DomainError
        As `psd.Domain`.
    """
    from psd.space.domain import Domain

    if bounds is None:
        raise click.UsageError(f"--bounds{instead} must be given; bids outside do not count")
    if coordinate_resolution is None:
        return Domain(bounds=bounds, crs=crs, lattice=(1, 1))
    return Domain(
        bounds=bounds, crs=crs, coordinate_resolution=coordinate_resolution, min_cell=None
    )


def check_unrounded(coordinate_resolution: str | None) -> None:
    """Refuse a coordinate resolution where regions decide what a record counts for.

    Raises
    ------
    UsageError
    """
    if coordinate_resolution is not None:
        raise click.UsageError("--coordinate-resolution must be left out with --regions")


def zone_numbers(text: str) -> tuple[int, ...]:
    """Numbers of zones of ``--zones``: one, or a range.

    Raises
    ------
    BadParameter
        If it is neither.

    Examples
    --------
    >>> zone_numbers("4"), zone_numbers("1..3")
    ((4,), (1, 2, 3))
    """
    first, dots, last = text.partition("..")
    try:
        low = parse_integer(first)
        high = parse_integer(last) if dots else low
    except click.BadParameter:
        low = high = 0
    if not 1 <= low <= high <= _MAX_ZONES:
        raise click.BadParameter(
            f"it must be a number from 1 to {_MAX_ZONES}, or a range such as 1..4, got "
            f"{text[:80]!r}",
            param_hint="'--zones'",
        )
    return tuple(range(low, high + 1))
