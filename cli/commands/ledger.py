"""psd ledger: budgets of datasets, the charges to them, and their balances."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ..options.command import INTEGER, Command, Group, parse_settings
from ..options.common import INPUTS, TABLE_OR_JSON
from ..options.fields import POINTS, TIMES, field_options
from ..output.tables import Column, print_columns
from ..output.terminal import print_success, printable
from ._account import account

if TYPE_CHECKING:
    from psd.ledger.charges import Charge, Dataset
    from psd.ledger.state import LedgerState


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
    """Print the spent part and the rest of each budget; those in rho are a table of their own."""
    rows = [_balance_row(state, name) for name in state.datasets]
    if form == "json" or not rows:
        _print_rows(rows, form)
        return
    # Balances in rho are a table of their own, so that both tables fit a terminal.
    others = [name for name in rows[0] if name not in _RHO_COLUMNS]
    _print_rows([{name: row[name] for name in others} for row in rows], form)
    in_rho = ("dataset", *_RHO_COLUMNS)
    if lines := [{name: row[name] for name in in_rho} for row in rows if row["delta"]]:
        click.echo()
        _print_rows(lines, form)
    explain_deltas(state.datasets.values())


def print_charges(state: LedgerState, charges: Iterable[Charge], form: str) -> None:
    """Print charges in order."""
    from psd.privacy.loss import delta_text, epsilon_text, rho_text

    lines = []
    for charge in charges:
        loss, has_delta = charge.loss, state.dataset(charge.dataset).delta is not None
        region, slices = charge.region, charge.slices
        lines.append(
            {
                "time": charge.time,
                "dataset": charge.dataset,
                "analyst": charge.analyst or "",
                "what": charge.what,
                "epsilon": epsilon_text(loss.epsilon),
                "delta": "" if loss.delta is None else delta_text(loss.delta),
                "rho": rho_text(loss.rho) if has_delta else "",
                "k": "auto" if charge.bound is None else str(charge.bound),
                "where": "everywhere"
                if region is None
                else " ".join(f"{x:.10g}" for x in region.bounds),
                "when": "always" if slices is None else slices.text,
                "state": "done" if charge.done else "charged, not finished",
                "id": charge.id,
                "digest": charge.digest or "",
            }
        )
    _print_rows(lines, form)


def _balance_row(state: LedgerState, name: str) -> dict[str, Any]:
    """Spent part and rest of a budget and of its caps."""
    from psd.ingest.columns import reading_text
    from psd.privacy.loss import delta_text, epsilon_text, rho_text

    dataset, charges = state.datasets[name], state.charges_of(name)
    zone = "" if dataset.time_zone is None else f" {dataset.time_zone}"
    bound = "" if dataset.bound is None else f" k={dataset.bound}"
    balance = state.balance(name)
    # Empty for a budget without delta.
    rhos = dict.fromkeys(_RHO_COLUMNS, "")
    if dataset.delta is not None:
        of_all, spent, left = balance.allowance.rho, balance.spent.rho, balance.rho_left
        texts = (delta_text(dataset.delta), *map(rho_text, (of_all, spent, left)))
        rhos = dict(zip(_RHO_COLUMNS, texts, strict=True))
    # Which charges are added, in a few words.
    adds_up, has_times = "all", "time" in dataset.reading
    if dataset.unit == "record":
        adds_up = "common points and slices" if has_times else "common points"
    elif dataset.unit == "user-day" and has_times:
        adds_up = "common days"
    # What is left of a cap: epsilon of one pure charge, and rho if there is a delta.
    caps = []
    for who in dataset.caps:
        of_cap = state.balance(name, analyst=who)
        in_rho = "" if dataset.delta is None else f" rho {rho_text(of_cap.rho_left)}"
        caps.append(f"{who} {epsilon_text(of_cap.largest_pure)}{in_rho}")
    return {
        "dataset": name,
        "unit": f"{dataset.unit}{zone}{bound}",
        "columns": printable(reading_text(dataset.reading)),
        "inputs": f"{len(dataset.inputs):,}" if dataset.inputs else "any",
        "budget": epsilon_text(dataset.budget),
        "spent": epsilon_text(balance.spent.epsilon),
        "left": epsilon_text(balance.largest_pure),
        **rhos,
        "adds_up": adds_up,
        "charges": str(len(charges)),
        "not_finished": str(sum(not charge.done for charge in charges)),
        "raised": ", ".join(dataset.raised),
        "left_of_caps": ", ".join(caps),
    }


def explain_deltas(datasets: Iterable[Dataset]) -> None:
    """Print what may happen with the probability delta of each dataset that has one."""
    from psd.privacy.loss import delta_text, epsilon_text

    for each in datasets:
        if each.delta is not None:
            click.echo(
                f"{each.name}: with a probability of at most {delta_text(each.delta)}, all "
                f"releases together may reveal more than epsilon {epsilon_text(each.budget)} allows"
            )


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


_FILE = click.argument("file", type=click.Path(readable=False))
_READ = field_options("user", *POINTS, *TIMES, into="read")
_RESOLUTION = click.option(
    "--coordinate-resolution",
    metavar="STEP",
    help="Step to which the coordinates are rounded; charges with another one count everywhere.",
)


@click.group("ledger", cls=Group)
def command() -> None:
    """Keep the budgets of datasets, and every charge to them, in a file.

    Create a ledger once, and register each dataset once. `psd build` and `psd ask`
    with --ledger then charge epsilon before they draw noise. A charge is never undone, also if
    the build fails after it. The charges to a dataset never exceed its budget.

    \b
    Examples:
      psd ledger create city.ledger
      psd ledger register city.ledger visits --budget 2
      psd ledger status city.ledger
      psd ledger history city.ledger visits
      psd ledger verify city.ledger
      psd ledger account --delta 1e-6 --pure 0.1x52
    """  # noqa: D301


@command.command("create", cls=Command, short_help="Create a ledger.")
@_FILE
def create_ledger(file: str) -> None:
    """Create a ledger without datasets. Only its owner may read the file.

    \b
    Examples:
      psd ledger create city.ledger
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    Ledger.create(file)
    print_success(f"wrote {file}; keep it as long as you keep the data")


@command.command("register", cls=Command, short_help="Add a dataset with its budget.")
@_FILE
@click.argument("dataset")
@click.option(
    "--budget", required=True, help="Largest total epsilon of all charges to the dataset."
)
@click.option(
    "--unit",
    type=click.Choice(["record", "user", "user-day"]),
    default="record",
    show_default=True,
    help="Unit of privacy of all its releases.",
)
@click.option(
    "--max-contributions",
    type=INTEGER,
    help="Contribution bound that all releases must have; any bound by default.",
)
@click.option(
    "--delta",
    metavar="D",
    help="Probability with which all releases together may reveal more than the budget, such as "
    "1e-6; it allows Gaussian noise. Far below one over the number of users.",
)
@click.option(
    "--cap",
    "caps",
    multiple=True,
    metavar="NAME=EPSILON",
    help="Largest total epsilon of an analyst; may be repeated. With caps, only the named analysts "
    "can spend.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="PATH",
    help="File or folder that may be read; may be repeated. With any, other inputs are refused.",
)
@_RESOLUTION
@click.option(
    "--value-column",
    "values",
    multiple=True,
    metavar="COLUMN",
    help="Column of a value, such as fare, whose sums and means all builds have; may be repeated. "
    "A build with other values, or without, costs more, since it may meet other faults.",
)
@click.option(
    "--category",
    metavar="COLUMN",
    help="Column of labels by which all builds count. A build with another one, or without, costs "
    "more, since it may meet other faults.",
)
@_READ
def register_dataset(
    file: str,
    dataset: str,
    budget: str,
    unit: Any,
    max_contributions: int | None,
    delta: str | None,
    caps: tuple[str, ...],
    inputs: tuple[str, ...],
    coordinate_resolution: str | None,
    values: tuple[str, ...],
    category: str | None,
    read: dict[str, Any],
) -> None:
    """Add a dataset with its budget; only `psd ledger raise` changes the budget later.

    Register all files that may hold records of the same people as one dataset, also files that
    are added later, such as further months.
    How its records are read is registered too and never changes: the columns lon and lat by
    default, and the column of user ids where the unit has users. A build with another column of
    ids or times is refused; one that reads the points otherwise counts everywhere.

    With --delta, the releases together keep to the budget but for a chance of at most delta. They
    may then use Gaussian noise, and pure charges also count as epsilon x tanh(epsilon / 2) in rho,
    by which many small ones cost less. A charge is granted by whichever of the two sums fits.

    \b
    Examples:
      psd ledger register city.ledger accidents --budget 1
      psd ledger register city.ledger trips --budget 2 --delta 1e-6 --unit user \\
          --user user_id
      psd ledger register city.ledger visits --budget 2 --unit user --user user_id \\
          --cap ann=1.5 --cap bob=0.5
    """  # noqa: D301
    from psd.ingest.columns import reading_text
    from psd.ingest.sources import Columns
    from psd.ledger.ledger import Ledger
    from psd.privacy.loss import delta_text

    cap_texts = parse_settings(caps, "NAME=EPSILON", "ann=0.5", option="--cap")
    ledger = Ledger(file)
    ledger.register(
        dataset,
        budget,
        unit=unit,
        time_zone=read.get("time_zone") if unit == "user-day" else None,
        max_contributions=max_contributions,
        delta=delta,
        caps=cap_texts,
        columns=Columns(**read, category=category, values=values),
        coordinate_resolution=coordinate_resolution,
        inputs=inputs,
    )
    entered = ledger.state().dataset(dataset)
    failing = "" if entered.delta is None else f" and delta {delta_text(entered.delta)}"
    print_success(f"registered {dataset} in {file}: budget {budget}{failing} per {unit}")
    print_success(f"records are read by {printable(reading_text(entered.reading))}")
    explain_deltas([entered])


@command.command("inputs", cls=Command, short_help="Add inputs that may be read for a dataset.")
@_FILE
@click.argument("dataset")
@INPUTS
@field_options("table", "query")
def register_inputs(
    file: str, dataset: str, inputs: tuple[str, ...], table: str | None, query: str | None
) -> None:
    """Add inputs that may be read for a dataset; all others are refused before they are read.

    Without registered inputs a dataset may be built from any input. A file is recognised by its
    place in the file system, also under another name; a copy of it is another input. A folder
    stands for the files that are in it now. A tally is recognised by its parts.

    \b
    Examples:
      psd ledger inputs city.ledger visits visits.csv february.csv
    """  # noqa: D301
    from psd.ledger.ledger import Ledger
    from psd.publish.counting import inputs_of

    data = inputs_of(inputs, table, query)
    added = Ledger(file).register_inputs(dataset, data)
    print_success(f"added {added:,} inputs to {dataset} in {file}; other inputs are refused")


@command.command("raise", cls=Command, short_help="Raise the budget of a dataset.")
@_FILE
@click.argument("dataset")
@click.option("--budget", required=True, help="New largest total epsilon, past charges included.")
def raise_budget(file: str, dataset: str, budget: str) -> None:
    """Raise the budget of a dataset; the ledger records the date and the old budget.

    A larger budget is a weaker guarantee for the people in the data. Tell them about the change.

    \b
    Examples:
      psd ledger raise city.ledger visits --budget 3
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    Ledger(file).raise_budget(dataset, budget)
    print_success(f"raised {dataset} in {file}: budget {budget}")


@command.command("status", cls=Command, short_help="Show the rest of each budget.")
@_FILE
@TABLE_OR_JSON
def show_status(file: str, form: str) -> None:
    """Show the spent part and the rest of each budget.

    The spent part is that of the records which the charges concern most. adds_up says which
    charges are added: "all", or only those with "common points", "common points and slices" or
    "common days". A record lies at one point and at one time, so of charges for two areas, or for
    two days, it pays one. The records of a user's day lie on one day, and those of a user anywhere.

    A budget with a delta has two sums of its charges, spent in epsilon and spent_rho. The next
    charge fits if it fits by one of the two. So left is the largest epsilon of a charge without
    Gaussian noise, and left_rho the rest for one with it.

    \b
    Examples:
      psd ledger status city.ledger
      psd ledger status city.ledger --format json
    """  # noqa: D301
    from psd.ledger.ledger import Ledger

    state = Ledger(file).state()
    print_balances(state, form)


@command.command("history", cls=Command, short_help="List the charges.")
@_FILE
@click.argument("dataset", required=False)
@TABLE_OR_JSON
def show_history(file: str, dataset: str | None, form: str) -> None:
    """List the charges to all datasets or to one, in order.

    "charged, not finished" is a build that is still running, or that ended after its charge and
    before the ledger recorded its release. It stays charged. If its release file exists, the next
    `psd build` into the same folder marks the charge as done.

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
    print_charges(state, charges, form)


@command.command("verify", cls=Command, short_help="Check that no entry was changed.")
@_FILE
@click.option(
    "--head",
    metavar="[N] HASH",
    help="Head that an earlier build or `psd ledger verify` printed; it must be in the chain.",
)
@click.option("--key", type=click.Path(), help="Key of the seal, to check the sealed entries.")
@click.option("--releases", type=click.Path(), help="Folder of releases to compare with charges.")
def verify_ledger(file: str, head: str | None, key: str | None, releases: str | None) -> None:
    """Check the file and the chain of its entries, and print the head, the hash of the chain.

    An older copy of a ledger passes this check, and so does a chain that was recomputed after an
    edit. To detect both, store the head elsewhere and pass it later with --head, or seal the ledger
    and pass the key with --key. With --releases, epsilon, unit, bound and area of each release
    are compared with its charge.

    \b
    Examples:
      psd ledger verify city.ledger
      psd ledger verify city.ledger --key owner.key --releases published
    """  # noqa: D301
    from psd.ledger.ledger import Ledger
    from psd.ledger.receipts import check_seal

    state = Ledger(file).verify(head=head, key=key, releases=releases)
    click.echo(f"{file} is sound: {len(state.hashes):,} entries, head {state.head}")
    if key is not None:
        sealed = check_seal(file, state, key)
        click.echo(f"sealed: entries 1 to {sealed:,}; not sealed: {len(state.hashes) - sealed:,}")


@command.command("seal", cls=Command, short_help="Seal all entries with a key.")
@_FILE
@click.option(
    "--key",
    required=True,
    type=click.Path(),
    help="File of the key, readable by its owner only; created if it does not exist.",
)
def seal_ledger(file: str, key: str) -> None:
    """Seal all entries with a key, in a file with .seal after the name of the ledger.

    Without the key, a changed entry cannot be hidden by recomputing the chain. Keep the key and a
    copy of the seal where those who may write the ledger cannot reach them. Entries after the seal
    are not covered until the ledger is sealed again.

    \b
    Examples:
      psd ledger seal city.ledger --key owner.key
    """  # noqa: D301
    from psd.ledger.ledger import Ledger
    from psd.ledger.receipts import seal_path

    sealed = Ledger(file).seal(key)
    print_success(f"wrote {seal_path(file)}: entries 1 to {sealed:,} are sealed")


command.add_command(account)
