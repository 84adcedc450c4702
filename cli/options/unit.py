"""Options that say whose presence is hidden, and what is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..options.values import integer, rename_errors

if TYPE_CHECKING:
    from psd.curator.contribution_choice import BoundChoice

__all__ = ["bound", "choice_of", "promise", "unit_options"]

AUTO = "auto"


def bound(value: object) -> int | str:
    """Type of a bound: a whole number, or auto."""
    if value == AUTO:
        return AUTO
    try:
        return integer(value)
    except click.BadParameter:
        raise click.BadParameter(f"{str(value)!r} is no whole number, and not auto.") from None


def unit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--user`` and what goes with it."""
    options = (
        click.option("--user", help="Column of user ids; makes the user the unit of privacy."),
        click.option(
            "--max-contributions",
            type=bound,
            metavar="K|auto",
            help="Most rows kept of each user, or of each day with --per; auto pays for a choice.",
        ),
        click.option("--auto-share", help="Share of epsilon for the choice; 0.05 by default."),
        click.option(
            "--auto-over",
            type=integer,
            help="Users that may have more rows than the bound; 250 / epsilon by default.",
        ),
        click.option("--auto-most", type=integer, help="Largest bound; 1000 by default."),
        click.option(
            "--per",
            type=click.Choice(["day", "slice"]),
            help="Protect each day of a user by itself; or bound rows in each time slice, which "
            "share epsilon; with --time.",
        ),
        click.option(
            "--count",
            type=click.Choice(["rows", "users"]),
            default="rows",
            show_default=True,
            help="Users: all rows of a user share one count, and none is dropped.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def choice_of(max_contributions: int | str | None, **settings: Any) -> int | BoundChoice | None:
    """The bound, or how it is chosen.

    Raises
    ------
    UsageError
        If the choice is described and not asked for.
    """
    from psd.curator.contribution_choice import BoundChoice

    given = {name: value for name, value in settings.items() if value is not None}
    if max_contributions == AUTO:
        with rename_errors({name: f"--auto-{name}" for name in given}):
            return BoundChoice(**given)
    if given:
        names = ", ".join(f"--auto-{name}" for name in given)
        raise click.UsageError(f"{names} goes with --max-contributions auto")
    assert not isinstance(max_contributions, str)
    return max_contributions


def promise(release: Any) -> str:
    """The guarantee in a few words."""
    from psd.privacy.epsilon import epsilon_text

    each = " in each slice" * (getattr(release, "bound", "") == "slice")
    return f"epsilon {epsilon_text(release.epsilon)} {release.unit_of_privacy.guarantee_text}{each}"
