"""Options and output that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RELEASE", "Once", "console", "integer", "number", "overwrite", "stages"]

N = TypeVar("N", int, float)

RELEASE = click.argument("release", type=click.Path(dir_okay=False))


class Once(click.Command):
    """A command whose options stand once each; click alone would take the last of several."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a repeated option, unless repeating is what it is for."""
        given = self.make_parser(ctx).parse_args(list(args))[2]
        for param in given:
            once = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            if once and given.count(param) > 1:
                raise click.UsageError(f"{param.opts[-1]} is given {given.count(param)} times", ctx)
        return super().parse_args(ctx, args)


def number(value: object) -> float:
    """Type of an option that takes a number."""
    return _plain(value, float)


def integer(value: object) -> int:
    """Type of an option that takes a whole number."""
    return _plain(value, int)


def _plain(value: object, kind: type[N]) -> N:
    """A number in ASCII; Python alone would also take 1_0 and digits of other scripts."""
    text = str(value)
    try:
        if "_" not in text and text.isascii():
            return kind(text)
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not a valid {kind.__name__}.")


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
