"""psd tally: count part of the records for a later build, or merge tallies; PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command, refuse_others
from ..options.common import INPUTS, local_files, overwrite
from ..options.fields import AREA, POINTS, REGIONS, TIMES, UNIT, field_options
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from psd.publish.tally_parts import TallyRequest


@click.command("tally", cls=Command)
@INPUTS
@click.option("-o", "--output", type=click.Path(), help="Tally to write; PRIVATE.")
@click.option(
    "--into",
    type=click.Path(),
    help="Folder for one tally per input file; existing tallies are kept.",
)
@field_options(
    *AREA, *REGIONS, *UNIT, *TIMES, "slices", "max_per_slice", *POINTS, "values", "method", "set",
    into="fields",
    method={"help": "Method of the later build; the tally is no finer than it needs."},
    set={"help": "Parameter of --method, such as height=8."},
    values={"help": "Also sum this column, between public bounds, such as fare 0 60."},
)  # fmt: skip
@field_options(
    "category", "labels", "other_labels",
    into="labelled",
    category={"hidden": True}, labels={"hidden": True}, other_labels={"hidden": True},
)  # fmt: skip
@field_options("table", "query", "memory")
@click.option(
    "--key",
    type=click.Path(),
    help="File with the secret key that selects the records of a user; the same for all parts.",
)
@click.option(
    "--carry-users",
    is_flag=True,
    help="Store the records of users in the tally, so that K holds over merged parts.",
)
@click.option("--part", metavar="NAME", help="Name of the part, if the input is not a file.")
@overwrite
def command(
    inputs: tuple[str, ...],
    output: str | None,
    into: str | None,
    fields: dict[str, Any],
    labelled: dict[str, Any],
    table: str | None,
    query: str | None,
    memory: str | None,
    key: str | None,
    carry_users: bool,
    part: str | None,
    overwrite: bool,
) -> None:
    """Count records into a tally; `psd build` makes the same release of it as of the records.

    A tally holds exact counts, and with --carry-users the records of users. It is as private as
    the data, and only its owner may read the file. Count the parts of a data set one by one, in
    any order, then merge the tallies or build from all of them. No record may be in two parts.
    With --user, tallies with --carry-users and the same --key keep K records of each user over
    all parts; without them, K holds in each part, and the bounds of the parts add up. With
    --into, files whose tally exists are not read again.

    Inputs may also be tallies: they are merged into one, for `psd build` or for further merges.
    Tallies can be merged if they have the same bounds, CRS, coordinate resolution, lattice, unit of
    privacy and time slices, and no part in common. They state how their records were counted.

    \b
    Examples:
      psd tally january.csv -o january.tally --bounds 126.4 37 127.6 38
      psd tally parts/*.csv --into tallies --bounds 126.4 37 127.6 38 \\
          --user user_id --max-contributions 4 --key visits.key --carry-users
      psd tally january.tally february.tally -o winter.tally
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.publish.counting import inputs_of
    from psd.publish.fields import public_files
    from psd.publish.request_warnings import warn_of_columns, warn_of_degrees
    from psd.publish.tallies import tally_files, tally_request
    from psd.regions.files import refuse_record_files

    tallies = tally_files(inputs)
    if tallies is not None:
        refuse_others(
            {"output", "overwrite"}, "with tallies, which state how their records were counted"
        )
        if output is None:
            raise click.UsageError("-o must be given with tallies, which are merged into one")
        _merge(tallies, output, overwrite=overwrite)
        return
    if not {"bounds", "regions"} & {*fields}:
        raise click.UsageError("--bounds must be given; only tallies and regions state their own")
    if (output is None) == (into is None):
        raise click.UsageError(
            "give -o for one tally of all inputs, or --into for one tally per input file"
        )
    records = local_files(inputs)
    refuse_record_files(public_files(fields), records)
    sources: list[str | Path] = [*records, *filter(None, [key])]
    check_targets(filter(None, (output,)), overwrite=overwrite, inputs=sources)
    data = inputs_of(inputs, table, query)
    if key is not None and "user" not in fields:
        raise click.UsageError(
            "--key must be given with --user; records as units of privacy need no key"
        )
    if key is None and carry_users:
        raise click.UsageError("--carry-users must be given with --key, the same key for all parts")
    request = tally_request({**fields, **labelled}, key=key, carry_users=carry_users)
    warn_of_degrees(request.domain)
    warn_of_columns(data, request, per=fields.get("per"), has_ledger=False)
    with show_stage() as stage:
        stage("reading")
        if output is None:
            wrote = _count_each_file(data, Path(into or ""), request, part, memory)
        else:
            _count_and_write(data, request, part, output, memory, overwrite=overwrite)
            wrote = [Path(output)]
    for path in wrote:
        print_success(f"wrote {path} (PRIVATE)")


def _merge(tallies: Sequence[str | Path], output: str, *, overwrite: bool) -> None:
    """Merge tallies into one."""
    from psd._util.atomic_write import check_targets
    from psd.ingest.tally_file import write_tally
    from psd.publish.tallies import read_tallies

    check_targets([output], overwrite=overwrite, inputs=tallies)
    with show_stage() as stage:
        stage("reading")
        tally = read_tallies(list(map(str, tallies)))
        stage("writing")
        write_tally(tally, output, overwrite=overwrite)
    print_success(f"wrote {output} (PRIVATE)")
    if tally.unit.has_user:
        print_success(f"({tally.unit.guarantee_text})")


def _count_and_write(
    data: Any,
    request: TallyRequest,
    part: str | None,
    output: str | Path,
    memory: str | None,
    *,
    overwrite: bool = False,
) -> None:
    """Count records and write their tally."""
    from psd.ingest.tally_file import write_tally
    from psd.publish.tally_parts import tally_rows

    tally = tally_rows(data, request, part=part, memory=memory)
    write_tally(tally, output, overwrite=overwrite)


def _count_each_file(
    data: Sequence[Any], folder: Path, request: TallyRequest, part: str | None, memory: str | None
) -> list[Path]:
    """Write the tallies that do not exist yet; check the others and leave them as they are."""
    from psd.errors import InputDataError, WriteError
    from psd.ingest.sources import files_of

    if part is not None:
        raise click.UsageError(
            "--part names one tally, but --into writes one tally per file; use -o"
        )
    paths = files_of(data)
    targets = [folder / f"{path.name}.tally" for path in paths]
    if len(set(targets)) < len(targets):
        raise InputDataError(
            "two inputs have the same file name; write their tallies to different folders"
        )
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
    """Refuse an existing tally that differs from what counting the file would give."""
    from psd.errors import InputDataError
    from psd.ingest.partial_tally import EMPTY
    from psd.ingest.tally_file import file_digest, read_tally
    from psd.ingest.user_partitions import UserRows
    from psd.publish.tally_parts import origin_of

    tally, expected = read_tally(target), origin_of(request, ())
    origin = tally.origins[0]
    parts = ["contributions", "max_per_slice", "reading", *([] if request.key is None else ["key"])]
    if not (
        len(tally.origins) == 1
        and tally.rules == request.rules
        and isinstance(tally.counts, UserRows) == request.carry
        and all(getattr(origin, name) == getattr(expected, name) for name in parts)
        and {*origin.names} - {EMPTY} == {f"blake2b {file_digest(path)}"}
    ):
        raise InputDataError(
            f"tally {target} does not belong to the present content of {path}, or was counted with "
            "other options; remove it to count the file again"
        )
