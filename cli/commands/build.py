"""psd build: from locations, or a recipe, to release files."""

from __future__ import annotations

from typing import Any

import click

from psd.decompositions import methods

from ..options.about import about_option
from ..options.area import area_options
from ..options.command import READ_KEYS, Command, GroupedOption, chain_options, options_of
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


@click.command("build", cls=Command)
@click.argument("recipe", type=click.Path())
@click.option("--dry-run", is_flag=True)
@overwrite
def _build_recipe(recipe: str, dry_run: bool, overwrite: bool) -> None:
    """Build the releases of a recipe."""
    from psd.publish.recipe import Recipe

    from ..output.publishing import print_requests, run_recipe

    loaded = Recipe.load(recipe)
    if dry_run:
        print_requests(loaded)
    else:
        run_recipe(loaded, overwrite=overwrite)


class _Build(Command):
    """A build by options, or of a recipe, which states them."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Context of the command, or of `_build_recipe` where the input ends in .toml."""
        ctx = click.Context(self, info_name=info_name, parent=parent, **extra)
        values, _, present = self.make_parser(ctx).parse_args(self.plain_args(args))
        inputs = values.get("inputs")
        if not isinstance(inputs, tuple) or not any(str(i).endswith(".toml") for i in inputs):
            return super().make_context(info_name, args, parent, **extra)
        if len(inputs) > 1:
            raise click.UsageError("a recipe must be the only input; it states the others", ctx)
        for param in present:
            if isinstance(param, GroupedOption) and param.name != "dry_run":
                raise click.UsageError(
                    f"{max(param.opts, key=len)} must be left out with a recipe, which states it; "
                    "--dry-run and --overwrite alone stand beside it",
                    ctx,
                )
        return _build_recipe.make_context(info_name, args, parent, **extra)


@click.command("build", cls=_Build, other_spellings=_SPELLINGS)
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

    The input may also be a recipe, a TOML file, beside which --dry-run and --overwrite alone may
    stand. A table [release], or several tables [[release]], state what is published: output,
    export (a list of files), and the options of this command as keys, with _ in place of -. The
    table [private] has the keys inputs, ledger, dataset, analyst, engine, keep_tally,
    report_private and sign_key, and read with the keys table, query and memory; its content never
    enters a release. Relative paths start at the folder of the recipe. Unknown keys are errors. All
    releases are checked before the first is built, then signed and exported. Each costs its
    epsilon.

    \b
    A recipe:
      [private]
      inputs = ["visits.csv"]
      ledger = "city.ledger"
      dataset = "visits"
      sign_key = "office.pem"

    \b
      [release]
      output = "seoul.psd.parquet"
      export = ["seoul.gpkg"]
      epsilon = 1
      bounds = [126.4, 37, 127.6, 38]
      user = "user_id"
      max_contributions = 4
      method = "quadtree"
      set = {height = 8}
      read = {x = "lon", y = "lat"}

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
      psd build seoul.toml
    """  # noqa: D301
    from ..output.publishing import print_requests, run_recipe, save_recipe

    recipe = recipe_from_options(inputs, options)
    if options["save_recipe"]:
        save_recipe(recipe, options["save_recipe"], overwrite=options["overwrite"])
    if options["dry_run"]:
        print_requests(recipe)
    else:
        run_recipe(recipe, overwrite=options["overwrite"])
