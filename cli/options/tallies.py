"""Tallies as inputs of a build, and tallies that a build keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.tally import Tally
    from psd.ledger.account import Account

__all__ = ["keep", "kept_of", "read_all", "tallies_in"]


def tallies_in(
    inputs: Sequence[str], account: Account | None, epsilons: Sequence[str]
) -> PartialTally | None:
    """Tally of all inputs, if they are tallies that the account can pay; None if they are rows.

    Raises
    ------
    UsageError
        If only some inputs are tallies.
    BudgetError, LedgerError
        If the account cannot be charged; no count was read then.
    """
    from psd.ingest.tally_file import is_tally, read_unit
    from psd.ledger.state import ChargeRequest
    from psd.privacy.epsilon import parse_epsilon

    which = [is_tally(item) for item in inputs]
    if not any(which):
        return None
    if not all(which):
        raise click.UsageError("some inputs are tallies and some are rows; tally the rows first")
    if account is not None:
        for epsilon in epsilons:
            request = ChargeRequest(
                epsilon=parse_epsilon(epsilon), unit=read_unit(inputs), what="build"
            )
            account.check(request)
    return read_all(inputs)


def read_all(inputs: Sequence[str]) -> PartialTally:
    """Tally of several files together."""
    from psd.ingest.partial_tally import merge
    from psd.ingest.tally_file import read_tally

    return merge([read_tally(item) for item in inputs])


def keep(
    path: str,
    tally: PartialTally | Tally,
    made: Release | SeriesRelease,
    release: str,
    data: Sequence[Any],
    time_zone: str | None,
    *,
    overwrite: bool,
) -> None:
    """Write the tally of a build, bound to the release that it gave."""
    from dataclasses import replace

    from psd.ingest.tally import Tally
    from psd.ingest.tally_file import file_digest, write_tally
    from psd.publish.tally_parts import tally_of_build

    if isinstance(tally, Tally):
        kept = tally_of_build(tally, made, data, time_zone=time_zone, release=Path(release))
    else:
        kept = replace(tally, release=file_digest(release))
    write_tally(kept, path, overwrite=overwrite)


def kept_of(tally: str, loaded: Release, release: str, slice_name: str | None) -> Tally:
    """Tally that a build kept, or its slice."""
    from psd.ingest.tally_file import read_tally_of_release
    from psd.publish.series import slice_tally

    kept = read_tally_of_release(tally, loaded.domain, release)
    if slice_name is None or kept.rules.slices is None:
        return kept.tally
    return slice_tally(kept.tally, kept.rules.slices.names.index(slice_name))
