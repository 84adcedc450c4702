"""psd quantiles: class breaks of a heat map."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE
from ..options.table import TABLE_OUTPUT
from ..options.time_slices import SLICE, release_at
from ..options.values import INTEGER, NUMBER
from ..output.tables import FORMATS, state_source, write_table
from ..output.terminal import show_stage
from ..output.text_files import output_format

__all__ = ["command"]


@click.command("quantiles", cls=Command)
@RELEASE
@SLICE
@click.option("--classes", type=INTEGER, default=5, show_default=True, help="Number of classes.")
@click.option(
    "--size",
    nargs=2,
    type=INTEGER,
    default=(64, 64),
    metavar="C R",
    help="Columns and rows of the raster whose cells are classified; 64 64 by default.",
)
@click.option(
    "--weight",
    type=click.Choice(["area", "people"]),
    default="area",
    show_default=True,
    help="Whether classes have equal areas or equal numbers of people.",
)
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@click.option(
    "--draws", type=INTEGER, default=100, show_default=True, help="Number of Monte Carlo draws."
)
@click.option("--seed", type=INTEGER, default=0, show_default=True, help="Seed of the draws.")
@TABLE_OUTPUT
def command(
    release: str,
    slice_name: str | None,
    classes: int,
    size: tuple[int, int],
    weight: str,
    confidence: float,
    draws: int,
    seed: int,
    form: str | None,
    output: str | None,
    overwrite: bool,
) -> None:
    """Class breaks of density for a heat map, with errors.

    Densities are records per square kilometre of ground, or per square unit of a local CRS. The
    error is the standard deviation of a break over repeated draws of the noise. The command costs
    no epsilon.

    \b
    Examples:
      psd quantiles seoul.psd.parquet
      psd quantiles seoul.psd.parquet --classes 7 --size 120 100 --weight people --format csv
    """  # noqa: D301
    from psd._util.atomic_write import check_free

    form = output_format(form, output, FORMATS)
    if output:
        check_free(output, overwrite=overwrite, inputs=[release])
    with show_stage() as stage:
        stage("reading")
        loaded = release_at(release, slice_name)
        stage("drawing")
        breaks = loaded.quantiles(
            classes,
            size=size,
            weight=weight,  # type: ignore[arg-type]
            confidence=confidence,
            draws=draws,
            seed=seed,
        )
    state_source(breaks, loaded.source)
    write_table(breaks, form, output, overwrite=overwrite)
