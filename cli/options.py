"""Options and output that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RELEASE", "console", "overwrite", "stages"]

RELEASE = click.argument("release", type=click.Path(dir_okay=False))


def overwrite(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--overwrite``: build, query, export."""
    return click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")(
        command
    )


def console() -> Console:
    """Console on stdout; wide where nobody looks, so that no column is cut."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else 200, highlight=False)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Name the running stage on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(stage)
