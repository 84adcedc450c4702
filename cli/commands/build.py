"""psd build: from locations to a release file."""

from __future__ import annotations

from typing import Any

import click

from psd.publish.fields import FIELDS

from ..options.command import Command, options_of
from ..options.common import overwrite
from ..options.fields import field_options
from ..options.reading import SOURCES
from ..options.recipe import recipe_from_options, recipe_options

__all__ = ["command"]

# The order of the help: what a release is first, then its input.
_GROUPS = ("Release", "Area", "Unit of privacy", "Time", "Regions", "Input", "Privacy budget",
           "Private output")  # fmt: skip
_NAMES = [field.name for field in sorted(FIELDS, key=lambda field: _GROUPS.index(field.group))]


@click.command("build", cls=Command)
@SOURCES
@options_of("Release")(
    "-o", "--output", required=True, type=click.Path(), help="Release file to write."
)
@field_options(*_NAMES, into="fields", epsilon={"required": True})
@overwrite
@recipe_options
def command(
    inputs: tuple[str, ...],
    output: str,
    fields: dict[str, Any],
    overwrite: bool,
    dry_run: bool,
    save_recipe: str | None,
) -> None:
    """Build a differentially private release of locations.

    Inputs are CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf and GeoJSON files, folders, file name
    patterns, addresses s3://, gs:// and postgresql://, or tallies of `psd tally`. Records outside
    the bounds are left out. With --ledger and --dataset, epsilon is charged before noise is drawn,
    and a charge is never undone. Except with --report-private, the output does not depend on the
    data.

    \b
    Examples:
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --user user_id --max-contributions 4
      psd build taxi.csv -o taxi.psd.parquet --epsilon 0.5 --crs EPSG:5179 --x x --y y \\
          --bounds 900000 1900000 1000000 2000000 --method quadtree --set height=9
      psd build visits.csv -o wards.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --regions wards.gpkg --region-id ward --time time --slices 2024-01..2024-12
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.5 --boundary seoul.gpkg \\
          --ledger city.ledger --dataset visits
    """  # noqa: D301
    from ..output.publishing import print_requests, run_recipe
    from ..output.publishing import save_recipe as write_recipe

    recipe = recipe_from_options(inputs, output, fields)
    if save_recipe:
        write_recipe(recipe, save_recipe, overwrite=overwrite)
    if dry_run:
        print_requests(recipe)
    else:
        run_recipe(recipe, overwrite=overwrite)
