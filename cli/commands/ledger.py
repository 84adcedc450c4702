"""psd ledger: budgets of datasets, and what was spent of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.values import INTEGER, parse_settings
from ..output.terminal import open_console

if TYPE_CHECKING:
    from psd.ledger.state import Charge, LedgerState

__all__ = ["command"]

_FILE = click.argument("file", type=click.Path(readable=False))
_FORM = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For people or for programs.",
)


@click.group(
    "ledger",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the budgets of datasets in a file, and every release that was paid from them.

    A ledger is made once, and a dataset registered once. `psd build` and `psd ask` with --ledger
    then charge epsilon to it before they draw; what was charged stays charged, also if the build
    failed after that. The releases of a dataset never cost more than its budget together.

    \b
    Examples:
      psd ledger create city.ledger
      psd ledger register city.ledger visits --budget 2
      psd ledger status city.ledger
      psd ledger history city.ledger visits
      psd ledger verify city.ledger
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("create", cls=Command, short_help="Make a ledger.")
@_FILE
def create_ledger(file: str) -> None:
    """Make a ledger without datasets, readable by its owner alone.

    \b
    Examples:
      psd ledger create city.ledger
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    Ledger.create(file)
    click.echo(f"wrote {file}; keep it beside the data, and keep it for as long as the data")


@command.command("register", cls=Command, short_help="Enter a dataset with its budget.")
@_FILE
@click.argument("dataset")
@click.option("--budget", required=True, help="Epsilon of all its releases together.")
@click.option(
    "--unit",
    type=click.Choice(["record", "user", "user-day"]),
    default="record",
    show_default=True,
    help="Unit of privacy of all its releases.",
)
@click.option("--time-zone", help="Of the days, with --unit user-day; UTC by default.")
@click.option("--max-contributions", type=INTEGER, help="Where all releases must have the same k.")
@click.option(
    "--cap",
    "caps",
    multiple=True,
    metavar="NAME=EPSILON",
    help="Cap of an analyst; with any, nobody else spends. May be repeated.",
)
def register_dataset(
    file: str,
    dataset: str,
    budget: str,
    unit: Any,
    time_zone: str | None,
    max_contributions: int | None,
    caps: tuple[str, ...],
) -> None:
    """Enter a dataset with its budget, which only `psd ledger raise` changes.

    What the same people may be in is one dataset, also when months or files are added to it.

    \b
    Examples:
      psd ledger register city.ledger accidents --budget 1
      psd ledger register city.ledger visits --budget 2 --unit user --cap ann=1.5 --cap bob=0.5
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    cap_texts = parse_settings(caps, "NAME=EPSILON", "ann=0.5", option="--cap")
    Ledger(file).register(
        dataset,
        budget,
        unit=unit,
        time_zone=time_zone,
        max_contributions=max_contributions,
        caps=cap_texts,
    )
    click.echo(f"registered {dataset} in {file}: budget {budget} per {unit}")


@command.command("raise", cls=Command, short_help="Raise the budget of a dataset.")
@_FILE
@click.argument("dataset")
@click.option("--budget", required=True, help="Epsilon of all releases together, past ones too.")
def raise_budget(file: str, dataset: str, budget: str) -> None:
    """Raise the budget of a dataset; when, and from what, stays in the ledger.

    A larger budget is a weaker promise to the people in the data: say to them that it changed.

    \b
    Examples:
      psd ledger raise city.ledger visits --budget 3
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    Ledger(file).raise_budget(dataset, budget)
    click.echo(f"raised {dataset} in {file}: budget {budget}")


@command.command("status", cls=Command, short_help="Show what is left of each budget.")
@_FILE
@_FORM
def show_status(file: str, form: str) -> None:
    """Show what was spent of each budget, and what is left of it.

    Of disjoint regions the dearest counts, where a row is the unit.

    \b
    Examples:
      psd ledger status city.ledger
      psd ledger status city.ledger --format json
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    state = Ledger(file).state()
    _print_rows([_balance_row(state, name) for name in state.datasets], form)


@command.command("history", cls=Command, short_help="List the charges.")
@_FILE
@click.argument("dataset", required=False)
@_FORM
def show_history(file: str, dataset: str | None, form: str) -> None:
    """List what was charged, in its order, of all datasets or of one.

    "charged, not finished" is a build that runs, or one that ended after its charge and before
    its release was noted as written. It stays charged. A release that is there all the same is
    noted by the next `psd build` that writes beside it.

    \b
    Examples:
      psd ledger history city.ledger
      psd ledger history city.ledger visits --format json
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    state = Ledger(file).state()
    if dataset is not None:
        state.dataset(dataset)
    charges = state.charges.values() if dataset is None else state.charges_of(dataset)
    _print_rows([_charge_row(charge) for charge in charges], form)


@command.command("verify", cls=Command, short_help="Check that no entry was changed.")
@_FILE
@click.option("--head", help="A head that was noted elsewhere; it must be in the chain.")
def verify_ledger(file: str, head: str | None) -> None:
    """Check the file and the chain of its entries, and say the head, which stands for all of them.

    An older copy of a ledger is sound in itself; note the head elsewhere, and --head finds out.

    \b
    Examples:
      psd ledger verify city.ledger
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    state = Ledger(file).verify(head=head)
    click.echo(f"{file} is sound: {len(state.hashes):,} entries, head {state.head}")


def _balance_row(state: LedgerState, name: str) -> dict[str, Any]:
    """What is left of a budget, and of the caps."""
    from psd.privacy.epsilon import epsilon_text

    dataset, charges = state.datasets[name], state.charges_of(name)
    zone = "" if dataset.time_zone is None else f" {dataset.time_zone}"
    bound = "" if dataset.bound is None else f" k={dataset.bound}"
    spent = state.spent(name)
    caps = {
        who: epsilon_text(max(cap - state.spent(name, analyst=who), 0))
        for who, cap in dataset.caps.items()
    }
    return {
        "dataset": name,
        "unit": f"{dataset.unit}{zone}{bound}",
        "budget": epsilon_text(dataset.budget),
        "spent": epsilon_text(spent),
        "left": epsilon_text(max(dataset.budget - spent, 0)),
        "charges": str(len(charges)),
        "not_finished": str(sum(not charge.done for charge in charges)),
        "raised": ", ".join(dataset.raised),
        "left_of_caps": ", ".join(f"{who} {left}" for who, left in caps.items()),
    }


def _charge_row(charge: Charge) -> dict[str, Any]:
    """A charge in words."""
    from psd.privacy.epsilon import epsilon_text

    region = charge.region
    return {
        "time": charge.time,
        "dataset": charge.dataset,
        "analyst": charge.analyst or "",
        "what": charge.what,
        "epsilon": epsilon_text(charge.epsilon),
        "k": "auto" if charge.bound is None else str(charge.bound),
        "where": "everywhere" if region is None else " ".join(f"{x:.10g}" for x in region.bounds),
        "state": "done" if charge.done else "charged, not finished",
        "id": charge.id,
        "digest": charge.digest or "",
    }


def _print_rows(lines: list[dict[str, Any]], form: str) -> None:
    """Lines as a table, the long names cut, or as JSON."""
    if form == "json":
        click.echo(json.dumps(lines, indent=1))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in lines[0] if lines else ():
        table.add_column(name.replace("_", " "))
    for line in lines:
        table.add_row(*(value[: 12 if name == "digest" else 40] for name, value in line.items()))
    open_console().print(table if lines else "nothing is there yet")
