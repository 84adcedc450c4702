"""Public parameters of a method: dataclass fields that check and describe themselves.

A field made by `public_field` carries its check and its one-line description, so that the
constructor, ``--set KEY=VALUE``, ``psd methods`` and the release file all read one place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from psd.errors import ParameterError

__all__ = [
    "check_declared",
    "check_parameters",
    "choice",
    "choices_text",
    "from_settings",
    "integer_between",
    "public_field",
]

Check = Callable[[str, Any], Any]

_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)


def public_field(default: Any, check: Check, doc: str) -> Any:
    """Field of a method's dataclass.

    Parameters
    ----------
    default : object
        Value if the field is left out; ``None`` is accepted only if it is the default.
    check : callable
        Takes the name and a value or its text, returns the value or raises `ParameterError`.
    doc : str
        One line for ``psd methods``.
    """
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})


def integer_between(low: int, high: int) -> Check:
    """Check for an integer between two limits, both included."""

    def check(name: str, value: object) -> int:
        text = str(value)
        if isinstance(value, bool) or not _INTEGER.fullmatch(text):
            raise ParameterError(
                f"{name} must be an integer, got {text[:80]!r}", name=name, value=text[:80]
            )
        if not low <= int(text) <= high:
            raise ParameterError(
                f"{name} must be between {low} and {high}, got {text}", name=name, value=int(text)
            )
        return int(text)

    return check


def choices_text(options: Iterable[str]) -> str:
    """Words that a value may be, in a message; signs such as a comma stand in quotes.

    Examples
    --------
    >>> choices_text(["auto", ",", "tab"])
    "auto, ',', tab"
    """
    return ", ".join(text if text[:1].isalnum() else repr(text) for text in options)


def choice(*options: str) -> Check:
    """Check for one of several words."""

    def check(name: str, value: object) -> str:
        if value not in options:
            raise ParameterError(
                f"{name} must be one of {choices_text(options)}, got {str(value)[:80]!r}",
                name=name,
                value=str(value)[:80],
            )
        return str(value)

    return check


def check_parameters(method: Any) -> None:
    """Check and normalise every field; called by ``__post_init__``.

    Raises
    ------
    ParameterError
        With the first field that is wrong.
    """
    for field in dataclasses.fields(method):
        check_declared(method, field)
        value = getattr(method, field.name)
        if not (value is None and field.default is None):
            object.__setattr__(method, field.name, field.metadata["check"](field.name, value))


def from_settings(kind: type[Any], settings: Mapping[str, str]) -> Any:
    """Build a method from the texts of its parameters.

    Raises
    ------
    ParameterError
        If the method has no parameter of a name, or a value is wrong.
    """
    names = [field.name for field in dataclasses.fields(kind)]
    for name in settings:
        if name not in names:
            raise ParameterError(
                f"{kind.name} has no parameter {name[:80]!r}; "
                f"it takes {', '.join(names) or 'none'}",
                name=name[:80],
            )
    return kind(**settings)


def check_declared(method: Any, field: dataclasses.Field[Any]) -> None:
    """Refuse a field that was not made by `public_field`.

    Raises
    ------
    ParameterError
        With the name of the field.
    """
    if "check" not in field.metadata:
        raise ParameterError(
            f"{field.name} of {method.name} is not a declared public parameter; make the field "
            "with public_field",
            name=field.name,
        )
