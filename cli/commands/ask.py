"""psd ask: one count, charged to a ledger."""

from __future__ import annotations

from typing import Any

import click

from ..options.command import NUMBER, Command
from ..options.common import INPUTS
from ..options.fields import LEDGER, POINTS, TIMES, UNIT, account_of, field_options
from ..output.terminal import print_success, show_stage

__all__ = ["command"]


@click.command("ask", cls=Command)
@INPUTS
@click.option(
    "--box",
    "area",
    required=True,
    nargs=4,
    type=NUMBER,
    metavar="W S E N",
    help="Box to count in.",
)
@click.option("--epsilon", required=True, help="Epsilon of this answer, a decimal such as 0.1.")
@click.option(
    "--crs",
    default="EPSG:4326",
    show_default=True,
    help="CRS of the box and of the coordinate columns.",
)
@field_options("coordinate_resolution", *UNIT, *POINTS, *TIMES, "memory", into="read")
@field_options("table", "query")
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Format of the output.",
)
@field_options(*LEDGER, "report_private")
def command(
    inputs: tuple[str, ...],
    read: dict[str, Any],
    form: str,
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    report_private: bool,
    **options: Any,
) -> None:
    """Count the records in one box with fresh noise, and charge epsilon to a ledger.

    Each answer costs its epsilon, also if the same question was answered before. The box is not
    adjusted to cells; its edges belong to it. The error is the standard deviation of the noise.
    One release of `psd build` answers any number of boxes for one epsilon; use `psd ask` for a
    few numbers, or where non-uniformity error is not acceptable.

    \b
    Examples:
      psd ask visits.csv --ledger city.ledger --dataset visits --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6
      psd ask visits.csv --ledger city.ledger --dataset people --analyst ann --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6 --user user_id --max-contributions 4
    """  # noqa: D301
    import pandas as pd

    from psd.publish.single_count import ask

    from ..output.publishing import make_observer
    from ..output.tables import write_table

    account = account_of(ledger, dataset, analyst)
    if account is None:
        raise click.UsageError("--ledger and --dataset must be given; psd ask charges a ledger")
    with show_stage() as stage:
        stage("reading")
        observer = make_observer(stage, report_private=report_private)
        answer = ask(list(inputs), account=account, observer=observer, **read, **options)
    columns = ("estimate", "error", "lower", "upper")
    write_table(
        pd.DataFrame({name: [getattr(answer, name)] for name in columns}),
        form,
        None,
        overwrite=False,
    )
    account.finish()
    if form == "table":
        print_success(f"ledger head {account.head}")
