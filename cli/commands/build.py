"""psd build: from locations to a release file."""

from __future__ import annotations

from typing import Any

import click

from psd.decompositions import methods

from ..options.about import about_option
from ..options.area import area_options
from ..options.command import READ_KEYS, Command, chain_options, options_of
from ..options.common import overwrite
from ..options.ledger import ledger_options
from ..options.noise import noise_options
from ..options.private_output import private_output_option
from ..options.reading import SOURCES, read_option
from ..options.recipe import recipe_from_options, recipe_options
from ..options.time_slices import per_slice_option, slices_option
from ..options.unit import unit_options

__all__ = ["command"]

_release = options_of("Release")

_OPTIONS = (
    _release("-o", "--output", required=True, type=click.Path(), help="Release file to write."),
    _release("--epsilon", required=True, help="Epsilon of this release, a decimal such as 0.5."),
    noise_options,
    _release(
        "--method",
        type=click.Choice((*methods(), "none")),
        help="Method that divides space; `psd methods` describes all, and none is for --regions. "
        "By default auto; with --set workload, grid for tiny boxes and quadtree for others.",
    ),
    _release(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Parameter of the method; may be repeated. workload=FILE.csv divides epsilon in "
        "favour of the boxes in the file (columns west,south,east,north); workload=SIZE, for boxes "
        "of that size: tiny, small, medium, large or huge. Choose it without looking at the data. "
        "estimate= and density= select how estimates are computed from the noisy counts; each "
        "method has its own default. min-cell=METRES is the smallest side on the ground of a cell "
        "of a method that adapts to the data, 0 for no limit; public; by default 5, but 0 for a "
        "local CRS and for narrower bounds; sizes that are given, such as height=12, are not "
        "limited (--min-cell METRES is the same).",
    ),
    about_option,
    overwrite,
    area_options,
    unit_options(
        bound="Largest number of records kept of each user, or of each day or slice with --per. "
        "auto: chosen privately. auto:share=0.05,over=250,limit=1000 spends this share of epsilon "
        "on the choice, aims at 250 users with more records, and chooses at most 1000.",
        per=("day", "slice", "record"),
    ),
    slices_option,
    per_slice_option,
    read_option(*READ_KEYS, "coordinate_resolution", "engine"),
    ledger_options,
    private_output_option,
    recipe_options,
)

_SPELLINGS = {
    "--coordinate-resolution": "--read coordinate_resolution=",
    "--min-cell": "--set min_cell=",
    "--report-private": "--private-output report",
    "--keep-tally": "--private-output tally=",
}


@click.command("build", cls=Command, other_spellings=_SPELLINGS)
@SOURCES
@chain_options(*_OPTIONS)
def command(inputs: tuple[str, ...], **options: Any) -> None:
    """Build a differentially private release of locations.

    Inputs are CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf and GeoJSON files, folders of such
    files, file name patterns, addresses s3://... and gs://... of Parquet and CSV, and PostGIS
    addresses postgresql://... with --read table=NAME or --read query=SELECT. Inputs may also be
    tallies of `psd tally`: the tallies of all parts give the same release as all records together.
    Records outside the bounds are left out. Except with --report-private, the printed output does
    not depend on the data.

    With --ledger and --dataset, epsilon is charged to the budget of the dataset before noise is
    drawn. If the budget does not suffice, nothing is built. A charge is never undone.

    \b
    Examples:
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --user user_id --max-contributions 4
      psd build accidents.csv -o uk.psd.parquet --epsilon 0.1 \\
          --bounds -7.6 49.8 1.9 60.9 --method grid
      psd build taxi.csv -o taxi.psd.parquet --epsilon 0.5 --crs EPSG:5179 \\
          --read x=x --read y=y --bounds 900000 1900000 1000000 2000000 \\
          --method quadtree --set height=9
      psd build accidents.csv -o uk.psd.parquet --epsilon 0.1 \\
          --bounds -7.6 49.8 1.9 60.9 --method cascade --covariate land.gpkg
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.1 \\
          --bounds 126.4 37 127.6 38 --set workload=districts.csv
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --boundary seoul.gpkg \\
          --user user_id --count users
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --bounds private:share=0.1 \\
          --crs EPSG:5179 --read x=x --read y=y --user user_id --max-contributions auto
      psd build postgresql://ann@db.example.org/city --read table=public.visits \\
          -o seoul.psd.parquet --epsilon 0.1 --bounds 126.4 37 127.6 38
      psd build visits.csv -o year.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --user user_id --max-contributions 4 --read time=time \\
          --read time_zone=Asia/Seoul --slices 2024-01..2024-12
      psd build visits.csv -o wards.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --regions wards.gpkg --regions id=ward --regions parent=district \\
          --regions gaps=elsewhere
      psd build visits.csv -o tiles.psd.parquet --epsilon 1 --crs EPSG:3857 --read x=x \\
          --read y=y --bounds 14070000 4439000 14205000 4580000 --regions tiles=8..12 \\
          --method none --set estimate=integer
      psd build january.tally february.tally -o seoul.psd.parquet --epsilon 1
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.5 --bounds 126.4 37 127.6 38 \\
          --ledger city.ledger --dataset visits:analyst=ann
      psd build hdfs:///city/visits.parquet --read engine=spark://node1:7077 \\
          -o seoul.psd.parquet --epsilon 0.1 --bounds 126.4 37 127.6 38
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --about title="Visits in Seoul" --about licence=CC-BY-4.0 --about reference_date=2024
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --save-recipe seoul.toml --dry-run
    """  # noqa: D301
    from ..output.publishing import print_requests, run_recipe, save_recipe

    recipe = recipe_from_options(inputs, options)
    if options["save_recipe"]:
        save_recipe(recipe, options["save_recipe"], overwrite=options["overwrite"])
    if options["dry_run"]:
        print_requests(recipe)
    else:
        run_recipe(recipe, overwrite=options["overwrite"])
