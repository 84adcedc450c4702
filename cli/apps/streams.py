"""psd stream: a series that grows by one time slice at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from psd.publish.fields import FIELDS

from ..options.command import Command, Group, chain_options, options_of
from ..options.common import INPUTS, TABLE_OR_JSON
from ..options.fields import LEDGER, account_of, field_options
from ..output.tables import print_facts
from ..output.terminal import print_success, print_warning, show_stage

_STATE = click.argument("state", type=click.Path(dir_okay=False, readable=False))
_release = options_of("Release")
_time = options_of("Time")
_totals = options_of("Running totals")

# What a stream states once; a series of users who are counted has no bound to keep.
_REQUEST = [
    field.name
    for field in FIELDS
    if not field.private and field.name not in ("count", "choice_share", "choice_over",
                                                "choice_limit", "bounds_share", "bounds_beyond")
]  # fmt: skip

_CREATE = (
    _totals(
        "--totals",
        is_flag=True,
        help="Write running totals too, as a series with .totals in its name; needs --method "
        "quadtree, or grid with --set size=.",
    ),
    _totals(
        "--counter",
        type=click.Choice(["auto", "slices", "tree", "toeplitz"]),
        help="How totals are computed. slices: sums of the slices, at no cost. For half of "
        "epsilon, tree: a binary tree; toeplitz: the square root of the running sum, with "
        "--delta and no --ledger. auto, the default: the least error of the last total.",
    ),
    _release(
        "-o",
        "--output",
        required=True,
        type=click.Path(),
        help="File of the public series; each added slice writes it anew.",
    ),
    field_options(
        *_REQUEST,
        into="fields",
        epsilon={"required": True, "help": "Epsilon of all slices of the list together."},
        delta={
            "help": "Probability with which the slices, or the totals, may reveal more than "
            "epsilon allows, such as 1e-6: far below one over the number of users, and below 1e-3. "
            "Only Gaussian noise spends it: that of the slices, or of --counter toeplitz."
        },
        noise={
            "help": "Law of the noise of the slices. auto, the default: with --delta, Gaussian "
            "where a user is in several slices and it is less. gaussian needs --delta, and its "
            "totals are sums. The law never changes."
        },
        slices={
            "required": True,
            "help": "All slices that the stream can have, such as 2026-01-01..2026-12-31. Public, "
            "never from the data; needs --time. The list never changes.",
        },
        method={"help": "Method that divides space, see `psd methods`. By default auto."},
        max_contributions={
            "help": "Largest number of records kept of each user in all slices, those of earlier "
            "slices first; or of each day or slice with --per."
        },
    ),
    _time(
        "--by",
        type=click.Choice(["hour", "day", "week", "month"]),
        help="Length of a slice; by default, as the names in --slices are written.",
    ),
    field_options(*LEDGER),
)


@click.group("stream", cls=Group)
def run_stream() -> None:
    """Grow a series by one time slice at a time, under one epsilon.

    Create a stream once, for a fixed list of slices: a ledger is charged for all of them. Then add
    each slice when its records have arrived. Each addition writes the public series anew. The
    state of a stream is PRIVATE: keep it where only its owner can read it, for as long as the
    stream grows.

    \b
    Examples:
      psd stream create city.stream -o city.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --slices 2026-01-01..2026-12-31 --time time
      psd stream add city.stream monday.csv --slice 2026-01-05
      psd stream status city.stream
    """  # noqa: D301


@run_stream.command("create", cls=Command, short_help="Create a stream; charge a ledger once.")
@_STATE
@chain_options(*_CREATE)
def create(
    state: str,
    output: str,
    by: str | None,
    fields: dict[str, Any],
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    **totals: Any,
) -> None:
    """Create a stream for a list of time slices. No record is read.

    STATE is PRIVATE: of users it holds ids and numbers of records. With --ledger and --dataset,
    the loss is charged once, for the whole list.

    \b
    Examples:
      psd stream create city.stream -o city.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --slices 2026-01..2026-12 --time time
      psd stream create city.stream -o city.psd.parquet --epsilon 1 --delta 1e-6 \\
          --bounds 126.4 37 127.6 38 --slices 2026-01-01..2026-12-31 --time time \\
          --user user_id --max-contributions 52 --max-per-slice 1 \\
          --ledger city.ledger --dataset visits
    """  # noqa: D301
    from psd.apps.streams.creation import create_stream
    from psd.apps.streams.plan import StreamRequest
    from psd.apps.streams.stream import Stream
    from psd.publish.fields import public_files
    from psd.publish.request_values import request_from_values

    account = account_of(ledger, dataset, analyst, outputs=[output])
    if account is not None:  # files of records are refused unread
        account.refuse_records(public_files(fields, Path.cwd()))
    # A method by default would count many slices together.
    request = StreamRequest.of(request_from_values({"method": "auto", **fields}))
    if by is not None and request.slices.by != by:
        raise click.UsageError(f"--by must be {request.slices.by} for these --slices, got {by}")
    created = create_stream(state, output, request, account=account, **totals)
    slices = "1 slice" if len(request.slices) == 1 else f"{len(request.slices):,} slices"
    click.echo(
        f"wrote {state} (PRIVATE): {request.method.name}, {slices} by {request.slices.by}, "
        f"{Stream(state).status().guarantee}"
    )
    if created.noise_text is not None:
        click.echo(created.noise_text)
    if created.counter is not None:
        click.echo(created.counter.text)
    if account is not None:
        print_success(f"ledger head {account.head}")


@run_stream.command("add", cls=Command, short_help="Add one slice to the public series.")
@_STATE
@INPUTS
@click.option(
    "--slice", "slice_name", required=True, metavar="NAME", help="Slice to add, such as 2026-01-05."
)
@click.option(
    "--skip",
    is_flag=True,
    help="Leave out slices that come before it and were not added, for good.",
)
@field_options("table", "query", "memory", "report_private")
def add(
    state: str,
    inputs: tuple[str, ...],
    slice_name: str,
    skip: bool,
    table: str | None,
    query: str | None,
    memory: str | None,
    report_private: bool,
) -> None:
    """Count one slice, draw its noise once, and write the public series anew.

    Slices are added in the order of the list, each once. Records of other slices are left out.
    Inputs are read as the stream was created, and those of `psd build` are allowed. Except with
    --report-private, the printed output does not depend on the data. If the command is killed, run
    it again on the same input: it gives the answer that it would have given.

    \b
    Examples:
      psd stream add city.stream monday.csv --slice 2026-01-05
      psd stream add city.stream wednesday.csv --slice 2026-01-07 --skip
    """  # noqa: D301
    from psd.apps.streams.stream import Stream
    from psd.publish.counting import inputs_of

    from ..output.publishing import make_observer

    data = inputs_of(inputs, table, query)
    stream = Stream(state)
    with show_stage() as stage:
        stream.add(
            data,
            slice_name,
            skip=skip,
            memory=memory,
            observer=make_observer(stage, report_private=report_private),
            warn=print_warning,
        )
    status = stream.status()
    click.echo(
        f"wrote {status.output}: slice {slice_name} is in it, {len(status.added):,} of "
        f"{len(status.slices):,}, {status.guarantee}"
    )


@run_stream.command("status", cls=Command, short_help="Show which slice is next.")
@_STATE
@TABLE_OR_JSON
def show_status(state: str, form: str) -> None:
    """Show how far a stream has grown, and which slice is next. No value depends on a record.

    \b
    Examples:
      psd stream status city.stream
      psd stream status city.stream --format json
    """  # noqa: D301
    from psd.apps.streams.stream import Stream

    status = Stream(state).status()
    facts = {
        "method": status.method,
        "guarantee": status.guarantee,
        "slices_by": status.slices.by,
        "time_zone": status.slices.time_zone,
        "first": status.slices.names[0],
        "last": status.slices.names[-1],
        "slices": len(status.slices),
        "added": len(status.added),
        "skipped": list(status.skipped),
        "next": status.next or "no more",
        "output": status.output,
        "totals": status.totals,
        "counter": status.counter,
        "up_to_date": status.published,
        "ledger": status.ledger,
        "dataset": status.dataset,
    }
    if form == "json":
        click.echo(json.dumps(facts, indent=1))
        return
    facts |= {
        "skipped": " ".join(status.skipped) or "none",
        "up_to_date": "yes" if status.published else "no",
    }
    print_facts({name: "none" if value is None else str(value) for name, value in facts.items()})


COMMANDS = {"stream": run_stream}
