"""Checks of an argument's type and of names, with a sentence that says what to write instead."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Number
from typing import Any

from psd.errors import ParameterError

__all__ = ["check_choice", "check_instance", "check_names", "refuse_class", "type_text"]


def check_instance(name: str, value: object, kind: type, example: str) -> None:
    """Refuse a value of another type, or the class, and show an example, never the value."""
    if isinstance(value, kind):
        return
    refuse_class(name, value, example)
    raise ParameterError(
        f"{name} must be of type {kind.__name__}, got {type_text(value)}; write {example}",
        name=name,
    )


def refuse_class(name: str, value: object, example: str | None = None) -> None:
    """Refuse a class where an instance belongs."""
    if isinstance(value, type):
        raise ParameterError(
            f"{name} must be an instance, got {type_text(value)}; "
            f"write {example or f'{value.__name__}()'}",
            name=name,
        )


def type_text(value: object) -> str:
    """Type of a value for a message, and never the value, which may be private."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of type {type(value).__name__}"


def shown(value: object) -> str:
    """A public value in a message: a text or a number; of others the type, as of a column.

    >>> shown("1e"), shown(2.5), shown([126.98, 37.54])
    ("'1e'", "'2.5'", 'a value of type list')
    """
    of_numpy = getattr(value, "ndim", None) == 0 and hasattr(value, "item")  # not imported here
    if value is None or of_numpy or isinstance(value, str | bytes | Number | os.PathLike):
        return repr(str(value)[:80])
    return type_text(value)


def number_text(values: Any) -> str:
    """How many values there are, in place of values that may be records.

    >>> number_text((126.98, 37.54)), number_text(5)
    ('2 values', "'5'")
    """
    return f"{len(values):,} values" if hasattr(values, "__len__") else shown(values)


def is_table(value: object) -> bool:
    """Whether a value is a table, a column, an array or a geometry, which may be records."""
    is_array = hasattr(value, "__array__") and getattr(value, "ndim", 1) > 0
    return is_array or hasattr(value, "iloc") or hasattr(value, "geom_type")


def check_choice(name: str, value: object, choices: Iterable[object], hint: str = "") -> None:
    """Refuse a value that is none of a few choices, and suggest the closest one.

    >>> check_choice("by", "weak", ("day", "week"))
    Traceback (most recent call last):
    psd.errors.ParameterError: by must be one of day, week, got 'weak'; did you mean 'week'?
    """
    allowed = list(choices)
    if value in allowed:
        return
    words = [str(each) for each in allowed if each is not None]
    listed = ", ".join(word if word[:1].isalnum() else repr(word) for word in words)
    closest = get_close_matches(str(value)[:80], words, n=1) if isinstance(value, str) else []
    cause = f"; {hint}" if hint else f"; did you mean {closest[0]!r}?" if closest else ""
    raise ParameterError(
        f"{name} must be one of {listed}, got {shown(value)}{cause}",
        name=name,
        value=value[:80] if isinstance(value, str) else None,
    )


def check_names(what: str, names: Iterable[object], allowed: Iterable[str]) -> None:
    """Refuse a name that does not exist, and suggest the closest one that does."""
    existing = list(allowed)
    for name in names:
        if name in existing:
            continue
        text = str(name)[:80]
        closest = get_close_matches(text, existing, n=1)
        hint = f"did you mean {closest[0]!r}?" if closest else f"use one of {', '.join(existing)}"
        raise ParameterError(f"{what} {text!r} does not exist; {hint}", name=text)
