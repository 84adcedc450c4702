"""Print the balances of a ledger, and its charges."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from .columns import Column, print_columns
from .terminal import printable

if TYPE_CHECKING:
    from psd.ledger.balances import Balance
    from psd.ledger.charges import Charge, Dataset
    from psd.ledger.state import LedgerState

__all__ = ["explain_deltas", "print_balances", "print_charges"]

# Columns of a budget with a delta; a table in which all are empty does not show them.
_RHO_COLUMNS = ("delta", "budget_rho", "spent_rho", "left_rho")
_SHOWN_IF_FILLED = (*_RHO_COLUMNS, "rho")

# Texts that may continue on the next line.
_WORDS = (
    "dataset",
    "unit",
    "columns",
    "raised",
    "left_of_caps",
    "analyst",
    "what",
    "where",
    "when",
    "adds_up",
    "state",
)


def print_balances(state: LedgerState, form: str) -> None:
    """Print the spent part and the rest of each budget.

    Parameters
    ----------
    state : LedgerState
        Of a ledger.
    form : {"table", "json"}
        With a table, balances in rho are a table of their own.
    """
    rows = [_balance_row(state, name) for name in state.datasets]
    if form == "json" or not rows:
        _print_rows(rows, form)
        return
    _print_rows([_without(row, _RHO_COLUMNS) for row in rows], form)
    _print_rhos([row for row in rows if row["delta"]])
    explain_deltas(state.datasets.values())


def print_charges(state: LedgerState, charges: Iterable[Charge], form: str) -> None:
    """Print charges in order.

    Parameters
    ----------
    state : LedgerState
        Of their ledger.
    charges : iterable of Charge
        Charges.
    form : {"table", "json"}
        How they are printed.
    """
    _print_rows([_charge_row(state, charge) for charge in charges], form)


def _balance_row(state: LedgerState, name: str) -> dict[str, Any]:
    """Spent part and rest of a budget and of its caps."""
    from psd.ingest.columns import reading_text
    from psd.privacy.loss import epsilon_text

    dataset, charges = state.datasets[name], state.charges_of(name)
    zone = "" if dataset.time_zone is None else f" {dataset.time_zone}"
    bound = "" if dataset.bound is None else f" k={dataset.bound}"
    balance = state.balance(name)
    caps = {who: _left_text(state.balance(name, analyst=who)) for who in dataset.caps}
    return {
        "dataset": name,
        "unit": f"{dataset.unit}{zone}{bound}",
        "columns": printable(reading_text(dataset.reading)),
        "inputs": f"{len(dataset.inputs):,}" if dataset.inputs else "any",
        "budget": epsilon_text(dataset.budget),
        "spent": epsilon_text(balance.spent.epsilon),
        "left": epsilon_text(balance.largest_pure),
        **_rho_columns(balance),
        "adds_up": _rule_of_sums(dataset),
        "charges": str(len(charges)),
        "not_finished": str(sum(not charge.done for charge in charges)),
        "raised": ", ".join(dataset.raised),
        "left_of_caps": ", ".join(f"{who} {left}" for who, left in caps.items()),
    }


def explain_deltas(datasets: Iterable[Dataset]) -> None:
    """Print what may happen with the probability delta of each dataset that has one.

    Parameters
    ----------
    datasets : iterable of Dataset
        Datasets; of those without a delta, nothing is printed.
    """
    from psd.privacy.loss import delta_text, epsilon_text

    for each in datasets:
        if each.delta is not None:
            click.echo(
                f"{each.name}: with a probability of at most {delta_text(each.delta)}, all "
                f"releases together may reveal more than epsilon {epsilon_text(each.budget)} allows"
            )


def _rho_columns(balance: Balance) -> dict[str, str]:
    """Delta, and the balance in rho; empty for a budget without delta."""
    from psd.privacy.loss import delta_text, rho_text

    allowance = balance.allowance
    if allowance.delta is None:
        return dict.fromkeys(_RHO_COLUMNS, "")
    return {
        "delta": delta_text(allowance.delta),
        "budget_rho": rho_text(allowance.rho),
        "spent_rho": rho_text(balance.spent.rho),
        "left_rho": rho_text(balance.rho_left),
    }


def _left_text(balance: Balance) -> str:
    """What is left of a cap: epsilon of one pure charge, and rho if there is a delta."""
    from psd.privacy.loss import epsilon_text, rho_text

    left = epsilon_text(balance.largest_pure)
    return left if balance.allowance.delta is None else f"{left} rho {rho_text(balance.rho_left)}"


def _rule_of_sums(dataset: Dataset) -> str:
    """Which charges of a dataset are added, in a few words."""
    has_times = "time" in dataset.reading
    if dataset.unit == "user-day" and has_times:
        return "common days"
    if dataset.unit != "record":
        return "all"
    return "common points and slices" if has_times else "common points"


def _charge_row(state: LedgerState, charge: Charge) -> dict[str, Any]:
    """One charge."""
    from psd.privacy.loss import delta_text, epsilon_text, rho_text

    loss, has_delta = charge.loss, state.dataset(charge.dataset).delta is not None
    region, slices = charge.region, charge.slices
    return {
        "time": charge.time,
        "dataset": charge.dataset,
        "analyst": charge.analyst or "",
        "what": charge.what,
        "epsilon": epsilon_text(loss.epsilon),
        "delta": "" if loss.delta is None else delta_text(loss.delta),
        "rho": rho_text(loss.rho) if has_delta else "",
        "k": "auto" if charge.bound is None else str(charge.bound),
        "where": "everywhere" if region is None else " ".join(f"{x:.10g}" for x in region.bounds),
        "when": "always" if slices is None else slices.text,
        "state": "done" if charge.done else "charged, not finished",
        "id": charge.id,
        "digest": charge.digest or "",
    }


def _without(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A line without some of its columns."""
    return {name: value for name, value in row.items() if name not in names}


def _print_rhos(rows: list[dict[str, Any]]) -> None:
    """Balances in rho as a table of their own, so that both tables fit a terminal."""
    if rows:
        click.echo()
        _print_rows([{name: row[name] for name in ("dataset", *_RHO_COLUMNS)} for row in rows], "")


def _print_rows(lines: list[dict[str, Any]], form: str) -> None:
    """Lines as a table, with the start of each digest, or as JSON."""
    if form == "json":
        click.echo(json.dumps(lines, indent=1))
        return
    if not lines:
        click.echo("the ledger has no entries of this kind yet")
        return
    columns = []
    for name in lines[0]:
        values = [line[name][: 12 if name == "digest" else None] for line in lines]
        if name in _SHOWN_IF_FILLED and not any(values):
            continue
        if name == "raised":
            values = [value.replace("T", " ") for value in values]  # a time may be broken there
        columns.append(Column(heading=name, values=values, left=True, folds=name in _WORDS))
    print_columns(columns)
