"""Values of options: numbers, lists with commas, settings KEY=VALUE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

__all__ = [
    "INTEGER",
    "LIMITS",
    "NUMBER",
    "cell_level",
    "parse_integer",
    "parse_number",
    "parse_settings",
    "rename_arguments",
    "split_commas",
]

N = TypeVar("N", int, float)


def parse_number(value: object) -> float:
    """Number of a text."""
    return _parse_plain(value, float)


def parse_integer(value: object) -> int:
    """Whole number of a text."""
    return _parse_plain(value, int)


def _parse_plain(value: object, kind: type[N]) -> N:
    """Number written in ASCII; Python alone would also take 1_0 and digits of other scripts."""
    text = str(value)
    try:
        if "_" not in text and text.isascii():
            return kind(text)
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not a {'whole ' * (kind is int)}number.")


def _option_type(parse: Callable[[object], Any], name: str) -> click.ParamType[Any]:
    """Type of an option, under the name that `--help` shows."""
    kind = click.types.convert_type(parse)
    kind.name = name
    return kind


NUMBER = _option_type(parse_number, "number")
"""Type of an option that takes a number."""

INTEGER = _option_type(parse_integer, "integer")
"""Type of an option that takes a whole number."""


def _parse_limits(value: object) -> float | tuple[float, float]:
    """A share, or two with a comma between them; 30% is 0.3."""
    parts = (part.strip() for part in str(value).split(","))
    numbers = tuple(
        parse_number(part[:-1].strip()) / 100 if part.endswith("%") else parse_number(part)
        for part in parts
    )
    if len(numbers) > 2:
        raise click.BadParameter(f"{str(value)[:80]!r} is not one number or two with a comma.")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


LIMITS = _option_type(_parse_limits, "share[,share]")
"""Type of an option that takes the limits of classes."""

# Arguments of the library as its messages write them, such as overwrite=True, layer= or user="id".
_ARGUMENT = re.compile(r"(?<![\w./:-])([a-z_]+)=(True\b|[A-Z]+\b|\d+\b|\"[^\"]*\")?(?![\w=%/])")
_SHELL = re.compile(r"[;|&<>*?$\s]")
"""Characters that a shell does not pass on without quotes."""


def rename_arguments(message: str, options: Mapping[str, str]) -> str:
    """Replace arguments of the library in a message by options of the command.

    Parameters
    ----------
    message : str
        Of an error of the library. An argument is the first word, or stands before ``=``.
    options : mapping
        Option of each argument; other names stay.

    Examples
    --------
    >>> options = {"overwrite": "--overwrite", "layer": "--layer", "epsilon": "--epsilon"}
    >>> rename_arguments("r.parquet exists; choose another name, or pass overwrite=True", options)
    'r.parquet exists; choose another name, or pass --overwrite'
    >>> rename_arguments("epsilon must be above 0", options)
    '--epsilon must be above 0'
    """

    def option_text(match: re.Match[str]) -> str:
        name, value = match[1], match[2] or ""
        if name not in options:
            return match[0]
        value = "" if value == "True" else value if _SHELL.search(value) else value.strip('"')
        separator = "=" if " " in options[name] else " "
        return f"{options[name]}{separator}{value}" if value else options[name]

    first, space, rest = _ARGUMENT.sub(option_text, message).partition(" ")
    if first == "region" and rest[:1] in "0123456789'\"":  # a region of a file, not an argument
        return f"{first} {rest}"
    name = first.removesuffix(":")
    return f"{options.get(name, name)}{first[len(name) :]}{space}{rest}"


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
            raise click.UsageError(f"{option} must be {form}, such as {example}, got {text!r}")
    keys = [key for key, _, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise click.UsageError(
                f"{option} {key} must be given once, got {keys.count(key)} times"
            )
    return {key: value for key, _, value in pairs}


def split_commas(text: str) -> list[str]:
    """Parts of a text with commas."""
    return [item.strip() for item in text.split(",")]


def cell_level(level: str | None) -> int | None:
    """Number of a level of cells."""
    if level is None or level.lstrip("-").isdigit():
        return None if level is None else int(level)
    raise click.UsageError(
        f"--level must be a whole number from 0, got {level!r}; a release without regions has no "
        "names of levels"
    )
