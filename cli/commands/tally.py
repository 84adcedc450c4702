"""psd tally: count part of the rows for a later build; the file is PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.decompositions import methods

from ..options.command import READ_KEYS, Command
from ..options.common import overwrite
from ..options.reading import INPUTS, inputs_of, local_files, read_option
from ..options.time_slices import slices_option
from ..options.unit import unit_options
from ..options.values import NUMBER, parse_settings
from ..output.terminal import show_stage

if TYPE_CHECKING:
    from psd.ingest.partial_tally import PartialTally
    from psd.publish.tally_parts import TallyRequest
    from psd.space.domain import Domain

__all__ = ["command"]


@click.command("tally", cls=Command)
@INPUTS
@click.option("-o", "--output", type=click.Path(), help="Tally to write; PRIVATE.")
@click.option("--into", type=click.Path(), help="Folder for a tally of each file, made once.")
@click.option(
    "--bounds", required=True, nargs=4, type=NUMBER, metavar="W S E N", help="As in psd build."
)
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of bounds and columns.")
@unit_options(
    bound="Largest number of records kept of each user, or of each day or slice with --per.",
    per=("day", "slice"),
)
@slices_option
@read_option(*READ_KEYS)
@click.option("--key", type=click.Path(), help="File of the key, the same for all parts.")
@click.option("--carry-users", is_flag=True, help="Carry the rows of users, so that parts join.")
@click.option("--part", metavar="NAME", help="Name of the part, where it is no file.")
@click.option("--method", type=click.Choice(methods()), help="Count no finer than it divides.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Of the method.")
@overwrite
def command(
    inputs: tuple[str, ...],
    output: str | None,
    into: str | None,
    bounds: tuple[float, float, float, float],
    crs: str,
    key: str | None,
    part: str | None,
    overwrite: bool,
    read: dict[str, Any],
    **options: Any,
) -> None:
    """Count rows into a tally, from which `psd build` makes the release that the rows would give.

    A tally holds exact counts, and with --carry-users ids: it is as private as the rows, and
    readable by its owner alone. Parts of a data set are counted one by one, in any order, and
    merge when the unit allows it. Where a row is the unit, parts need different rows. Where a
    user is, tallies with --carry-users and the same key keep the bound of each; others add their
    --max-contributions up. With --into, files that have their tally are not read again.

    \b
    Examples:
      psd tally january.csv -o january.tally --bounds 126.4 37 127.6 38
      psd tally parts/*.csv --into tallies --bounds 126.4 37 127.6 38 \\
          --user user_id --max-contributions 4 --key visits.key --carry-users
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.space.domain import Domain

    if (output is None) == (into is None):
        raise click.UsageError("give -o for one tally of all inputs, or --into for one of each")
    sources: list[str | Path] = [*local_files(inputs), *filter(None, [key])]
    check_targets(filter(None, (output,)), overwrite=overwrite, inputs=sources)
    data = inputs_of(inputs, read.pop("table", None), read.pop("query", None))
    memory = read.pop("memory", None)
    request = _tally_request(Domain(bounds=bounds, crs=crs), key, options | read)
    with show_stage() as stage:
        stage("reading")
        if output is None:
            wrote = _count_each_file(data, Path(into or ""), request, part, memory)
        else:
            _count_and_write(data, request, part, output, memory, overwrite=overwrite)
            wrote = [Path(output)]
    for path in wrote:
        click.echo(f"wrote {path} (PRIVATE)")


def _tally_request(domain: Domain, key: str | None, options: dict[str, Any]) -> TallyRequest:
    """How the rows are counted, from the options."""
    from psd.decompositions import method as method_by_name
    from psd.ingest.hash_key import load_key
    from psd.publish.drawing import coarsest_step
    from psd.publish.option_text import slices_from_text
    from psd.publish.request_arguments import reading_fields
    from psd.publish.tally_parts import TallyRequest

    options = {name: value for name, value in options.items() if value is not None}
    method, settings = options.get("method"), options["settings"]
    if settings and method is None:
        raise click.UsageError("--set goes with --method")
    if key is not None and "user" not in options:
        raise click.UsageError("--key goes with --user; rows that are units need no key")
    if key is None and options["carry_users"]:
        raise click.UsageError("--carry-users goes with --key, the same for all parts")
    step = (1, 1)
    if method is not None:
        step = coarsest_step(method_by_name(method, parse_settings(settings)), domain.lattice)
    slices = options.pop("slices", None)
    if slices is not None:
        slices = slices_from_text(slices, options.get("time_zone", "UTC"))
    fields = reading_fields(options, slices)
    return TallyRequest(
        domain=domain,
        unit=fields["unit"],
        columns=fields["columns"],
        slices=slices,
        contribution_scope=fields["contribution_scope"],
        step=step,
        carry=options["carry_users"],
        key=None if key is None else load_key(key),
    )


def _count_and_write(
    data: Any,
    request: TallyRequest,
    part: str | None,
    output: str | Path,
    memory: str | None,
    *,
    overwrite: bool = False,
) -> None:
    """Count rows and write their tally."""
    from psd.ingest.tally_file import write_tally
    from psd.publish.tally_parts import tally_rows

    tally = tally_rows(data, request, part=part, memory=memory)
    write_tally(tally, output, overwrite=overwrite)


def _count_each_file(
    data: Sequence[Any], folder: Path, request: TallyRequest, part: str | None, memory: str | None
) -> list[Path]:
    """Tallies of the files that have none yet; the others are checked and left as they are."""
    from psd.errors import InputDataError, WriteError
    from psd.ingest.sources import files_of

    if part is not None:
        raise click.UsageError("--part names one tally; --into writes one of each file")
    paths = files_of(data)
    targets = [folder / f"{path.name}.tally" for path in paths]
    if len(set(targets)) < len(targets):
        raise InputDataError("two inputs have the same name; give their tallies folders apart")
    if not folder.is_dir():
        raise WriteError(f"folder {folder} does not exist; create it first")
    missing = [pair for pair in zip(paths, targets, strict=True) if not pair[1].exists()]
    for path, target in zip(paths, targets, strict=True):
        if target.exists():
            _check_existing(path, target, request)
    for path, target in missing:
        _count_and_write(path, request, None, target, memory)
    return [target for _, target in missing]


def _check_existing(path: Path, target: Path, request: TallyRequest) -> None:
    """Refuse a tally that is there and is not what counting the file would give."""
    from psd.errors import InputDataError
    from psd.ingest.tally_file import read_tally

    if not _is_tally_of(read_tally(target), path, request):
        raise InputDataError(
            f"tally {target} is of other content than {path}, or was counted otherwise; remove it "
            "to count the file anew"
        )


def _is_tally_of(tally: PartialTally, path: Path, request: TallyRequest) -> bool:
    """Whether a tally is that of a file by a recipe."""
    from psd.ingest.partial_tally import EMPTY
    from psd.ingest.tally_file import file_digest
    from psd.ingest.user_rows import UserRows
    from psd.publish.tally_parts import origin_of

    origin, expected_origin = tally.origins[0], origin_of(request, ())
    parts = ("contributions",) if request.key is None else ("contributions", "key")
    return (
        len(tally.origins) == 1
        and tally.rules == request.rules
        and isinstance(tally.counts, UserRows) == request.carry
        and all(getattr(origin, name) == getattr(expected_origin, name) for name in parts)
        and {*origin.names} - {EMPTY} == {f"blake2b {file_digest(path)}"}
    )
