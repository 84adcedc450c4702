"""psd methods: the decompositions, their parameters and papers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from ..options.command import Command
from ..output.terminal import open_console

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["command"]


@click.command("methods", cls=Command)
def command() -> None:
    """List the methods of `psd build --method` and the parameters of `--set`.

    \b
    Example:
      psd methods
    """  # noqa: D301
    from rich.table import Table

    from psd._util import plugins
    from psd.decompositions import methods
    from psd.errors import ParameterError

    table = Table(box=None, pad_edge=False)
    for heading in ("method", "parameter", "default", "meaning"):
        table.add_column(heading, overflow="fold")
    for name in methods():
        try:
            _add_rows(table, name)
        except ParameterError as error:
            table.add_row(name, "", "", str(error))
    open_console().print(table)
    for problem in plugins.problems("psd.decompositions", "method"):
        click.echo(f"Note: {problem}.", err=True)


def _add_rows(table: Table, name: str) -> None:
    """Rows of a method and its parameters.

    Raises
    ------
    ParameterError
        If the method is of another package and cannot be loaded.
    """
    from psd.decompositions import method_class

    kind = method_class(name)
    about = (kind.__doc__ or "").splitlines()[0].replace(", as in [1]_.", ".")
    table.add_row(name, "", "", f"{about} ({kind.paper})")
    for field in dataclasses.fields(kind):
        default = "" if field.default is None else str(field.default)
        table.add_row("", field.name, default, field.metadata["doc"])
