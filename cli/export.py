"""psd export: the cells of a release for GIS programs."""

from __future__ import annotations

import click

from .options import RELEASE, integer, overwrite, stages

__all__ = ["command"]


@click.command("export", short_help="Write the cells for a GIS program.")
@RELEASE
@click.argument("output", type=click.Path())
@click.option(
    "--cells",
    type=click.Choice(["leaves", "all"]),
    default="leaves",
    show_default=True,
    help="The finest cells, or those of every level.",
)
@click.option(
    "--size",
    nargs=2,
    type=integer,
    metavar="C R",
    help="Columns and rows of a raster, 256 256 by default.",
)
@overwrite
def command(
    release: str, output: str, cells: str, size: tuple[int, int] | None, overwrite: bool
) -> None:
    """Write cells, estimates and errors; the ending of OUTPUT names the format.

    Formats: .gpkg (GeoPackage), .parquet (GeoParquet), .geojson, .csv; and rasters of counts,
    densities and errors: .tif (GeoTIFF), .npy (NumPy).

    \b
    Examples:
      psd export seoul.psd.parquet seoul.gpkg
      psd export seoul.psd.parquet seoul.csv --cells all
      psd export seoul.psd.parquet seoul.tif --size 600 500
    """  # noqa: D301
    from pathlib import Path

    from psd.export import format_of
    from psd.files import check_free
    from psd.release import Release

    format_of(Path(output))
    check_free(output, overwrite=overwrite, inputs=[release])
    with stages() as stage:
        stage("reading")
        loaded = Release.load(release)
        stage("writing")
        loaded.export(output, cells=cells, size=size, overwrite=overwrite)  # type: ignore[arg-type]
    click.echo(f"wrote {output}")
