"""Output on a terminal: progress, warnings, and the screen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "open_console",
    "print_warning",
    "printable",
    "show_builds",
    "show_stage",
]


def print_warning(text: str) -> None:
    """Print a warning, one line on stderr."""
    click.echo(f"psd: warning: {printable(text)}", err=True)


def printable(text: str) -> str:
    """Text with control characters written as escapes, so that no text controls a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def open_console() -> Console:
    """Console on stdout; wide if stdout is not a terminal, so that no column is cut.

    Text in brackets is printed as it is: ids, CRS and parameters come from untrusted files.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def show_stage() -> Iterator[Callable[[str], None]]:
    """Show the running stage and the time since the start on stderr, if it is a terminal.

    There is no share of what is read: it would tell how many records there are.
    """
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=None)
        yield lambda stage: shown.update(task, description=stage)


@contextmanager
def show_builds(first: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished builds on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first, total=None)
        yield lambda done, total: shown.update(
            task, description="builds finished", completed=done, total=total
        )
