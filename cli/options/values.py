"""Values of options: numbers, lists with commas, settings KEY=VALUE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

from psd.errors import ParameterError

__all__ = ["integer", "number", "parse_settings", "rename_errors", "split_commas"]

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
