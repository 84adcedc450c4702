"""Read TOML, and check the kinds of its values."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

from psd._util.instances import type_text
from psd.errors import ParameterError

__all__ = ["check_texts", "read_toml", "texts_of", "values_of"]


def read_toml(name: str, text: str) -> dict[str, Any]:
    """Table of a TOML text; numbers with a point are decimals.

    Raises
    ------
    ParameterError
        If it is not TOML, is nested too deeply, or has a number that is too long.

    Examples
    --------
    >>> read_toml("recipe", "epsilon = 0.5")
    {'epsilon': Decimal('0.5')}
    """
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{name} must be TOML: {error}") from None
    except RecursionError:
        fault = "its values are nested too deeply"
    except (ValueError, ArithmeticError):
        fault = "a number has too many digits"
    raise ParameterError(f"{name} must be TOML: {fault}")


def values_of(name: str, value: Any) -> tuple[Any, ...]:
    """Values of a list.

    Raises
    ------
    ParameterError
        If the value is not a list.

    Examples
    --------
    >>> values_of("bounds", 5)
    Traceback (most recent call last):
    psd.errors.ParameterError: bounds must be a list, got a value of type int
    """
    try:
        return tuple(value)
    except TypeError:
        raise ParameterError(f"{name} must be a list, got {type_text(value)}") from None


def texts_of(name: str, value: Any) -> tuple[str, ...]:
    """Texts of a list; a text alone is a list of one.

    Raises
    ------
    ParameterError
        If the value is neither a text nor a list.

    Examples
    --------
    >>> texts_of("inputs", "visits.csv")
    ('visits.csv',)
    """
    return (value,) if isinstance(value, str) else tuple(map(str, values_of(name, value)))


def check_texts(name: str, table: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Refuse a value that is not a text at any of the keys.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_texts("private", {"engine": 5}, ("engine",))
    Traceback (most recent call last):
    psd.errors.ParameterError: engine of private must be a text, got a value of type int
    """
    for key in keys:
        if not isinstance(table.get(key), str | None):
            raise ParameterError(f"{key} of {name} must be a text, got {type_text(table[key])}")
