"""Output on a terminal: progress, warnings, and the screen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_success", "print_warning", "printable", "show_builds", "show_stage"]


TALK = "psd.talk"
"""Key of a context: ``quiet`` or ``verbose``, where an option says so."""


def _talk() -> str:
    """How much the running command says."""
    ctx = click.get_current_context(silent=True)
    return "" if ctx is None else str(ctx.meta.get(TALK, ""))


def is_quiet() -> bool:
    """Whether --quiet is given."""
    return _talk() == "quiet"


def print_success(text: str) -> None:
    """Print what was done, unless --quiet is given."""
    if not is_quiet():
        click.echo(text)


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
    """Console on stdout; wide if stdout is not a terminal, so that no column is cut."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    # Text in brackets is printed as it is: ids, CRS and parameters come from untrusted files.
    return Console(width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def _timed_stages() -> Iterator[Callable[[str], None]]:
    """Print the seconds of each stage when the next begins, and those of the last at the end."""
    running, begun = "", time.monotonic()

    def enter(stage: str) -> None:
        nonlocal running, begun
        if stage == running:
            return
        if running:
            click.echo(f"{running}: {time.monotonic() - begun:.1f} s", err=True)
        running, begun = stage, time.monotonic()

    yield enter
    enter("")


class Stage:
    """What a command reports while it runs: its stage, and slices done of a public number."""

    def __init__(
        self, enter: Callable[[str], None], slices: Callable[[int, int], None] | None = None
    ) -> None:
        self._enter = enter
        self.slices = slices or (lambda done, total: None)

    def __call__(self, stage: str) -> None:
        """Enter a stage."""
        self._enter(stage)


_BEGUN = "psd.begun"


@contextmanager
def _progress(first: str, *, counts: bool) -> Iterator[Callable[..., None]]:
    """Show a line with the seconds of the whole run, and with a bar of what is counted."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        Task,
        TextColumn,
    )  # fmt: skip
    from rich.text import Text

    # When the running command first showed its progress.
    ctx, begun = click.get_current_context(silent=True), time.monotonic()
    if ctx is not None:
        begun = float(ctx.meta.setdefault(_BEGUN, begun))

    class Seconds(ProgressColumn):
        """Seconds of the whole run."""

        def render(self, task: Task) -> Text:
            return Text(f"{time.monotonic() - begun:,.0f} s")

    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *((BarColumn(), MofNCompleteColumn()) if counts else ()),
        Seconds(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first, total=None)
        yield lambda text, **done: shown.update(task, description=text, **done)


@contextmanager
def show_stage(before: str = "") -> Iterator[Stage]:
    """Show the running stage and the seconds of the whole run on stderr, if it is a terminal.

    There is no share, rate or size of what is read: it would tell how many records there are.
    Slices are counted, since their number is public. With --verbose, each stage leaves a line with
    its seconds. `before` is shown first, such as which release of how many.
    """
    if _talk() == "verbose":
        with _timed_stages() as enter:
            yield Stage(lambda stage: enter(before + stage))
        return
    if _talk() or not sys.stderr.isatty():
        yield Stage(lambda stage: None)
        return
    with _progress(f"{before}starting", counts=False) as show:
        yield Stage(
            lambda stage: show(before + stage),
            lambda done, total: show(f"{before}{done:,} of {total:,} slices drawn"),
        )


@contextmanager
def show_builds(first: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished builds on stderr, if it is a terminal; see `show_stage`."""
    if _talk() == "verbose":
        with _timed_stages() as enter:
            enter(first)
            yield lambda done, total: enter("building")
        return
    if _talk() or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with _progress(first, counts=True) as show:
        yield lambda done, total: show("builds finished", completed=done, total=total)
