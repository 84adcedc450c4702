"""Options that say which budget of which ledger pays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..output.terminal import warn

if TYPE_CHECKING:
    from psd.ledger.account import Account

__all__ = ["account_of", "ledger_options"]

_OPTIONS = (
    click.option(
        "--ledger",
        type=click.Path(readable=False),
        help="Ledger whose budget pays; it must exist.",
    ),
    click.option("--dataset", metavar="NAME", help="Dataset that is charged; with --ledger."),
    click.option("--analyst", metavar="NAME", help="Who spends, for the ledger."),
)


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--ledger`` and what goes with it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def account_of(
    ledger: str | None, dataset: str | None, analyst: str | None, output: str | None = None
) -> Account | None:
    """Who pays; nobody where no ledger is named.

    Releases beside the ledger, and beside the output, are asked whether it has forgotten any.

    Raises
    ------
    UsageError
        If options stand without what they go with.
    LedgerError
        If the ledger cannot be used, has no such dataset, or is an older copy.
    """
    from psd.ledger.account import Account

    if (ledger is None) != (dataset is None):
        raise click.UsageError("--ledger and --dataset go together")
    if ledger is None or dataset is None:
        if analyst is not None:
            raise click.UsageError("--analyst goes with --ledger and --dataset")
        return None
    account = Account(ledger, dataset, analyst=analyst, warn=warn)
    for beside in filter(None, (output, ledger)):
        account.compare(Path(beside).parent)
    return account
