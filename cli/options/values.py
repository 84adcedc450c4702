"""Values of options: numbers, lists with commas, settings KEY=VALUE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

from psd.errors import ParameterError

__all__ = [
    "integer",
    "number",
    "parse_settings",
    "rename_arguments",
    "rename_errors",
    "split_commas",
]

N = TypeVar("N", int, float)


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
def rename_errors(options: dict[str, str]) -> Iterator[None]:
    """Refusals that begin with the name of a parameter begin with that of its option."""
    try:
        yield
    except ParameterError as error:
        name, space, rest = str(error).partition(" ")
        raise ParameterError(f"{options.get(name, name)}{space}{rest}") from None


# Arguments of the library as its messages write them, such as overwrite=True, layer= or user="id".
_ARGUMENT = re.compile(r"(?<![\w./])([a-z_]+)=(True\b|[A-Z]+\b|\"[^\"]*\")?(?![\w=%/])")
_ARGUMENTS = frozenset(
    {
        "area_km2", "boundary", "bounds", "count", "covariate", "crs", "encoding", "geometry",
        "key", "layer", "max_contributions", "memory", "method", "overwrite", "part", "per",
        "query", "slices", "table", "time", "time_zone", "user", "x", "y",
    }
)  # fmt: skip


def rename_arguments(message: str) -> str:
    """Replace arguments of the library in a message by options of the command line.

    Examples
    --------
    >>> rename_arguments("r.parquet exists; choose another name, or pass overwrite=True")
    'r.parquet exists; choose another name, or pass --overwrite'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or ""
        if name not in _ARGUMENTS:
            return found[0]
        value = "" if value == "True" else f" {value}".rstrip()
        return f"--{name.replace('_', '-')}{value}"

    return _ARGUMENT.sub(option, message)


def parse_settings(
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


def split_commas(text: str) -> list[str]:
    """Parts of a text with commas."""
    return [item.strip() for item in text.split(",")]
