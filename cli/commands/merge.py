"""psd merge: tallies of parts as one; PRIVATE as they are."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import overwrite
from ..options.tallies import read_tallies
from ..output.terminal import show_stage

__all__ = ["command"]


@click.command("merge", cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="Tally to write; PRIVATE.")
@overwrite
def command(inputs: tuple[str, ...], output: str, overwrite: bool) -> None:
    """Join tallies into one that can be merged further and built from; PRIVATE.

    Tallies join when they were counted on the same terms (bounds, CRS, lattice, unit, time slices)
    and have no part in common. What happens to the bound per user is told by `psd tally --help`.

    \b
    Examples:
      psd merge january.tally february.tally -o winter.tally
      psd merge winter.tally march.tally -o quarter.tally
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.ingest.tally_file import write_tally

    check_targets([output], overwrite=overwrite, inputs=inputs)
    with show_stage() as stage:
        stage("reading")
        tally = read_tallies(inputs)
        stage("writing")
        write_tally(tally, output, overwrite=overwrite)
    click.echo(f"wrote {output} (PRIVATE)")
    if tally.unit.has_user:
        click.echo(f"({tally.unit.guarantee_text})")
