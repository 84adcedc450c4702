"""Options of the ledger that a command charges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.command import chain_options, options_of
from ..output.terminal import print_warning

if TYPE_CHECKING:
    from psd.ledger.account import Account

__all__ = ["account_of", "ledger_options", "split_dataset"]

_option = options_of("Privacy budget")

_OPTIONS = (
    _option(
        "--ledger",
        type=click.Path(readable=False),
        help="Ledger to charge before noise is drawn; `psd ledger create` makes one.",
    ),
    _option(
        "--dataset",
        metavar="NAME[:analyst=NAME]",
        help="Dataset of the ledger whose budget is charged, and the analyst to charge, who is "
        "required if the dataset has caps.",
    ),
)

_ANALYST = ":analyst="


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--ledger`` and ``--dataset``."""
    return chain_options(*_OPTIONS)(command)


def split_dataset(text: str | None) -> tuple[str | None, str | None]:
    """Dataset and analyst of the option.

    Examples
    --------
    >>> split_dataset("visits:analyst=ann"), split_dataset("visits")
    (('visits', 'ann'), ('visits', None))
    """
    if text is None or _ANALYST not in text:
        return text, None
    dataset, _, analyst = text.rpartition(_ANALYST)
    return dataset, analyst


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
