"""Small tables of statistics on the screen and in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from psd._util.csv_text import csv_text

from ..output.columns import Column, print_columns
from ..output.terminal import printable
from ..output.text_files import write_text

if TYPE_CHECKING:
    import pandas

__all__ = ["FORMATS", "state_source", "write_table"]

FORMATS = ("table", "csv", "json")

# Coordinates need more digits than other numbers.
_SIDES = ("west", "south", "east", "north")

_OF_RATIOS = ("ratio", "perturbation_error", "nonuniformity_error", "error", "lower", "upper")


def state_source(table: pandas.DataFrame, *sources: str) -> None:
    """Add a column ``release_source`` to a table unless all its counts are of the curator."""
    others = [source for source in sources if source != "curator"]
    if others:
        if "release_source" in table:
            raise click.UsageError(
                "regions must not have a column release_source, which the answers add; rename it"
            )
        table["release_source"] = others[0]


def write_table(table: pandas.DataFrame, form: str, output: str | None, *, overwrite: bool) -> None:
    """Show a table to people, or write it as CSV or JSON."""
    from ..output.answer_files import plain_answers

    plain = plain_answers(table)
    if form == "table":
        _print_table(plain)
    elif form == "csv":
        write_text(csv_text(plain), output, overwrite=overwrite)
    else:
        from psd._util.column_kinds import json_text
        from psd.export import finite_errors

        write_text(json_text(finite_errors(plain)), output, overwrite=overwrite)


def _print_table(table: pandas.DataFrame) -> None:
    """All columns, numbers rounded alike in a column."""
    columns = []
    # A ratio far above others has an upper end in tens, beside those of 1.1.
    shares = _OF_RATIOS if "ratio" in table else ()
    for name in table.columns:
        values = _column_texts(table[name], str(name), is_share=name in shares)
        words = table[name].dtype.kind not in "iuf"
        heading = printable(str(name))
        columns.append(Column(heading=heading, values=values, left=words, folds=words))
    print_columns(columns)


def _column_texts(column: pandas.Series[Any], name: str, *, is_share: bool = False) -> list[str]:
    """Values of a column as people read them."""
    if column.dtype.kind == "b":
        return ["yes" if value else "no" for value in column]
    if column.dtype.kind != "f":
        return [printable(str(value)) for value in column]
    if name in _SIDES:
        return [f"{value:.10g}" for value in column]
    finite = column[column.abs() < float("inf")].abs()
    digits = 1 if finite.max() >= 10 and not is_share else 3
    return [f"{value:z,.{digits}f}" for value in column]  # no -0.0
