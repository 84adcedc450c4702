"""psd difference: the same regions in two releases."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE
from ..options.regions import read_regions
from ..options.table import TABLE_OUTPUT
from ..options.time_slices import OTHER_SLICE, SLICE, release_at
from ..options.values import NUMBER
from ..output.answers import warn_of_regions_beyond
from ..output.tables import FORMATS, state_source, write_table
from ..output.terminal import show_stage
from ..output.text_files import output_format

__all__ = ["command"]


@click.command("difference", cls=Command)
@RELEASE
@click.argument("other", type=click.Path(dir_okay=False))
@SLICE
@OTHER_SLICE
@click.option(
    "--box", multiple=True, nargs=4, type=NUMBER, metavar="W S E N", help="A box; may be repeated."
)
@click.option(
    "--boxes",
    type=click.Path(),
    help="CSV, XLSX or Parquet file of boxes with the columns west, south, east, north and "
    "optionally id.",
)
@click.option(
    "--polygons", type=click.Path(), help="Polygons: GeoPackage, GeoJSON, GeoParquet, ..."
)
@click.option("--ratio", is_flag=True, help="Divide the counts instead of subtracting them.")
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@TABLE_OUTPUT
def command(
    release: str,
    other: str,
    slice_name: str | None,
    other_slice: str | None,
    box: tuple[tuple[float, float, float, float], ...],
    boxes: str | None,
    polygons: str | None,
    ratio: bool,
    confidence: float,
    form: str | None,
    output: str | None,
    overwrite: bool,
) -> None:
    """Subtract the counts in OTHER from those in RELEASE, or divide them, with predicted errors.

    Both releases must have the same bounds, CRS, coordinate resolution and lattice. The comparison
    costs no epsilon. A person whose records are in both releases has the sum of both epsilons, and
    of both deltas where releases state them.

    \b
    Examples:
      psd difference june.psd.parquet may.psd.parquet --boxes boxes.csv
      psd difference june.psd.parquet may.psd.parquet --polygons districts.gpkg --ratio
      psd difference year.psd.parquet year.psd.parquet --slice 2024-06 --other-slice 2024-05 \\
          --boxes boxes.csv
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd.api import differences as between

    form = output_format(form, output, FORMATS)
    if output:
        inputs = (release, other, boxes or "", polygons or "")
        check_free(output, overwrite=overwrite, inputs=inputs)
    regions = read_regions(box, boxes, polygons, None)
    with show_stage() as stage:
        stage("reading")
        first, second = (
            release_at(release, slice_name),
            release_at(other, other_slice, "--other-slice"),
        )
        stage("answering")
        verb = between.ratio if ratio else between.difference
        table = verb(first, second, regions, confidence=confidence)
    warn_of_regions_beyond(first, regions)
    state_source(table, first.source, second.source)
    write_table(table, form, output, overwrite=overwrite)
