"""psd export: cells of a release for GIS programs, synthetic points, or a folder to publish."""

from __future__ import annotations

from typing import Any

import click

from psd import _apps

from ..options.command import INTEGER, Command, cell_level, refuse_others
from ..options.common import RELEASES, overwrite, unreliable_options
from ..options.time_slices import (
    SLICE,
    VIEWED,
    VIEWED_CATEGORY,
    VIEWED_EACH_OF,
    is_cube,
    release_at,
    release_viewed,
)
from ..output.terminal import print_success, show_stage
from . import module_of_app

_ANY = {"release", "slice_name", "when", "category", "output", "crs", "overwrite", "max_nodes"}
_OF_POINTS = _ANY | {"points", "n", "seed"}
_OF_CELLS = _ANY | {"each", "cells", "level", "size", "band", "unreliable", "threshold", "table"}


@click.command("export", cls=Command)
@RELEASES
@SLICE
@VIEWED
@VIEWED_CATEGORY
@VIEWED_EACH_OF
@click.argument("output", type=click.Path())
@click.option(
    "--site",
    is_flag=True,
    help="Write the folder OUTPUT, which can be published as it is: pages, maps, the releases, "
    "their tables, and entries of catalogues.",
)
@click.option(
    "--cells",
    type=click.Choice(["leaves", "all"]),
    default="leaves",
    show_default=True,
    help="Only the leaves, or the cells of all levels.",
)
@click.option(
    "--level",
    help="Coarser cells that tile the domain: those of this level, from 0, and leaves above it. "
    "Of a release with regions the name of a level of regions; by default the lowest.",
)
@click.option(
    "--size",
    nargs=2,
    type=INTEGER,
    metavar="C R",
    help="Columns and rows of a raster; 256 256 by default.",
)
@click.option(
    "--band",
    help="The only band of a GeoTIFF: count, density, error, classes, or the mean of a value, such "
    "as mean_fare. By default it has the first three, and means and sums of values with their "
    "intervals. classes are those of the density, with a colour table, which programs show as a "
    "map.",
)
@click.option(
    "--crs",
    help="CRS of the file, that of the release by default. GeoJSON is always in EPSG:4326; rasters "
    "and CSV are in the CRS of the release.",
)
@unreliable_options
@click.option("--table", help="Table of a postgresql:// output, such as public.seoul.")
@click.option(
    "--points",
    is_flag=True,
    help="Write synthetic points in place of cells: no people, but as many in each cell as its "
    "estimate rounded; of all slices of a series. Into .parquet, .gpkg, .fgb, .geojson or .csv.",
)
@click.option(
    "-n",
    "--number",
    "n",
    type=INTEGER,
    metavar="N",
    help="Number of points, in the proportions of the estimates; by default the estimates.",
)
@click.option("--seed", type=INTEGER, help="Seed of the points; by default a new one.")
@overwrite
def command(
    releases: tuple[str, ...],
    slice_name: str | None,
    when: str | None,
    category: str | None,
    each: tuple[str, ...],
    output: str,
    site: bool,
    cells: str,
    level: str | None,
    size: tuple[int, int] | None,
    band: str | None,
    crs: str | None,
    unreliable: str,
    threshold: float | tuple[float, float],
    table: str | None,
    points: bool,
    n: int | None,
    seed: int | None,
    overwrite: bool,
) -> None:
    """Write cells, estimates and errors; the ending of OUTPUT selects the format.

    Formats: .gpkg (GeoPackage, with styles for QGIS), .parquet (GeoParquet), .fgb (FlatGeobuf),
    .geojson, .csv, .xlsx, .pmtiles (vector tiles for web maps); rasters of counts, densities and
    errors: .tif (GeoTIFF), .npy (NumPy). An OUTPUT postgresql://... is a PostGIS database, in which
    --table names the table. The density is the estimate per square kilometre of ground, or per
    square unit of a local CRS. Cells are reliable, and of a quality, as answers of
    `psd query` are.

    With --site, OUTPUT is a folder for one or several releases, which any static host serves and
    every browser opens from a disk. It is replaced as a whole, if psd wrote all that is in it.

    \b
    Examples:
      psd export seoul.psd.parquet seoul.gpkg
      psd export seoul.psd.parquet seoul.csv --cells all
      psd export seoul.psd.parquet seoul.fgb --crs EPSG:5179 --unreliable drop
      psd export seoul.psd.parquet seoul.tif --size 600 500 --band classes
      psd export seoul.psd.parquet postgresql://ann@db.example.org/city --table public.seoul
      psd export year.psd.parquet june.gpkg --slice 2024-06
      psd export cube.psd.parquet mornings.gpkg --when 'weekdays 07-09'
      psd export cube.psd.parquet days.csv --when 2024-05 --each slice --level 5
      psd export seoul.psd.parquet points.parquet --points --seed 1
      psd export seoul.psd.parquet year.psd.parquet site --site
    """  # noqa: D301
    if site:
        refuse_others({"site", "overwrite", "max_nodes"}, "with --site")
        pages = module_of_app(_apps.OPTIONS["export --site"], what="psd export --site")
        pages.write_site(releases, output, overwrite=overwrite)
        return
    if len(releases) > 1:
        raise click.UsageError(
            f"RELEASE must be one file without --site, got {len(releases)}; OUTPUT stands last"
        )
    (release,) = releases

    from psd._util.atomic_write import check_free
    from psd._util.postgres import display_name
    from psd.export import find_format, is_database

    if points:
        refuse_others(_OF_POINTS, "with --points, which are drawn of all cells")
        if not is_database(find_format(output)):
            check_free(output, overwrite=overwrite, inputs=[release])
        with show_stage() as stage:
            stage("reading")
            loaded = release_viewed(release, slice_name, when, category)
            stage("writing")
            chosen: dict[str, Any] = {"points": True, "n": n, "seed": seed, "crs": crs}
            chosen |= {"when": when, "category": category}
            number = loaded.export(output, **chosen, overwrite=overwrite)
        print_success(f"wrote {output}: {number:,} synthetic points, which are no people")
        return
    refuse_others(_OF_CELLS, "without --points")
    target = output
    if is_database(find_format(output)):
        target = f"table {table} of {display_name(output)}"
    else:
        check_free(output, overwrite=overwrite, inputs=[release])
    with show_stage() as stage:
        stage("reading")
        loaded = release_viewed(release, slice_name, when, category, each)
        if loaded.slices is not None and not is_cube(loaded):
            loaded = release_at(release, slice_name)  # refuses it
        stage("writing")
        own: dict[str, Any] = {"level": level}
        if not loaded.levels:
            own = {"level": cell_level(level), "cells": cells, "table": table}
        elif cells != "leaves" or table:
            name = "cells" if cells != "leaves" else "table"
            raise click.UsageError(
                f"--{name} must be left out with a release of regions, whose cells are parts of "
                "polygons; --level names a level of regions, and a raster has cells of one size"
            )
        dropped = loaded.export(
            output,
            **own,
            when=when,
            category=category,
            each=each or None,
            size=size,
            band=band,
            crs=crs,
            unreliable=unreliable,  # type: ignore[arg-type]
            threshold=threshold,
            overwrite=overwrite,
        )
    left_out = f", without {dropped:,} that are unreliable" if unreliable == "drop" else ""
    print_success(f"wrote {target}{left_out}")
