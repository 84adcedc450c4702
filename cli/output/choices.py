"""Make a private choice, and print it with what public numbers say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.csv_text import csv_text

from ..options.ledger import account_of, split_dataset
from ..options.reading import inputs_of, local_files
from ..output.private_report import make_observer
from ..output.request_warnings import warn_of_large_epsilon
from ..output.tables import write_table
from ..output.terminal import show_stage
from ..output.text_files import write_text

if TYPE_CHECKING:
    from psd.choosing import Choice
    from psd.choosing.objectives import Objective
    from psd.ledger.account import Account

__all__ = ["Candidates", "make_choice", "show_notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """How the objective of a choice is made.

    Parameters
    ----------
    make : callable
        Makes the objective of the files, after these and the epsilon were checked.
    unit : str
        What scores are numbers of.
    files : tuple of str
        Public files that the objective is read from. Those that hold records are refused before
        they are read, since messages about candidates quote their ids.
    """

    make: Callable[[], Objective]
    unit: str
    files: tuple[str, ...] = ()


def make_choice(
    candidates: Candidates,
    *,
    inputs: tuple[str, ...],
    read: dict[str, Any],
    form: str,
    ledger: str | None,
    dataset: str | None,
    report_private: bool,
    output: str | None = None,
    overwrite: bool = False,
    crs: str = "",
    **options: Any,
) -> None:
    """Choose, print the choice, and record that the charge is done.

    Parameters
    ----------
    candidates : Candidates
        Public.
    inputs, read, form, ledger, dataset, report_private
        Options of the command.
    output, overwrite
        File of the picks, which have outlines then.
    crs : str
        Of the outlines.
    **options
        Epsilon and unit of privacy.
    """
    from psd.choosing import choose
    from psd.privacy.epsilon import epsilon_decimal, parse_epsilon
    from psd.space.region_inputs import refuse_record_files

    warn_of_large_epsilon(epsilon_decimal(parse_epsilon(options["epsilon"])))
    reads: list[str | Path] = [*candidates.files, *local_files(inputs), ledger or ""]
    _check_output(output, overwrite=overwrite, reads=reads)
    account = account_of(ledger, *split_dataset(dataset))
    if account is None:
        raise click.UsageError("--ledger and --dataset must be given; psd choose charges a ledger")
    account.refuse_records(candidates.files)
    refuse_record_files(candidates.files, local_files(inputs))
    with show_stage() as stage:
        stage("reading candidates")
        objective = candidates.make()
        data = inputs_of(inputs, read.pop("table", None), read.pop("query", None))
        stated = {name: value for name, value in options.items() if value is not None}
        observer = make_observer(stage, report_private=report_private)
        choice = choose(data, objective, account=account, observer=observer, **read, **stated)
    _show(choice, candidates.unit, form, account)
    if output is not None:
        _write(choice, output, crs, overwrite=overwrite)


def _check_output(output: str | None, *, overwrite: bool, reads: Iterable[str | Path]) -> None:
    """Refuse a file of another format, that exists, or is read, before anything is charged."""
    from psd._util.atomic_write import check_free

    if output is None:
        return
    if Path(output).suffix.lower() not in (".geojson", ".csv"):
        raise click.UsageError(f"--output must end in .geojson or .csv, got {output[:80]}")
    check_free(output, overwrite=overwrite, inputs=reads)


def _write(choice: Choice, output: str, crs: str, *, overwrite: bool) -> None:
    """Write the picks as GeoJSON in degrees, or as CSV without outlines."""
    import geopandas as gpd
    import pandas as pd

    from psd.space.shape_transforms import transform_table

    table = pd.DataFrame(choice.picks)
    if output.lower().endswith(".csv"):
        text = csv_text(table.drop(columns="geometry"))
    else:
        layer = gpd.GeoDataFrame(table, geometry="geometry", crs=crs)
        text = transform_table(layer, "EPSG:4326", "the picks").to_json(drop_id=True) + "\n"
    write_text(str(text), output, overwrite=overwrite)


def _show(choice: Choice, unit: str, form: str, account: Account) -> None:
    """Print the picks; to people also the notes, and the head of the ledger."""
    import pandas as pd

    table = pd.DataFrame(choice.picks).drop(columns="geometry", errors="ignore")
    write_table(table, form, None, overwrite=False)
    account.finish()
    if form == "table":
        for line in show_notes(choice, unit):
            click.echo(line)
        click.echo(f"ledger head {account.head}")


def show_notes(choice: Choice, unit: str) -> list[str]:
    """Sentences on the price of a choice, its error and what a lie gains; all from public numbers.

    Parameters
    ----------
    choice : Choice
        Public.
    unit : str
        What scores are numbers of.
    """
    each = "" if choice.draws == 1 else f"{choice.draw_epsilon:f} for each draw, "
    return [
        f"{choice.guarantee}; {each}{_number(choice.candidates)} candidates",
        f"shortfall: at most {choice.mean_shortfall:,.4g} {unit} below the best candidate on "
        f"average, and at most {choice.likely_shortfall:,.4g} with probability 0.95",
        f"alike: candidates within {choice.alike:,.4g} {unit} of each other are hardly told apart",
        f"a liar gains at most {_share(choice.liar_gain())} their largest utility, t liars "
        f"together e^({choice.epsilon:f} t) - 1 of it, in n such choices e^({choice.epsilon:f} n) "
        "- 1",
    ]


def _number(candidates: int) -> str:
    """A number of candidates; a power of ten if it is too long."""
    return f"{candidates:,}" if candidates < 10**12 else f"about 10^{len(str(candidates)) - 1}"


def _share(gain: float) -> str:
    """A share as a percentage; where it says nothing, as a factor."""
    return f"{gain:.3g} times" if gain > 1 else f"{100 * gain:.3g} % of"
