"""psd run: build the releases that a recipe states."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import overwrite

__all__ = ["command"]


@click.command("run", cls=Command)
@click.argument("recipe", type=click.Path())
@click.option(
    "--dry-run", is_flag=True, help="Print the public requests; open no input, ledger or key."
)
@overwrite
def command(recipe: str, dry_run: bool, overwrite: bool) -> None:
    """Build the releases of a recipe, a TOML file; then sign and export them.

    A table [release], or several tables [[release]], state what is published: output, export (a
    list of files), and the options of `psd build` as keys, with _ in place of -. The table
    [private] has the keys inputs, ledger, dataset, analyst, engine, keep_tally, report_private
    and sign_key, and read with the keys table, query and memory; its content never enters a
    release. Relative paths start at the folder of the recipe. Unknown keys are errors. All
    releases are checked before the first is built. Each costs its epsilon.

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
      psd run release.toml --dry-run
      psd run release.toml
    """  # noqa: D301
    from psd.publish.recipe import Recipe

    from ..output.publishing import print_requests, run_recipe

    loaded = Recipe.load(recipe)
    if dry_run:
        print_requests(loaded)
    else:
        run_recipe(loaded, overwrite=overwrite)
