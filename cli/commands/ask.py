"""psd ask: one count, charged to a ledger."""

from __future__ import annotations

from typing import Any

import click

from ..options.command import NUMBER, Command
from ..options.common import INPUTS
from ..options.fields import LEDGER, POINTS, TIMES, UNIT, account_of, field_options
from ..output.terminal import print_success, show_stage


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
@field_options(
    "coordinate_resolution",
    *UNIT,
    *POINTS,
    *TIMES,
    "slices",
    "memory",
    into="read",
    time_zone={"is_everyday": True},
    slices={
        "help": "Count only in these months, weeks, days or hours, together, such as "
        "2024-01,2024-03..2024-06, 2024-W05 or 2024-01-31T17. Public, never from the data; needs "
        "--time."
    },
)
@click.option(
    "--when",
    metavar="WINDOW",
    help="Count only in this window of --slices, such as 2024-01-31T07..2024-01-31T09 or "
    '"weekdays 07-09".',
)
@field_options("table", "query")
@field_options(
    "values",
    into="of_values",
    values={
        "help": "Public bounds of a column whose mean or sum is asked for, such as fare 0 60; "
        "values beyond them count as the nearest bound. May be repeated."
    },
)
@click.option(
    "--mean",
    multiple=True,
    metavar="COLUMN",
    help="Also answer the mean of this column of --value, for the same epsilon. May be repeated.",
)
@click.option(
    "--sum",
    multiple=True,
    metavar="COLUMN",
    help="Also answer the sum of this column of --value, for the same epsilon. May be repeated.",
)
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
    of_values: dict[str, Any],
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
    few numbers, or where non-uniformity error is not acceptable. --value with --mean or --sum
    answers these beside the count; the count then has sqrt(2) times the error for one value.

    \b
    Examples:
      psd ask visits.csv --ledger city.ledger --dataset visits --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6
      psd ask visits.csv --ledger city.ledger --dataset people --analyst ann --epsilon 0.1 \\
          --box 126.9 37.5 127.0 37.6 --user user_id --max-contributions 4
      psd ask rides.csv --ledger city.ledger --dataset rides --epsilon 0.5 \\
          --box 126.9 37.5 127.0 37.6 --value fare 0 60 --mean fare --sum fare
      psd ask visits.csv --ledger city.ledger --dataset visits --epsilon 0.1 --time at \\
          --box 126.9 37.5 127.0 37.6 --time-zone Asia/Seoul \\
          --slices 2024-01-01T00..2024-01-31T23 --when "weekdays 07-09"
    """  # noqa: D301
    import pandas as pd

    from psd.privacy.values import Value
    from psd.publish.single_count import ask

    from ..output.answers import note_intervals
    from ..output.publishing import make_observer
    from ..output.tables import write_table

    account = account_of(ledger, dataset, analyst)
    if account is None:
        raise click.UsageError("--ledger and --dataset must be given; psd ask charges a ledger")
    with show_stage() as stage:
        stage("reading")
        observer = make_observer(stage, report_private=report_private)
        read |= of_values | {"account": account, "observer": observer}
        answer = ask(list(inputs), **read, **options)
    names = ("estimate", "error", "lower", "upper")
    columns = {name: getattr(answer, name) for name in names}
    for kind, answers in (("mean", answer.mean), ("sum", answer.sum)):
        for column, each in answers.items():
            columns[f"{kind}_{column}"] = each.estimate
            columns |= {f"{kind}_{column}_{name}": getattr(each, name) for name in names[1:]}
    table = pd.DataFrame({name: [value] for name, value in columns.items()})
    write_table(table, form, None, overwrite=False)
    if form == "table":
        values = [Value(name, *map(float, ends)) for name, *ends in of_values.get("values", ())]
        note_intervals(table, values, answer.mean)
    account.finish()
    if form == "table":
        print_success(f"ledger head {account.head}")
