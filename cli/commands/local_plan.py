"""psd local plan: expected errors of campaigns, beside the central model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.table import TABLE_OUTPUT
from ..options.values import INTEGER, NUMBER, parse_integer, split_commas
from ..output.columns import print_rows
from ..output.tables import FORMATS, write_table
from ..output.terminal import show_builds
from ..output.text_files import output_format

if TYPE_CHECKING:
    import pandas

__all__ = ["plan_campaigns"]


@click.command("plan", cls=Command, short_help="Predict errors, beside the central model.")
@click.option("--bounds", nargs=4, type=NUMBER, required=True, metavar="W S E N", help="Bounds.")
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the bounds.")
@click.option(
    "--devices",
    required=True,
    metavar="N,M,...",
    help="Expected numbers of devices, separated by commas.",
)
@click.option(
    "--epsilon",
    "epsilons",
    required=True,
    metavar="E,F,...",
    help="Epsilons of a report, separated by commas; the central release has the same.",
)
@click.option(
    "--rounds", default="4", show_default=True, metavar="R,S,...", help="Numbers of rounds."
)
@click.option(
    "--density",
    "densities",
    default="uniform,clustered,coastal,places",
    show_default=True,
    metavar="A,B,...",
    help="Assumed distributions of people.",
)
@click.option(
    "--points",
    metavar="FILE",
    help="CSV file of PUBLIC points, columns lon and lat, in place of the assumed distributions.",
)
@click.option("--runs", type=INTEGER, default=2, show_default=True, help="Populations of each.")
@click.option("--seed", type=INTEGER, default=0, show_default=True, help="Seed of the populations.")
@TABLE_OUTPUT
def plan_campaigns(
    bounds: tuple[float, float, float, float],
    crs: str,
    devices: str,
    epsilons: str,
    rounds: str,
    densities: str,
    points: str | None,
    runs: int,
    seed: int,
    form: str | None,
    output: str | None,
    overwrite: bool,
) -> None:
    """Predict the errors of campaigns, and of a release with a curator. Reads no private data.

    The command draws populations from public assumptions, simulates campaigns of them by their
    exact laws, builds central releases of the same epsilon, and measures the errors of boxes. The
    factor is what it costs that the collector is not trusted. An error is the geometric mean of
    the mean relative errors of boxes of 0.01 to 10 % of the area.

    \b
    Examples:
      psd local plan --bounds 126.4 37 127.6 38 --devices 10000,1000000 --epsilon 1
      psd local plan --bounds 126.4 37 127.6 38 --devices 100000 --epsilon 1,2,4 --rounds 1,4 \\
          --density clustered -o plan.csv
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.local.randomization import read_points
    from psd.planning.local_plan import plan
    from psd.space.domain import Domain

    form = output_format(form, output, FORMATS)
    inputs = [points] if points else []
    check_targets(filter(None, [output]), overwrite=overwrite, inputs=inputs)
    with show_builds("simulating populations") as finished:
        result = plan(
            [parse_integer(text) for text in split_commas(devices)],
            domain=Domain(bounds=bounds, crs=crs),
            epsilons=split_commas(epsilons),
            rounds=[parse_integer(text) for text in split_commas(rounds)],
            densities=split_commas(densities),
            points=read_points(points, "lon", "lat") if points else None,
            runs=runs,
            seed=seed,
            progress=finished,
        )
    _write_plan(result.table, form, output, overwrite=overwrite)


def _write_plan(table: pandas.DataFrame, form: str, output: str | None, *, overwrite: bool) -> None:
    """Write the table to the screen or to a file."""
    if form != "table":
        write_table(table, form, output, overwrite=overwrite)
        return
    print_rows([_shown(row) for row in table.to_dict("records")])
    click.echo(
        "Percent off: mean error of boxes of 10 % of the area, in % of the devices.\n"
        "Factor: error of the campaign over that of a central release of the same epsilon."
    )


def _shown(row: dict[Any, Any]) -> dict[str, object]:
    """Row of the table for people."""
    return {
        "density": row["density"],
        "devices": f"{row['devices']:,}",
        "epsilon": row["epsilon"],
        "rounds": row["rounds"],
        "error": f"{row['error']:.3f}",
        "percent_off": f"{row['percent_off']:.2f}",
        "central_error": f"{row['central_error']:.4f}",
        "factor": f"{row['factor']:.1f}",
    }
