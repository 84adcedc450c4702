"""Tables on a terminal and in files. Words may be broken, but no number or heading is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.column_kinds import csv_text
from psd._util.file_endings import contradicts

from .terminal import open_console, print_success, printable

if TYPE_CHECKING:
    import pandas
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "FORMATS",
    "Column",
    "output_format",
    "print_columns",
    "print_facts",
    "print_left_out",
    "print_rows",
    "write_table",
    "write_text",
]


# Narrowest column of words: longer words are broken.
_WORDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of texts."""

    heading: str  # its parts, separated by underscores, are printed one below the other
    values: list[str]  # one for each row
    left: bool = False  # whether the values start at the left
    folds: bool = False  # whether the values are words, which may continue on the next line
    names: tuple[str, ...] = ()  # headings of the columns that it shows; set by itself

    def __post_init__(self) -> None:
        """Remember the heading, which may be broken later."""
        if not self.names:
            object.__setattr__(self, "names", (_words(self.heading),))

    @property
    def least(self) -> int:
        """Width without which a number or a heading is cut, or words below 16 letters break."""
        if not self.folds:
            return self.natural
        words = [word for value in self.values for word in value.split()]
        numbers = [word for word in words if any(letter.isdigit() for letter in word)]
        return max(_widest(self.heading.split("_")), min(_widest(words), _WORDS), _widest(numbers))

    @property
    def natural(self) -> int:
        """Width that needs no line to be broken."""
        lines = [line for value in self.values for line in value.split("\n")]
        return _widest([*self.heading.split("_"), *lines])


def _widest(texts: Sequence[str]) -> int:
    """Width of the widest text in cells of a terminal."""
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What a table shows: columns beside each other, and those in a line above each record."""

    columns: list[Column]
    gap: int
    above: list[Column] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """Headings that are shown."""
        return {name for column in (*self.columns, *self.above) for name in column.names}


def print_columns(
    columns: Sequence[Column],
    *,
    dispensable: Sequence[str] = (),
    pairs: Mapping[str, str] | None = None,
    identifying: Sequence[str] = (),
    essential: Sequence[str] = (),
    title: str | None = None,
    bold: str | None = None,
) -> list[str]:
    """Print columns side by side, each of as many values; return the headings that are left out.

    If they are wider than the terminal, in this order: gaps and headings become narrower, `pairs`
    of columns stand one below the other, dispensable columns are left out, the first of them first,
    identifying columns stand in a line above each record, essential ones are left out, words are
    broken, and lines are longer than the terminal. Values that end in the mark `bold` are bold.
    """
    from rich.text import Text

    screen = open_console()
    # The first layout that fits the width, or the narrowest.
    headings = [column.heading for column in columns]
    first, last = ([n for n in names if n in headings] for names in (dispensable, essential))
    beside, gap = _fit(columns, first, pairs or {}, screen.width)
    layout = _Layout(columns=beside, gap=gap)
    if _least_width(beside, gap) > screen.width:
        above = [column for column in columns if column.heading in identifying]
        others = [column for column in columns if column.heading not in identifying]
        fitting, gap = _fit(others, (*first, *last), pairs or {}, screen.width)
        layout = _Layout(columns=fitting, gap=gap, above=above)

    if title is not None:
        screen.print(Text(title, "bold"))
    if layout.above:
        # Each record has lines of its own: what identifies it, then its numbers.
        room = screen.width
        names = "  ".join(_words(column.heading) for column in layout.above)
        screen.print(Text(names, "bold"), _headings(screen, layout), sep="\n")
        lines = zip(*(column.values for column in layout.above), strict=True)
        records = zip(*(column.values for column in layout.columns), strict=True)
        for line, record in zip(lines, records, strict=True):
            table = _headings(screen, layout)
            table.show_header = False
            table.add_row(*map(Text, record))
            screen.print(Text("  ".join(line)), width=room)
            screen.print(table)
    else:
        table = _headings(screen, layout)
        for row in zip(*(column.values for column in layout.columns), strict=True):
            styles = ("bold" if bold and value.endswith(bold) else "" for value in row)
            table.add_row(*map(Text, row, styles))
        screen.print(table)
    return [name for name in (*dispensable, *essential) if _words(name) not in layout.names]


def print_left_out(names: Sequence[str], where: str = "--format csv") -> None:
    """Say which columns of a table are left out, and where they are."""
    if names:
        listed = ", ".join(name.replace("_", " ") for name in names)
        click.echo(f"(too narrow for {listed}; see {where})", err=True)


def _headings(screen: Console, layout: _Layout) -> Table:
    """Table without records; the screen becomes as wide as it."""
    from rich.table import Table
    from rich.text import Text

    columns, gap = layout.columns, layout.gap
    # Widths within the room, from the least and the natural ones; the widest are reduced first.
    widths = [column.natural for column in columns]
    while sum(widths) > screen.width - gap * (len(columns) - 1):
        numbers = [number for number, c in enumerate(columns) if widths[number] > c.least]
        if not numbers:
            break
        widths[max(numbers, key=widths.__getitem__)] -= 1
    screen.width = max(screen.width, sum(widths) + gap * (len(widths) - 1))
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.heading.replace("_", "\n")),
            justify="left" if column.left else "right",
            no_wrap=not column.folds,
            overflow="fold",
            width=width,
        )
    return table


def _words(heading: str) -> str:
    """Heading without line breaks."""
    return heading.replace("_", " ")


def _fit(
    columns: Sequence[Column], dispensable: Sequence[str], pairs: Mapping[str, str], width: int
) -> tuple[list[Column], int]:
    """Columns that fit the width, if any do, and the gap between them."""
    if _least_width(columns, 2) <= width:
        return list(columns), 2
    fitting = list(columns)
    if _least_width(fitting, 1) > width:
        # The words of a heading stand below each other where that makes its column narrower.
        fitting = []
        for column in columns:
            narrow = replace(column, heading=column.heading.replace(" ", "_"))
            fitting.append(narrow if narrow.least < column.least else column)
    single = fitting
    for heading in (None, *dispensable):
        single = [c for c in single if heading is None or _words(heading) not in c.names]
        fitting = single
        if _least_width(fitting, 1) > width:
            # Put the second column of each pair below the first one.
            by_name = {name: column for column in single for name in column.names}
            below = {
                _words(upper): by_name[_words(lower)]
                for upper, lower in pairs.items()
                if _words(upper) in by_name and _words(lower) in by_name
            }
            lower = [column.names[0] for column in below.values()]
            fitting = [
                _above(column, below[column.names[0]]) if column.names[0] in below else column
                for column in single
                if column.names[0] not in lower
            ]
        if _least_width(fitting, 1) <= width:
            break
    return fitting, 1


def _above(upper: Column, lower: Column) -> Column:
    """Two columns as one, the values of the second in a second line."""
    values = zip(upper.values, lower.values, strict=True)
    return replace(
        upper,
        heading=f"{upper.heading}_{lower.heading}",
        values=["\n".join(each) for each in values],
        names=(*upper.names, *lower.names),
    )


def _least_width(columns: Sequence[Column], gap: int) -> int:
    """Width of a table of narrow columns."""
    return sum(column.least for column in columns) + gap * (len(columns) - 1)


def print_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows of figures under the names of their columns; a missing figure is a dash."""
    texts = [["-" if value is None else str(value) for value in row.values()] for row in rows]
    columns = zip(rows[0], zip(*texts, strict=True), strict=True)
    print_columns([Column(heading=name, values=list(values)) for name, values in columns])


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values below each other; a long value continues on the next line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name), Text(value))
    open_console().print(table)


def output_format(form: str | None, output: str | None, formats: Sequence[str]) -> str:
    """Format of ``--format``, else of the output's ending, else a table, for the screen alone.

    Refuses a file that would be a table, or whose name says that it is in another format.
    """
    ending = Path(output or "").suffix[1:].lower()
    chosen = form or (ending if ending in formats else "table")
    if output and chosen == "table":
        *others, last = (name for name in formats if name != "table")
        raise click.UsageError(
            f"-o {output}: name the format with --format {', '.join(others)} or {last}"
        )
    if output and contradicts(output, chosen):
        raise click.UsageError(
            f"-o must end in .{chosen} with --format {chosen}, got {output}; its ending is that of "
            "another format"
        )
    return chosen


def write_text(text: str, output: str | None, *, overwrite: bool) -> None:
    """Write a text to the screen or to a file."""
    from psd._util.atomic_write import temporary_target

    if output is None:
        click.echo(text, nl=False)
        return
    with temporary_target(output, overwrite=overwrite) as target:
        target.write_text(text, encoding="utf-8")
    print_success(f"wrote {output}")


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


def windows_named(
    form: str, when: Sequence[str], categories: Sequence[str], each: Sequence[str] = ()
) -> dict[str, str]:
    """Names of the window and the category that all rows of a file are of, by their columns."""
    asked = {"when": when, "category": () if "category" in each else categories}
    return {name: given[0] for name, given in asked.items() if len(given) == 1 and form != "table"}


def state_windows(table: pandas.DataFrame, named: Mapping[str, str]) -> None:
    """Put the names of `windows_named` in columns in front."""
    for place, (name, text) in enumerate(named.items()):
        if name in table:
            raise click.UsageError(
                f"regions must not have a column {name}, which the answers add; rename it"
            )
        table.insert(place, name, text)


def write_table(table: pandas.DataFrame, form: str, output: str | None, *, overwrite: bool) -> None:
    """Show a table to people, or write it as CSV or JSON."""
    from ..output.answers import mean_decimals, plain_answers

    plain = plain_answers(table)
    if form == "table":
        columns = []
        # A ratio far above others has an upper end in tens, beside those of 1.1.
        shares = _OF_RATIOS if "ratio" in plain else ()
        for name in plain.columns:
            decimals = mean_decimals(plain, str(name))
            if decimals is None and name in shares:
                decimals = 3
            values = _column_texts(plain[name], str(name), decimals)
            words, heading = plain[name].dtype.kind not in "iuf", printable(str(name))
            columns.append(Column(heading=heading, values=values, left=words, folds=words))
        print_columns(columns)
    elif form == "csv":
        write_text(csv_text(plain), output, overwrite=overwrite)
    else:
        from psd._util.column_kinds import json_text
        from psd.export import finite_errors

        write_text(json_text(finite_errors(plain)), output, overwrite=overwrite)


def _column_texts(column: pandas.Series[Any], name: str, decimals: int | None = None) -> list[str]:
    """Values of a column as people read them."""
    if column.dtype.kind == "b":
        return ["yes" if value else "no" for value in column]
    if column.dtype.kind != "f":
        return [printable(str(value)) for value in column]
    if name in _SIDES:
        return [f"{value:.10g}" for value in column]
    if decimals is None:
        decimals = 1 if column[column.abs() < float("inf")].abs().max() >= 10 else 3
    return [f"{value:z,.{decimals}f}" for value in column]  # no -0.0
