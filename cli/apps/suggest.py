"""psd suggest: shared weights learnt with privacy, and places ranked on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.command import INTEGER, Command, Group
from ..options.common import (
    INPUTS,
    RELEASE_OPTION,
    chosen_max_nodes,
    local_files,
    overwrite,
    table_or,
)
from ..options.fields import LEDGER, POINTS, account_of, field_options
from ..output.publishing import make_observer
from ..output.tables import write_table
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from psd.api.release import Release


@click.group("suggest", cls=Group)
def run_suggest() -> None:
    """Suggest places to a person whose places never leave the device.

    `train` runs where the records are, and learns a few shared weights with privacy. `places` runs
    on the device of a person. It reads a release, the weights and the person's places.

    \b
    Examples:
      psd suggest train visits.csv --release city.psd.parquet --user user_id \\
          --epsilon 0.3 --delta 1e-6 -o city.weights.json
      psd suggest places own.csv --release city.psd.parquet --weights city.weights.json -k 20
    """  # noqa: D301


@run_suggest.command("train", cls=Command, short_help="Learn shared weights from records.")
@INPUTS
@RELEASE_OPTION
@click.option("-o", "--output", required=True, help="File of the weights.")
@click.option("--epsilon", required=True, help="Epsilon of the weights, a decimal such as 0.3.")
@click.option(
    "--delta",
    required=True,
    metavar="D",
    help="Probability with which the weights may reveal more than epsilon allows, such as 1e-6.",
)
@click.option(
    "--cells",
    type=INTEGER,
    default=40,
    show_default=True,
    help="Regions in a row and in a column of the area, 5 to 100.",
)
@field_options(
    "user",
    "max_contributions",
    *POINTS,
    "memory",
    into="read",
    user={"required": True, "help": "Column of user ids; the weights protect users."},
    max_contributions={
        "help": "Largest number of records of each user that are read; 4 by default."
    },
)
@field_options("table", "query", *LEDGER, "report_private")
@overwrite
def train(
    inputs: tuple[str, ...],
    release: str,
    output: str,
    overwrite: bool,
    read: dict[str, Any],
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    table: str | None,
    query: str | None,
    report_private: bool,
    **options: Any,
) -> None:
    """Learn the weights by which devices rank regions, with noise for (epsilon, delta).

    Each user is protected as a whole. The file of weights has six numbers, epsilon, delta and the
    digest of the release. It can be given to anyone.

    \b
    Examples:
      psd suggest train visits.csv --release city.psd.parquet --user user_id \\
          --epsilon 0.3 --delta 1e-6 -o city.weights.json --ledger city.ledger --dataset visits
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd.apps.suggest.models import write_weights
    from psd.apps.suggest.training import train_weights
    from psd.privacy.loss import epsilon_decimal, parse_epsilon
    from psd.publish.counting import inputs_of
    from psd.publish.request_warnings import warn_of_large_epsilon

    reads: list[str | Path] = [release, *local_files(inputs), ledger or ""]
    check_free(output, overwrite=overwrite, inputs=reads)
    account = account_of(ledger, dataset, analyst, (output,))
    warn_of_large_epsilon(epsilon_decimal(parse_epsilon(options["epsilon"])))
    with show_stage() as stage:
        stage("reading")
        data = inputs_of(inputs, table, query)
        stated = {name: value for name, value in options.items() if value is not None}
        observer = make_observer(stage, report_private=report_private)
        weights = train_weights(
            data, _load(release), account=account, observer=observer, **read, **stated
        )
    write_weights(weights, output, overwrite=overwrite)
    print_success(f"wrote {output}")
    if account is not None:
        account.finish()
        print_success(f"ledger head {account.head}")


@run_suggest.command("places", cls=Command, short_help="Rank regions for one person.")
@click.argument("own_places", metavar="OWN", type=click.Path(readable=False))
@RELEASE_OPTION
@click.option(
    "--weights", required=True, type=click.Path(readable=False), help="File of the weights."
)
@click.option("-k", type=INTEGER, default=20, show_default=True, help="Number of regions to list.")
@click.option("--x", default="lon", show_default=True, help="Column of x or longitude in OWN.")
@click.option("--y", default="lat", show_default=True, help="Column of y or latitude in OWN.")
@table_or("csv", "json")
def rank_places(
    own_places: str, release: str, weights: str, k: int, x: str, y: str, form: str
) -> None:
    """Rank the regions of a release for the person whose places are in OWN, a CSV file.

    The command reads three files and prints a table. It opens no connection and writes no file.
    Coordinates are in the CRS of the release. Places outside its area are left out.

    \b
    Examples:
      psd suggest places own.csv --release city.psd.parquet --weights city.weights.json -k 20
    """  # noqa: D301
    from psd.apps.suggest.models import read_weights
    from psd.apps.suggest.places import read_places, suggest_places

    shared = read_weights(weights)
    suggested = suggest_places(read_places(own_places, x, y), _load(release), shared, k)
    write_table(suggested, form, None, overwrite=False)


def _load(path: str) -> Release:
    """Release of a file; a series has no single density."""
    from psd.api.release import load
    from psd.errors import ReleaseFormatError

    loaded = load(path, max_nodes=chosen_max_nodes())
    if loaded.slices is not None:
        raise ReleaseFormatError(
            f"{path} must be a single release, got a series of time slices; its density changes"
        )
    return loaded


COMMANDS = {"suggest": run_suggest}
