"""The account that a command charges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..output.terminal import print_warning

if TYPE_CHECKING:
    from psd.ledger.account import Account

__all__ = ["account_of"]


def account_of(
    ledger: str | None, dataset: str | None, analyst: str | None, outputs: Sequence[str] = ()
) -> Account | None:
    """Dataset that is charged; None if no ledger is named.

    Releases in the folders of the ledger and of the outputs are compared with it: an older copy of
    a ledger does not have their charges, and an edited one has others.

    Raises
    ------
    UsageError
        If an option is given without those that it needs.
    LedgerError
        If the ledger cannot be used, has no such dataset, is an older copy, or was edited.
    """
    from psd.ledger.account import Account

    if (ledger is None) != (dataset is None):
        raise click.UsageError("--ledger and --dataset must be given together")
    if ledger is None or dataset is None:
        return None
    account = Account(ledger, dataset, analyst=analyst, warn=print_warning)
    for folder in dict.fromkeys(Path(beside).parent for beside in (*outputs, ledger)):
        account.compare(folder)
    return account
