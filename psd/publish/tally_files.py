"""Files of tallies as the input of a build. Private side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from psd.errors import InputDataError, ParameterError
from psd.ingest.input_names import tally_names
from psd.ingest.input_paths import is_path
from psd.ingest.partial_tally import PartialTally, merge
from psd.ingest.sources import OnCopy, resolve_inputs
from psd.ingest.tally_file import is_tally, read_headers, read_tally
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.privacy.loss import Loss
from psd.publish.charging import PendingCharge, slices_of_tallies, tally_readings
from psd.publish.observer import Observer
from psd.publish.refusals import mask_errors


def tallies_in(
    inputs: Sequence[Any],
    account: Account | None,
    losses_of: Callable[[PartialTally], Sequence[Loss]],
    observer: Observer,
) -> PartialTally | None:
    """Merged tally of the inputs, if the account can pay for it; None if they are records.

    P1. An account that cannot pay is refused before a count is read.

    With an account, a fault of the tallies is one sentence; the observer gets the reason. The
    losses of the releases may depend on what a tally states, and are found of one without counts.
    """
    files = tally_files(inputs)
    if files is None:
        return None
    if account is None:
        return read_tallies(files)

    def ignore_copy(message: str) -> None:
        """Leave the report to the second reading."""

    stated = mask_errors(lambda: read_headers(files, on_copy=ignore_copy), observer)
    charges = [
        ChargeRequest(
            loss=loss,
            unit=stated.unit,
            what="build",
            slices=slices_of_tallies(stated.rules.slices, stated.origins),
            readings=tally_readings(stated.origins),
            inputs=tally_names(stated.origins),
        )
        for loss in losses_of(stated)
    ]
    account.check_all(charges)
    pending = PendingCharge(account, charges[0])
    return mask_errors(
        lambda: read_tallies(files, on_copy=observer.private_fault),
        observer,
        charge=pending.charge_fault,
    )


def tally_files(inputs: Sequence[Any]) -> list[str | Path] | None:
    """Files of the inputs, also of folders and patterns, if they are tallies; None of records.

    A mixture of both is refused, and so is a file that has the name of a tally and is none.
    """
    if not all(map(is_path, inputs)):
        return None
    try:
        files = resolve_inputs(list(inputs))
    except InputDataError:
        if any(map(is_tally, inputs)):
            raise  # names a repeated file
        return None  # reading the records has the same fault
    which = [is_tally(item) for item in files]
    for file, known in zip(files, which, strict=True):
        if not known and str(file).endswith(".tally"):
            raise InputDataError(
                f"{file} must be a tally, as its name says, and cannot be read as one; it is "
                "damaged or cut short, so copy it again, or tally its records again"
            )
    if any(which) and not all(which):
        raise ParameterError(
            "inputs must be all tallies or all records, got both; tally the records first"
        )
    return files if any(which) else None


def read_tallies(inputs: Sequence[str | Path], *, on_copy: OnCopy | None = None) -> PartialTally:
    """Tally of several files together; files of equal content are refused without ``on_copy``."""
    tallies = [read_tally(item) for item in inputs]
    return merge(tallies) if on_copy is None else merge(tallies, on_copy=on_copy)
