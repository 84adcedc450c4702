"""JSON and TOML of one reading: no duplicate keys, no NaN, a limited size, checked kinds."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from psd._util.instances import type_text
from psd.errors import ParameterError, ReleaseFormatError

__all__ = ["read_toml", "strict_json"]


MAX_HEADER = 2**20
"""Most bytes of the JSON in a file's footer."""


def strict_json(raw: bytes, limit: int = MAX_HEADER) -> Any:
    """Parse JSON of at most `limit` bytes that no two readers read differently."""
    if len(raw) > limit:
        raise ReleaseFormatError("its header is too long")

    def refuse(text: str) -> None:
        raise ValueError(text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    try:
        return json.loads(raw, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise ReleaseFormatError("its header is not strict JSON") from None


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(table: Mapping[str, Any]) -> str:
    """Text of a table in TOML 1.0, of nested values; keys whose value is None are left out."""
    return "\n".join(_lines(table, ())).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Lines of a table: its values first, because a header ends them."""
    stated = {name: value for name, value in table.items() if value is not None}
    for name, value in stated.items():
        if not _is_nested(value):
            yield f"{_key(name)} = {_value(name, value)}"
    for name, value in stated.items():
        inner = (*path, name)
        header = ".".join(map(_key, inner))
        if isinstance(value, Mapping):
            yield from ("", f"[{header}]", *_lines(value, inner))
        elif _is_nested(value):
            for item in value:
                yield from ("", f"[[{header}]]", *_lines(item, inner))


def _is_nested(value: object) -> bool:
    """Whether a value is a table, or an array of tables."""
    is_array = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Mapping) or (is_array and isinstance(value[0], Mapping))  # type: ignore[index]


def _key(name: str) -> str:
    """Bare key where TOML allows it, quoted otherwise."""
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _value(name: str, value: object) -> str:
    """Text of one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(name, item) for item in value) + "]"
    raise ParameterError(
        f"{name} must be a text, a number, a Boolean or a list to be written as TOML, got "
        f"{type(value).__name__}"
    )


def _string(text: str) -> str:
    """Basic string; JSON escapes what TOML does, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


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
