"""Options of the unit of privacy, and of what is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..options.command import chain_options, options_of

__all__ = ["unit_options"]

_option = options_of("Unit of privacy")


def unit_options(
    *,
    bound: str,
    per: tuple[str, ...],
    bound_type: click.ParamType[Any] = click.STRING,
    without: str = "Without it, each record is protected separately.",
) -> Callable[..., Any]:
    """``--user`` and the options that go with it.

    Parameters
    ----------
    bound : str
        Help text of ``--max-contributions``.
    per : tuple of str
        What ``--per`` takes; no such option if empty.
    bound_type : ParamType
        Type of ``--max-contributions``; a text where a bound may be chosen privately.
    without : str
        What holds without ``--user``.
    """
    options = [
        _option("--user", metavar="COLUMN", help="Column of user ids: all records of a user are "
                f"protected together. {without}"),
        _option("--max-contributions", metavar="K", type=bound_type, help=bound),
    ]  # fmt: skip
    if per:
        options += [
            _option(
                "--per",
                type=click.Choice(per),
                help="day: each day of a user is protected separately. slice: K records of a user "
                "are kept in each time slice, and the slices share epsilon. record: each record is "
                "protected separately, as without --user; no warning asks for users."
                if "slice" in per
                else "day: each day of a user is protected separately.",
            ),
            _option(
                "--count",
                type=click.Choice(["records", "users"]),
                help="records, the default: estimates are numbers of records. users: the records "
                "of a user have a total weight of 1, so estimates are numbers of users; no record "
                "is dropped.",
            ),
        ]
    return chain_options(*options)
