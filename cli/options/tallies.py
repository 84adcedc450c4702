"""Tallies as inputs of a build, and tallies that a build keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.tally import Tally
    from psd.ledger.account import Account
    from psd.release.record import Release
    from psd.release.series import Series

__all__ = ["built_of", "keep", "kept_of", "read_all", "tallies_of"]

# What may be said of a build whose rows have been counted; everything else is in the tallies.
_ALLOWED = {
    "inputs", "output", "epsilon", "method", "settings", "workload", "estimate", "density",
    "covariate", "covariate_column", "covariate_size", "keep_tally", "overwrite",
    "ledger", "dataset", "analyst",
}  # fmt: skip


def tallies_of(
    ctx: click.Context, inputs: Sequence[str], account: Account | None
) -> PartialTally | None:
    """Tally of all inputs, where they are tallies that can be paid; None where they are rows."""
    from psd.ingest.tally_file import is_tally

    which = [is_tally(item) for item in inputs]
    if not any(which):
        return None
    if not all(which):
        raise click.UsageError("some inputs are tallies and some are rows; tally the rows first")
    for param in ctx.command.params:
        given = ctx.get_parameter_source(param.name or "")
        if param.name not in _ALLOWED and given is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{param.opts[0]} is about rows; tallies were counted with their own"
            )
    if account is not None:
        _check_claim(account, inputs, ctx.params["epsilon"])
    return read_all(inputs)


def _check_claim(account: Account, inputs: Sequence[str], epsilon: str) -> None:
    """Refuse what could not be paid, before a count is read."""
    from psd.ingest.tally_file import read_unit
    from psd.ledger.state import Claim
    from psd.privacy.epsilon import parse_epsilon

    nano = parse_epsilon(epsilon)
    account.check(Claim(epsilon=nano, unit=read_unit(inputs), what="build"))


def read_all(inputs: Sequence[str]) -> PartialTally:
    """Tally of several files together."""
    from psd.ingest.partial_tally import merge
    from psd.ingest.tally_file import read_tally

    return merge([read_tally(item) for item in inputs])


def built_of(kept: PartialTally, how: dict[str, Any]) -> Release | Series:
    """Release of a tally; only what does not concern rows is passed on."""
    from psd.publish.from_tallies import build_tally

    names = ("epsilon", "method", "estimate", "density", "covariate", "progress", "account")
    return build_tally(kept, **{name: how[name] for name in names})


def keep(
    path: str,
    tally: PartialTally | Tally,
    made: Release | Series,
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
    from psd.publish.from_tallies import kept_for

    if isinstance(tally, Tally):
        kept = kept_for(tally, made, data, time_zone=time_zone, release=Path(release))
    else:
        kept = replace(tally, release=file_digest(release))
    write_tally(kept, path, overwrite=overwrite)


def kept_of(tally: str, loaded: Release, release: str, slice_name: str | None) -> Tally:
    """Tally that a build kept, or its slice."""
    from psd.ingest.tally_file import read_tally_of_release
    from psd.publish.series import of_slice

    kept = read_tally_of_release(tally, loaded.domain, release)
    if slice_name is None or kept.terms.slices is None:
        return kept.tally
    return of_slice(kept.tally, kept.terms.slices.names.index(slice_name))
