"""Options of the fields of a request, from `psd.publish.fields.FIELDS`, and their account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.publish.fields import FIELDS, Field

from ..output.terminal import print_warning
from .command import BoundsOption, Decorator, GroupedOption, chain_options

if TYPE_CHECKING:
    from psd.ledger.account import Account

__all__ = ["AREA", "LEDGER", "POINTS", "REGIONS", "TIMES", "UNIT", "account_of", "field_options"]


POINTS = (
    "x", "y", "wkt", "geometry", "layer", "delimiter", "decimal", "encoding", "skip_rows",
    "input_crs", "where",
)  # fmt: skip
"""Where the points are, and how text is read."""

TIMES = ("time", "time_zone")
AREA = ("bounds", "bounds_crs", "crs", "coordinate_resolution", "min_cell")
REGIONS = ("regions", "region_id", "region_parent", "gaps", "tolerance", "repair")
UNIT = ("user", "max_contributions", "per", "count")
LEDGER = ("ledger", "dataset", "analyst")

_FIELDS = {field.name: field for field in FIELDS}


def field_options(*names: str, into: str | None = None, **changes: Mapping[str, Any]) -> Decorator:
    """Options of fields, in the order of the help; changes: attributes of options that differ here.

    into: the parameter of the command that has the given values, by name; without it each field is
    a parameter, None where it was left out, and False for a flag.
    """
    options = [_option(_FIELDS[name], **changes.get(name, {})) for name in names]
    if into is None:
        return chain_options(*options)
    target = into

    def gather(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_values(*arguments: Any, **options: Any) -> Any:
            given = {name: options.pop(name) for name in names}
            given = {name: value for name, value in given.items() if value not in (None, (), False)}
            return command(*arguments, **{target: given}, **options)

        return chain_options(*options)(with_values)

    return gather


def _option(field: Field, **changes: Any) -> Decorator:
    """Option of a field; its value is a text, a tuple of texts, or True."""
    attributes: dict[str, Any] = {
        "cls": BoundsOption if field.name == "bounds" else GroupedOption,
        "group": field.group,
        "is_everyday": field.is_everyday,
        "help": field.help,
    }
    if not field.form:
        attributes |= {"is_flag": True}
    elif field.choices:
        attributes["type"] = click.Choice(field.choices)
    elif field.name != "bounds":
        attributes["metavar"] = field.form
    if field.words > 1:
        attributes["nargs"] = field.words
    if field.is_list:
        attributes |= {"multiple": True, "help": f"{field.help} May be repeated."}
    return click.option(field.option, field.name, **{**attributes, **changes})


def account_of(
    ledger: str | None, dataset: str | None, analyst: str | None, outputs: Sequence[str] = ()
) -> Account | None:
    """Dataset that is charged; None if no ledger is named.

    Releases beside the ledger and the outputs are compared with it: an older copy of a ledger does
    not have their charges, and an edited one has others.
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
