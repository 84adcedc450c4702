"""psd methods: the decompositions, their parameters and papers."""

from __future__ import annotations

import dataclasses

import click

from ..options.command import Command
from ..output.terminal import console

__all__ = ["command"]


@click.command("methods", cls=Command)
def command() -> None:
    """List the methods of `psd build --method` and the parameters of `--set`.

    \b
    Example:
      psd methods
    """  # noqa: D301
    from rich.table import Table

    from psd.decompositions import method_class, methods

    table = Table(box=None, pad_edge=False)
    for heading in ("method", "parameter", "default", "meaning"):
        table.add_column(heading, overflow="fold")
    for name in methods():
        kind = method_class(name)
        about = (kind.__doc__ or "").splitlines()[0].replace(", as in [1]_.", ".")
        table.add_row(name, "", "", f"{about} ({kind.paper})")
        for field in dataclasses.fields(kind):
            default = "" if field.default is None else str(field.default)
            table.add_row("", field.name, default, field.metadata["doc"])
    console().print(table)
