"""psd local design: campaigns that ask for places, options, numbers or words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.named_regions import regions_option
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
@regions_option(
    "In a campaign they are files, and a point in none of them is outside. By default, --bounds "
    "are the extent of the regions."
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
@click.option(
    "--words", is_flag=True, help="Ask for a word of any kind; a list of words reads the reports."
)
@click.option("--epsilon", help="Epsilon of a report, unless settings state its law.")
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
    help="Setting of the protocol in place of the best one. In place of --epsilon stand p=0.5, "
    "q=0.75 and flips=64 of rappor, and for options truth=0.75 of k-ary.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def design_campaign(
    output: str,
    epsilon: str | None,
    devices: int,
    title: str,
    protocol: str | None,
    settings: tuple[str, ...],
    overwrite: bool,
    **question: Any,
) -> None:
    """Design a campaign from epsilon and the expected number of devices, and write its file.

    Give the question: --bounds for places, --regions for named regions, --options for a list of
    answers, --range for numbers, or --words for words of which no list exists before.

    Each device is in one of several groups, one for each round. The first is asked for the cell of
    a coarse grid. `psd local next` cuts the cells with many devices for the group after it. With
    --rounds 1 all groups are asked together, for grids of different sizes. Epsilon is not divided:
    a device answers once. Named regions are
    asked in one round, a group for each level.

    \b
    Examples:
      psd local design -o c.json --bounds 126.4 37 127.6 38 --epsilon 1 --devices 100000
      psd local design -o c.json --regions wards.gpkg --regions id=ward --epsilon 1 --devices 9000
      psd local design -o c.json --options modes.txt --epsilon 1 --devices 5000
      psd local design -o c.json --range 0 120 --epsilon 1 --devices 5000
      psd local design -o c.json --words --epsilon 1 --devices 100000 --set bits=64
      psd local design -o c.json --words --devices 9000 --set flips=64 --set p=0.5 --set q=0.75
    """  # noqa: D301
    from psd._util.atomic_write import write_file
    from psd.local.answer_design import parse_settings
    from psd.local.campaigns import encode_campaign

    subjects = [question["regions"] or question["bounds"], question["options"], question["ends"]]
    if [*subjects, question["words"] or None].count(None) != 3:
        raise click.UsageError(
            "one of --bounds, --regions, --options, --range and --words must be given"
        )
    if epsilon is None and not settings:
        raise click.UsageError(
            "--epsilon must be given, or with --set what it follows from: p, q and flips of "
            "rappor, or for --options truth of k-ary"
        )
    stated = {"title": title, "protocol": protocol, "settings": parse_settings(settings)}
    if question["regions"] is not None:
        campaign = _design_regions(question, epsilon, devices, stated)
    elif question["bounds"] is not None:
        campaign = _design_places(question, epsilon, devices, stated)
    else:
        campaign = _design_answers(question, epsilon, devices, stated)
    write_file(output, encode_campaign(campaign), overwrite=overwrite)
    click.echo(f"wrote {output}; campaign {campaign.digest}")


def _design_regions(
    question: dict[str, Any], epsilon: Any, devices: int, stated: dict[str, Any]
) -> Campaign:
    """Campaign that asks for named regions."""
    from psd.local.region_design import design_regions, read_regions
    from psd.publish.region_text import regions_from_table

    outside = {"gaps": "outside"} if "file" in question["regions"] else {}
    files = regions_from_table({**outside, **question["regions"]})
    regions = read_regions(files, question["crs"], question["bounds"])
    return design_regions(regions, epsilon, devices, **stated)


def _design_places(
    question: dict[str, Any], epsilon: Any, devices: int, stated: dict[str, Any]
) -> Campaign:
    """Campaign that asks for places."""
    from psd.local.campaign_design import design

    about: dict[str, Any] = {"crs": question["crs"], "rounds": int(question["rounds"]), **stated}
    return design(question["bounds"], epsilon, devices, **about)


def _design_answers(
    question: dict[str, Any], epsilon: str | None, devices: int, stated: dict[str, Any]
) -> Campaign:
    """Campaign that asks for options, numbers or words."""
    from psd.local.answer_design import design_numbers, design_options, design_words
    from psd.local.answer_lists import read_list

    if question["words"]:
        return design_words(epsilon, devices, **stated)
    if question["options"] is not None:
        return design_options(read_list(question["options"], "options"), epsilon, devices, **stated)
    if epsilon is None:
        raise click.UsageError("with --range, --epsilon must be given")
    low, high = question["ends"]
    return design_numbers(low, high, epsilon, devices, **stated)
