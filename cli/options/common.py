"""Options and output that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from psd.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "RELEASE",
    "Once",
    "builds",
    "called",
    "console",
    "integer",
    "items",
    "make_room",
    "number",
    "overwrite",
    "settings",
    "stages",
    "warning",
]

N = TypeVar("N", int, float)

RELEASE = click.argument("release", type=click.Path(dir_okay=False, readable=False))


class Once(click.Command):
    """A command whose options stand once each; click alone would take the last of several."""

    def __init__(self, *args: Any, **named: Any) -> None:
        # Click keeps the names of the first context that asks, which may have no program above it.
        own = named.get("context_settings") or {}
        named["context_settings"] = {"help_option_names": ["-h", "--help"], **own}
        super().__init__(*args, **named)

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


@contextmanager
def called(options: dict[str, str]) -> Iterator[None]:
    """Refusals that begin with the name of a parameter begin with that of its option."""
    try:
        yield
    except ParameterError as error:
        name, space, rest = str(error).partition(" ")
        raise ParameterError(f"{options.get(name, name)}{space}{rest}") from None


def overwrite(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--overwrite``: every command that writes."""
    return click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")(
        command
    )


def settings(
    texts: tuple[str, ...],
    form: str = "KEY=VALUE",
    example: str = "height=8",
    option: str = "--set",
) -> dict[str, str]:
    """Texts of ``--set``, or of an option like it, as a mapping, each key once."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, sign, value) in zip(texts, pairs, strict=True):
        if not (key and sign and value):
            raise click.UsageError(f"{option} {text!r} is not {form}, such as {example}")
    keys = [key for key, _, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise click.UsageError(f"{option} {key} is given {keys.count(key)} times")
    return {key: value for key, _, value in pairs}


def items(text: str) -> list[str]:
    """Parts of a text with commas."""
    return [item.strip() for item in text.split(",")]


def warning(text: str) -> None:
    """One line on stderr about what is allowed and yet not as it should be."""
    click.echo(f"psd: warning: {text}", err=True)


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


@contextmanager
def builds(first: str = "reading") -> Iterator[Callable[[int, int], None]]:
    """Show how many builds of how many are finished, on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first, total=None)
        yield lambda done, whole: shown.update(
            task, description="builds finished", completed=done, total=whole
        )


def make_room(columns: dict[str, list[str]], name: str, width: int) -> bool:
    """Leave a column out if the table is wider than the terminal; say whether it was.

    Words of a heading, separated by underscores, stand below each other.
    """
    widths = [
        max(map(len, (*heading.split("_"), *values))) + 1 for heading, values in columns.items()
    ]
    return sum(widths) > width and columns.pop(name) is not None
