"""psd merge: tallies of parts as one tally; PRIVATE."""

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
    """Merge tallies into one, for `psd build` or for further merges; PRIVATE.

    Tallies can be merged if they have the same bounds, CRS, coordinate resolution, lattice, unit of
    privacy and time slices, and no part in common. `psd tally --help` says how --max-contributions
    combines.

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
