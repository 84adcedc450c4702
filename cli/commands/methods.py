"""psd methods: the decompositions, their parameters and papers."""

from __future__ import annotations

import dataclasses

import click

from ..options.command import Command
from ..output.tables import Column, print_columns


@click.command("methods", cls=Command)
def command() -> None:
    """List the methods of `psd build --method` and the parameters of `--set`.

    \b
    Example:
      psd methods
    """  # noqa: D301
    from psd._util import plugins
    from psd.decompositions import method_class, methods
    from psd.errors import ParameterError

    rows: list[tuple[str, ...]] = []
    for name in methods():
        try:
            kind = method_class(name)
        except ParameterError as error:  # of another package, which cannot be loaded
            rows.append((name, "", "", str(error)))
            continue
        about = (kind.__doc__ or "").splitlines()[0].replace(", as in [1]_.", ".")
        rows.append((name, "", "", f"{about} ({kind.paper})"))
        for field in dataclasses.fields(kind):
            default = "" if field.default is None else str(field.default)
            rows.append(("", field.name, default, field.metadata["doc"]))
    headings = ("method", "parameter", "default", "meaning")
    print_columns(
        [
            Column(heading=heading, values=list(values), left=True, folds=True)
            for heading, values in zip(headings, zip(*rows, strict=True), strict=True)
        ]
    )
    for problem in plugins.problems("psd.decompositions", "method"):
        click.echo(f"Note: {problem}.", err=True)
