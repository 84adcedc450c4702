"""psd export: the cells of a release for GIS programs."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE, overwrite
from ..options.time_slices import SLICE, release_at
from ..options.values import INTEGER
from ..output.terminal import show_stage

__all__ = ["command"]


@click.command("export", cls=Command)
@RELEASE
@SLICE
@click.argument("output", type=click.Path())
@click.option(
    "--cells",
    type=click.Choice(["leaves", "all"]),
    default="leaves",
    show_default=True,
    help="Only the leaves, or the cells of all levels.",
)
@click.option(
    "--size",
    nargs=2,
    type=INTEGER,
    metavar="C R",
    help="Columns and rows of a raster; 256 256 by default.",
)
@click.option("--table", help="Table of a postgresql:// output, such as public.seoul.")
@overwrite
def command(
    release: str,
    slice_name: str | None,
    output: str,
    cells: str,
    size: tuple[int, int] | None,
    table: str | None,
    overwrite: bool,
) -> None:
    """Write cells, estimates and errors; the ending of OUTPUT selects the format.

    Formats: .gpkg (GeoPackage), .parquet (GeoParquet), .geojson, .csv; rasters of counts,
    densities and errors: .tif (GeoTIFF), .npy (NumPy). An OUTPUT postgresql://... is a PostGIS
    database, in which --table names the table. The density is the estimate per square kilometre,
    or per square unit of the CRS if its scale is not known.

    \b
    Examples:
      psd export seoul.psd.parquet seoul.gpkg
      psd export seoul.psd.parquet seoul.csv --cells all
      psd export seoul.psd.parquet seoul.tif --size 600 500
      psd export seoul.psd.parquet postgresql://ann@db.example.org/city --table public.seoul
      psd export year.psd.parquet june.gpkg --slice 2024-06
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd._util.postgres import display_name
    from psd.export import find_format, is_database

    target = output
    if is_database(find_format(output)):
        target = f"table {table} of {display_name(output)}"
    else:
        check_free(output, overwrite=overwrite, inputs=[release])
    with show_stage() as stage:
        stage("reading")
        loaded = release_at(release, slice_name)
        stage("writing")
        loaded.export(
            output,
            cells=cells,  # type: ignore[arg-type]
            size=size,
            table=table,
            overwrite=overwrite,
        )
    click.echo(f"wrote {target}")
