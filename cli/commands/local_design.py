"""psd local design: campaigns that ask for places, options or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.values import INTEGER

if TYPE_CHECKING:
    from psd.local.device import Campaign

__all__ = ["design_campaign"]


@click.command("design", cls=Command, short_help="Design a campaign.")
@click.option("-o", "--output", required=True, help="File of the campaign.")
@click.option(
    "--bounds",
    nargs=4,
    type=float,
    metavar="W S E N",
    help="Ask for a place: west south east north, from public knowledge, never from the data.",
)
@click.option(
    "--options",
    metavar="FILE",
    help="Ask for one of the options in a file, a line each, or none of these.",
)
@click.option(
    "--range",
    "ends",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Ask for a number in a range, from public knowledge, never from the data.",
)
@click.option("--epsilon", help="Epsilon of a report.")
@click.option(
    "--devices",
    type=INTEGER,
    required=True,
    help="Expected number of devices; it decides how fine the cells are.",
)
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the bounds.")
@click.option("--title", default="", help="What people read about the campaign.")
@click.option(
    "--rounds",
    type=click.Choice(["1", "2", "3", "4", "7"]),
    default="4",
    show_default=True,
    help="Rounds; cells with many devices are cut from round to round. 1 needs no second contact.",
)
@click.option("--protocol", help="Protocol of all groups; by default the one with least variance.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the protocol in place of the best one; for options, truth=0.75 of k-ary "
    "stands in place of --epsilon.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def design_campaign(
    output: str,
    bounds: tuple[float, float, float, float] | None,
    options: str | None,
    ends: tuple[float, float] | None,
    epsilon: str | None,
    devices: int,
    crs: str,
    title: str,
    rounds: str,
    protocol: str | None,
    settings: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Design a campaign from epsilon and the expected number of devices, and write its file.

    Give what is asked: --bounds for places, --options for a list of answers, or --range for
    numbers.

    Each device is in one of several groups, one for each round. The first is asked for the cell of
    a coarse grid. `psd local next` cuts the cells with many devices for the group after it. With
    --rounds 1 all groups are asked together, for grids of different sizes. Epsilon is not divided:
    a device answers once.

    \b
    Examples:
      psd local design -o c.json --bounds 126.4 37 127.6 38 --epsilon 1 --devices 100000
      psd local design -o c.json --options modes.txt --epsilon 1 --devices 5000
      psd local design -o c.json --range 0 120 --epsilon 1 --devices 5000
    """  # noqa: D301
    from psd._util.atomic_write import write_file
    from psd.local.campaigns import encode_campaign

    if [bounds, options, ends].count(None) != 2:
        raise click.UsageError("one of --bounds, --options and --range must be given")
    if bounds is not None:
        campaign = _design_places(bounds, epsilon, devices, crs, title, rounds, protocol, settings)
    else:
        campaign = _design_answers(options, ends, epsilon, devices, title, protocol, settings)
    write_file(output, encode_campaign(campaign), overwrite=overwrite)
    click.echo(f"wrote {output}; campaign {campaign.digest}")


def _design_places(
    bounds: tuple[float, float, float, float],
    epsilon: str | None,
    devices: int,
    crs: str,
    title: str,
    rounds: str,
    protocol: str | None,
    settings: tuple[str, ...],
) -> Campaign:
    """Campaign that asks for places."""
    from psd.local.answer_design import parse_settings
    from psd.local.campaign_design import design

    if epsilon is None:
        raise click.UsageError("with --bounds, --epsilon must be given")
    about: dict[str, Any] = {"crs": crs, "title": title, "protocol": protocol}
    stated = parse_settings(settings)
    return design(bounds, epsilon, devices, rounds=int(rounds), settings=stated, **about)


def _design_answers(
    options: str | None,
    ends: tuple[float, float] | None,
    epsilon: str | None,
    devices: int,
    title: str,
    protocol: str | None,
    settings: tuple[str, ...],
) -> Campaign:
    """Campaign that asks for options or numbers."""
    from psd.local.answer_design import (
        design_numbers,
        design_options,
        parse_settings,
        read_options,
    )

    stated = parse_settings(settings)
    if options is not None:
        texts = read_options(options)
        return design_options(
            texts, epsilon, devices, title=title, protocol=protocol, settings=stated
        )
    if epsilon is None:
        raise click.UsageError("with --range, --epsilon must be given")
    low, high = ends or (0.0, 0.0)
    return design_numbers(
        low, high, epsilon, devices, title=title, protocol=protocol, settings=stated
    )
