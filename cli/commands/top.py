"""psd top: the cells with most records, and the probability that each is among the top k."""

from __future__ import annotations

from typing import Any

import click

from ..options.command import Command
from ..options.common import RELEASE
from ..options.regions import read_regions
from ..options.table import TABLE_OUTPUT
from ..options.time_slices import SLICE, release_at
from ..options.values import INTEGER
from ..output.tables import FORMATS, state_source, write_table
from ..output.terminal import show_stage
from ..output.text_files import output_format

__all__ = ["command"]


@click.command("top", cls=Command)
@RELEASE
@SLICE
@click.option("-k", type=INTEGER, default=10, show_default=True, help="Number of cells to list.")
@click.option(
    "--size", nargs=2, type=INTEGER, metavar="C R", help="Rank a raster of C columns and R rows."
)
@click.option(
    "--level",
    metavar="NAME",
    help="Rank the regions of this level, of a release with regions; by default the lowest.",
)
@click.option("--boxes", type=click.Path(), help="Rank the boxes of a CSV instead of cells.")
@click.option("--polygons", type=click.Path(), help="Rank polygons instead of cells.")
@click.option(
    "--by",
    type=click.Choice(["count", "density"]),
    default="count",
    show_default=True,
    help="Quantity to rank by.",
)
@click.option(
    "--draws", type=INTEGER, default=2000, show_default=True, help="Number of Monte Carlo draws."
)
@click.option("--seed", type=INTEGER, default=0, show_default=True, help="Seed of the draws.")
@TABLE_OUTPUT
def command(
    release: str,
    slice_name: str | None,
    k: int,
    size: tuple[int, int] | None,
    level: str | None,
    boxes: str | None,
    polygons: str | None,
    by: str,
    form: str | None,
    output: str | None,
    overwrite: bool,
    **simulation: int,
) -> None:
    """Rank the leaves, the cells of a raster, boxes or polygons, from the release alone.

    Of a release with regions, the regions of a level are ranked in place of the leaves.

    The true counts are drawn many times from their joint distribution, given the release and its
    predicted errors. The probability of a cell is the share of draws in which it is among the
    top k. The command costs no epsilon.

    \b
    Examples:
      psd top seoul.psd.parquet -k 10 --size 60 50
      psd top seoul.psd.parquet -k 3 --polygons districts.gpkg
      psd top seoul.psd.parquet -k 20 --by density --format csv
      psd top wards.psd.parquet -k 5 --level district
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd.api.region_release import RegionRelease

    form = output_format(form, output, FORMATS)
    if sum(map(bool, (size, level, boxes, polygons))) > 1:
        raise click.UsageError(
            "at most one of --size, --level, --boxes and --polygons must be given"
        )
    if output:
        check_free(output, overwrite=overwrite, inputs=(release, boxes or "", polygons or ""))
    regions = read_regions((), boxes, polygons, None) if boxes or polygons else None
    with show_stage() as stage:
        stage("reading")
        loaded = release_at(release, slice_name)
        if level is not None and not isinstance(loaded, RegionRelease):
            raise click.UsageError(
                f"--level must be used with a release that counts regions by name, got {level!r} "
                "with a release without any"
            )
        more: dict[str, Any] = {"level": level} if level is not None else {}
        stage("drawing")
        ranked = loaded.top(
            k,
            size=size,
            regions=regions,
            by=by,  # type: ignore[arg-type]
            **simulation,
            **more,
        )
    state_source(ranked, loaded.source)
    write_table(ranked, form, output, overwrite=overwrite)
