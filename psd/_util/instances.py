"""Checks of an argument's type and of names, with a sentence that says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from psd.errors import ParameterError

__all__ = [
    "check_instance",
    "check_names",
    "refuse_class",
    "type_text",
]


def check_instance(name: str, value: object, kind: type, example: str) -> None:
    """Refuse a value of another type, and say so if it is the class itself.

    `example` is what to write. The text of the value is in no message, since it may be private.
    """
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
