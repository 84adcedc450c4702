"""Small tables of statistics on the screen and in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..output.terminal import console

if TYPE_CHECKING:
    import pandas

__all__ = ["form_of", "put"]

# Coordinates are told apart by digits that would only clutter other numbers.
_SIDES = ("west", "south", "east", "north")


def form_of(form: str | None, output: str | None) -> str:
    """Format asked for, or that of the output's ending."""
    ending = Path(output or "").suffix[1:].lower()
    chosen = form or (ending if ending in ("csv", "json") else "table")
    if output and chosen == "table":
        raise click.UsageError(f"-o {output}: name the format with --format csv or json")
    return chosen


def put(table: pandas.DataFrame, form: str, output: str | None, *, overwrite: bool) -> None:
    """Show a table to people, or write it as CSV or JSON."""
    from ..commands.query import emit

    kinds = table.dtypes.items()
    plain = table[[name for name, kind in kinds if str(kind) != "geometry"]]
    if form == "table":
        _show(plain)
    elif form == "csv":
        emit(str(plain.to_csv(index=False, lineterminator="\n")), output, overwrite=overwrite)
    else:
        text = str(plain.to_json(orient="records", indent=1, date_format="iso")) + "\n"
        emit(text, output, overwrite=overwrite)


def _show(table: pandas.DataFrame) -> None:
    """All columns, numbers rounded alike in a column."""
    from rich.table import Table

    out = Table(box=None, pad_edge=False)
    columns: list[list[str]] = []
    for name in table.columns:
        numbers = table[name].dtype.kind in "iuf"
        out.add_column(str(name).replace("_", "\n"), justify="right" if numbers else "left")
        columns.append(_texts(table[name], str(name)))
    for row in zip(*columns, strict=True):
        out.add_row(*row)
    console().print(out)


def _texts(column: pandas.Series[Any], name: str) -> list[str]:
    """Values of a column as people read them."""
    if column.dtype.kind != "f":
        return [str(value) for value in column]
    if name in _SIDES:
        return [f"{value:.10g}" for value in column]
    finite = column[column.abs() < float("inf")].abs()
    digits = 1 if finite.max() >= 10 else 3
    return [f"{value:,.{digits}f}" for value in column]
