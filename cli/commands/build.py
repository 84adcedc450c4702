"""psd build: from locations, or a recipe, to release files."""

from __future__ import annotations

from typing import Any

import click

from psd.publish.fields import FIELDS

from ..options.command import Command, GroupedOption, chain_options, options_of
from ..options.common import SOURCES, overwrite
from ..options.fields import field_options

_option = options_of("Recipe")

_recipe_options = chain_options(
    _option("--dry-run", is_flag=True, help="Print the public request; open no input, ledger or "
            "key. With --report-private, read the input for its holder; draw and write nothing."),
    _option(
        "--save-recipe",
        metavar="FILE",
        is_everyday=False,
        help="Write these options as a recipe, which `psd build FILE` builds. PRIVATE: it names "
        "the inputs.",
    ),
)  # fmt: skip
"""``--dry-run`` and ``--save-recipe``."""


# The order of the help: what a release is first, then its input.
_GROUPS = ("Release", "Area", "Unit of privacy", "Time", "Category", "Regions", "Input",
           "Privacy budget", "Private output")  # fmt: skip
_NAMES = [field.name for field in sorted(FIELDS, key=lambda field: _GROUPS.index(field.group))]


@click.command("build", cls=Command)
@click.argument("recipe", type=click.Path())
@click.option("--dry-run", is_flag=True)
@overwrite
def _build_recipe(recipe: str, dry_run: bool, overwrite: bool) -> None:
    """Build the releases of a recipe."""
    from psd.publish.recipe import Recipe

    from ..output.publishing import run_recipe, show_requests

    loaded = Recipe.load(recipe)
    if dry_run:
        show_requests(loaded)
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
        values, _, present = self.parse_words(ctx, self.plain_args(ctx, args))
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


@click.command("build", cls=_Build)
@SOURCES
@options_of("Release")(
    "-o", "--output", required=True, type=click.Path(), help="Release file to write."
)
@field_options(*_NAMES, into="fields", epsilon={"required": True})
@overwrite
@_recipe_options
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
    the bounds are left out. With --category and --labels, they are counted by label too
    (--help-all). With --ledger and --dataset, epsilon is charged before noise is drawn, and a
    charge is never undone. Except with --report-private, the output does not depend on the data.

    An input that ends in .toml is a recipe: tables [release] with output, export and the names of
    these options as keys, and a table [private] with inputs, ledger, dataset and sign_key.

    \b
    Examples:
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --user user_id --max-contributions 4
      psd build visits.csv -o wards.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --regions wards.gpkg --region-id ward --time time --slices 2024-01..2024-12
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.5 --boundary seoul.gpkg \\
          --ledger city.ledger --dataset visits
      psd build release.toml
    """  # noqa: D301
    # Recipe of the options of `psd build`, by the names of the fields.
    from psd.publish.fields import field_names
    from psd.publish.recipe import PlannedRelease, PrivateInputs, Recipe

    from ..output.publishing import run_recipe, show_requests
    from ..output.publishing import save_recipe as write_recipe

    private = {name: fields[name] for name in field_names(private=True) if name in fields}
    public = {name: fields[name] for name in field_names(private=False) if name in fields}
    recipe = Recipe(
        private=PrivateInputs.from_table({**private, "inputs": inputs}),
        releases=(PlannedRelease.from_table({**public, "output": output}),),
    )
    if save_recipe:
        write_recipe(recipe, save_recipe, overwrite=overwrite)
    if dry_run:
        show_requests(recipe)
    else:
        run_recipe(recipe, overwrite=overwrite)
