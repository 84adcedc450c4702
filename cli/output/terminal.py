"""What a command shows on a terminal: progress, warnings, tables of the right width."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["make_room", "open_console", "print_warning", "show_builds", "show_stage"]


def print_warning(text: str) -> None:
    """One line on stderr about what is allowed and yet not as it should be."""
    click.echo(f"psd: warning: {text}", err=True)


def open_console() -> Console:
    """Console on stdout; wide where nobody looks, so that no column is cut."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else 200, highlight=False)


@contextmanager
def show_stage() -> Iterator[Callable[[str], None]]:
    """Name the running stage on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(stage)


@contextmanager
def show_builds(first: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show how many builds of how many are finished, on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first, total=None)
        yield lambda done, total: shown.update(
            task, description="builds finished", completed=done, total=total
        )


def make_room(columns: dict[str, list[str]], name: str, width: int) -> bool:
    """Leave a column out if the table is wider than the terminal; say whether it was.

    Words of a heading, separated by underscores, stand below each other.
    """
    widths = [
        max(map(len, (*heading.split("_"), *values))) + 1 for heading, values in columns.items()
    ]
    return sum(widths) > width and columns.pop(name) is not None
