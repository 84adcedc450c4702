"""Tallies as inputs of a build, and tallies that a build writes.

Inputs of commands that read records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.postgres import is_address

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.sources import Columns, OnCopy
    from psd.ingest.tally import Tally
    from psd.ledger.account import Account
    from psd.privacy.loss import Loss
    from psd.publish.observer import Observer

__all__ = [
    "INPUTS",
    "SOURCES",
    "local_files",
    "read_slice_tally",
    "read_tallies",
    "tallies_in",
    "tally_files",
    "write_build_tally",
]


def tallies_in(
    inputs: Sequence[str],
    account: Account | None,
    losses_of: Callable[[PartialTally], Sequence[Loss]],
    observer: Observer,
) -> PartialTally | None:
    """Merged tally of the inputs, if the account can pay for it; None if they are records.

    With an account, a fault of the tallies is one sentence; the observer gets the reason. The
    losses of the releases may depend on what a tally states, and are found of one without counts.

    Raises
    ------
    UsageError
        If only some inputs are tallies.
    BudgetError, LedgerError
        If the account cannot be charged; no count was read then.
    """
    from psd.ingest.input_names import tally_names
    from psd.ingest.tally_file import read_headers
    from psd.ledger.charges import ChargeRequest
    from psd.publish.charging import PendingCharge, slices_of_tallies, tally_readings
    from psd.publish.refusals import mask_errors

    files = tally_files(inputs)
    if files is None:
        return None
    if account is None:
        return read_tallies(files)

    def ignore_copy(message: str) -> None:
        """Leave the report to the second reading."""

    stated = mask_errors(lambda: read_headers(files, on_copy=ignore_copy), observer)
    charges = [
        PendingCharge(
            account,
            ChargeRequest(
                loss=loss,
                unit=stated.unit,
                what="build",
                slices=slices_of_tallies(stated.rules.slices, stated.origins),
                readings=tally_readings(stated.origins),
                inputs=tally_names(stated.origins),
            ),
        )
        for loss in losses_of(stated)
    ]
    return mask_errors(
        lambda: read_tallies(files, on_copy=observer.private_fault),
        observer,
        charge=charges[0].charge_fault,
    )


def tally_files(inputs: Sequence[str]) -> list[str | Path] | None:
    """Files of the inputs, also of folders and patterns, if they are tallies; None of records.

    Raises
    ------
    UsageError
        If only some inputs are tallies.
    InputDataError
        If a file is repeated or missing.
    """
    from psd.errors import InputDataError
    from psd.ingest.sources import resolve_inputs
    from psd.ingest.tally_file import is_tally

    try:
        files = resolve_inputs(list(inputs))
    except InputDataError:
        if any(map(is_tally, inputs)):
            raise  # names a repeated file
        return None  # reading the records has the same fault
    which = [is_tally(item) for item in files]
    if any(which) and not all(which):
        raise click.UsageError(
            "inputs must be all tallies or all records, got both; tally the records first"
        )
    return files if any(which) else None


def read_tallies(inputs: Sequence[str | Path], *, on_copy: OnCopy | None = None) -> PartialTally:
    """Tally of several files together; files of equal content are refused without ``on_copy``."""
    from psd.ingest.partial_tally import merge
    from psd.ingest.tally_file import read_tally

    tallies = [read_tally(item) for item in inputs]
    return merge(tallies) if on_copy is None else merge(tallies, on_copy=on_copy)


def write_build_tally(
    path: str,
    tally: PartialTally | Tally,
    built: Release,
    release: str,
    data: Sequence[Any],
    columns: Columns,
    *,
    overwrite: bool,
) -> None:
    """Write the tally of a build, with the digest of its release."""
    from dataclasses import replace

    from psd.ingest.tally import Tally
    from psd.ingest.tally_file import file_digest, write_tally
    from psd.publish.tally_parts import tally_of_build

    if isinstance(tally, Tally):
        partial_tally = tally_of_build(tally, built, data, columns=columns, release=Path(release))
    else:
        partial_tally = replace(tally, release=file_digest(release))
    write_tally(partial_tally, path, overwrite=overwrite)


def read_slice_tally(tally: str, loaded: Release, release: str, slice_name: str | None) -> Tally:
    """Tally of a build, or its slice."""
    from psd.ingest.tally_file import read_tally_of_release
    from psd.publish.drawing import slice_tally

    partial_tally = read_tally_of_release(tally, loaded.domain, release)
    if slice_name is None or partial_tally.rules.slices is None:
        return partial_tally.tally
    return slice_tally(partial_tally.tally, partial_tally.rules.slices.names.index(slice_name))


INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

SOURCES = click.argument("inputs", nargs=-1, type=click.Path(readable=False))
"""Inputs of commands that read tables of Spark too, which need no path."""


def local_files(inputs: Sequence[str]) -> list[Path]:
    """Files among the inputs, which must not be overwritten; reading reports faults later."""
    from psd.errors import InputDataError
    from psd.ingest.sources import files_of

    try:
        return files_of(inputs)
    except InputDataError:
        return [Path(item) for item in inputs if not is_address(item)]
