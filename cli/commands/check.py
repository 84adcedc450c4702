"""psd check: true errors of releases and methods, and attacks; the commands are of apps."""

from __future__ import annotations

import click

from psd import _apps

from ..commands import find_command
from ..options.command import Group


class _Checks(Group):
    """Commands of apps, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those of apps that are there."""
        return [
            name for name in ("evaluate", "compare", "audit") if _apps.has_command(f"check {name}")
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of that name, or None."""
        name = f"check {cmd_name}"
        return find_command(name) if name in _apps.COMMANDS else None


@click.group("check", cls=_Checks)
def command() -> None:
    """Measure what a release or a method does to known data, and attack builds.

    `evaluate` and `compare` show true errors, for the holder of the data: their results are
    PRIVATE. `audit` attacks builds of synthetic data, and compares what it learns with epsilon.

    \b
    Examples:
      psd check evaluate uk.psd.parquet accidents.csv
      psd check compare accidents.csv --bounds -7.6 49.8 1.9 60.9 -o errors.private.csv
      psd check audit --method quadtree --epsilon 1
    """  # noqa: D301
