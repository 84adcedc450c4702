"""psd ask: one count, paid from a ledger."""

from __future__ import annotations

from typing import Any

import click

from ..options.command import Command
from ..options.inputs import INPUTS, inputs_of, places, times
from ..options.ledger import account_of, ledger_options
from ..options.values import integer, number
from ..output.terminal import show_stage

__all__ = ["command"]


@click.command("ask", cls=Command)
@INPUTS
@click.option(
    "--box", required=True, nargs=4, type=number, metavar="W S E N", help="Box to count in."
)
@click.option("--epsilon", required=True, help="Price of the answer, a decimal such as 0.1.")
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of box and columns.")
@places
@times
@click.option("--user", help="Column of user ids; makes the user the unit of privacy.")
@click.option("--max-contributions", type=integer, help="Most rows of each user in the box.")
@click.option("--per", type=click.Choice(["day"]), help="As in psd build.")
@click.option("--count", type=click.Choice(["rows", "users"]), default="rows", help="The same.")
@click.option("--confidence", type=number, default=0.95, show_default=True, help="Of the interval.")
@click.option("--memory", help="Cap on the memory that reading takes, such as 2GB.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="For people or for programs.",
)
@ledger_options
def command(
    inputs: tuple[str, ...],
    table: str | None,
    query: str | None,
    form: str,
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    **how: Any,
) -> None:
    """Count what lies in one box, with fresh noise; each answer costs its epsilon, also the same.

    The box is taken as it is, with its edges. The error is the standard deviation of the noise.
    A release of `psd build` answers any number of boxes for one epsilon: ask is for one to a few
    numbers, or for boxes that must not be cut by cells.

    \b
    Examples:
      psd ask visits.csv --ledger city.ledger --dataset visits --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6
      psd ask visits.csv --ledger city.ledger --dataset people --analyst ann --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6 --user user_id --max-contributions 4
    """  # noqa: D301
    import pandas as pd

    from psd.publish.single_count import ask

    from ..output.tables import put

    account = account_of(ledger, dataset, analyst)
    if account is None:
        raise click.UsageError("an answer is paid from a ledger; give --ledger and --dataset")
    with show_stage() as stage:
        stage("reading")
        answer = ask(inputs_of(inputs, table, query), account=account, **how)
    columns = ("estimate", "error", "lower", "upper")
    put(
        pd.DataFrame({name: [getattr(answer, name)] for name in columns}),
        form,
        None,
        overwrite=False,
    )
    account.finish()
