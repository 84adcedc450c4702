"""psd choose: one private choice among public candidates, charged to a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.choice import choice_options
from ..options.command import Command, options_of
from ..options.values import INTEGER, NUMBER
from ..output.choices import make_choice

__all__ = ["command"]

_area = options_of("Area")


@click.group(
    "choose",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Choose among public candidates by private records, and charge epsilon to a ledger.

    A choice names a candidate that records score high, for one price, without a release. It prints
    no score, no revenue and no count: `psd ask` answers these, for epsilon of their own. One
    release of `psd build` answers any number of questions for one epsilon; use `psd choose` for one
    decision among overlapping or many candidates.

    \b
    Examples:
      psd choose site visits.csv --candidates sites.csv --radius 2000 --epsilon 0.1 \\
          --ledger city.ledger --dataset visits
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("site", cls=Command, short_help="Choose sites by the records near them.")
@options_of("Candidates")(
    "--candidates",
    required=True,
    type=click.Path(readable=False),
    help="Public file of candidates with a column id: points (CSV with lon and lat, or a vector "
    "file) with --radius, or polygons. Never made from the data.",
)
@options_of("Candidates")(
    "--radius", type=NUMBER, metavar="METRES", help="Radius of the catchments of points."
)
@options_of("Candidates")(
    "--best",
    type=INTEGER,
    default=1,
    show_default=True,
    metavar="J",
    help="Choose J sites, one after another, each with epsilon / J.",
)
@options_of("Candidates")(
    "--cover", is_flag=True, help="With --best: count only records that no chosen site covers."
)
@options_of("Candidates")(
    "--target",
    type=INTEGER,
    metavar="N",
    help="Choose the site whose number of records is closest to N, instead of the largest one. It "
    "may be off by twice as much.",
)
@_area(
    "--bounds",
    nargs=4,
    type=NUMBER,
    metavar="W S E N",
    help="Count only records inside. By default the box around all catchments.",
)
@choice_options
def choose_site(
    candidates: str,
    radius: float | None,
    best: int,
    cover: bool,
    target: int | None,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    **options: Any,
) -> None:
    """Choose the site whose catchment has most records.

    A record counts in each catchment that it lies in. Epsilon is charged at all points of the area,
    also where no catchment is.

    \b
    Examples:
      psd choose site visits.csv --candidates sites.csv --radius 2000 --epsilon 0.1 \\
          --ledger city.ledger --dataset visits
      psd choose site visits.csv --candidates wards.gpkg --best 3 --cover --epsilon 0.3 \\
          --ledger city.ledger --dataset people --user user_id --max-contributions 4
    """  # noqa: D301
    from psd.choosing import Sites
    from psd.space.candidate_files import read_catchments

    def sites() -> Sites:
        return Sites(
            catchments=read_catchments(Path(candidates), radius=radius, crs=crs),
            best=best,
            cover=cover,
            target=target,
            bounds=bounds,
            coordinate_resolution=coordinate_resolution,
            files=(candidates,),
        )

    make_choice(sites, "records", **options)
