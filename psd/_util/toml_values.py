"""Read TOML, and check the kinds of its values."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

from psd._util.instances import type_text
from psd.errors import ParameterError

__all__ = ["check_texts", "read_toml", "texts_of", "values_of"]


def read_toml(name: str, text: str) -> dict[str, Any]:
    """Table of a TOML text; numbers with a point are decimals."""
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
    """Values of a list."""
    try:
        return tuple(value)
    except TypeError:
        raise ParameterError(f"{name} must be a list, got {type_text(value)}") from None


def texts_of(name: str, value: Any) -> tuple[str, ...]:
    """Texts of a list; a text alone is a list of one."""
    return (value,) if isinstance(value, str) else tuple(map(str, values_of(name, value)))


def check_texts(name: str, table: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Refuse a value that is not a text at any of the keys."""
    for key in keys:
        if not isinstance(table.get(key), str | None):
            raise ParameterError(f"{key} of {name} must be a text, got {type_text(table[key])}")
