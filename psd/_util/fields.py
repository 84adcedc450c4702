"""Public parameters of a method: dataclass fields that check and describe themselves.

A field made by `parameter` carries its check and its one-line description, so that the
constructor, ``--set KEY=VALUE``, ``psd methods`` and the release file all read one place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from psd.errors import ParameterError

__all__ = ["check_parameters", "choice", "from_settings", "parameter", "to_json", "whole"]

Check = Callable[[str, Any], Any]

_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)


def parameter(default: Any, check: Check, doc: str) -> Any:
    """Field of a method's dataclass.

    Parameters
    ----------
    default : object
        Value where none is given; ``None`` is accepted if and only if it is the default.
    check : callable
        Takes the name and a value or its text, returns the value or raises `ParameterError`.
    doc : str
        One line for ``psd methods``.
    """
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})


def whole(low: int, high: int) -> Check:
    """Check for an integer between two limits, both included."""

    def check(name: str, value: object) -> int:
        text = str(value)
        if isinstance(value, bool) or not _WHOLE.fullmatch(text):
            raise ParameterError(f"{name} {text!r} is not a whole number")
        if not low <= int(text) <= high:
            raise ParameterError(f"{name} {text} is not between {low} and {high}")
        return int(text)

    return check


def choice(*options: str) -> Check:
    """Check for one of a few words."""

    def check(name: str, value: object) -> str:
        if value not in options:
            raise ParameterError(f"{name} {str(value)!r} is none of {', '.join(options)}")
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
        value = getattr(method, field.name)
        if not (value is None and field.default is None):
            object.__setattr__(method, field.name, field.metadata["check"](field.name, value))


def from_settings(kind: type[Any], settings: Mapping[str, str]) -> Any:
    """Build a method from ``--set`` texts.

    Raises
    ------
    ParameterError
        If a name is no parameter of the method, or a value is wrong.
    """
    known = [field.name for field in dataclasses.fields(kind)]
    for name in settings:
        if name not in known:
            raise ParameterError(
                f"{name} is no parameter of {kind.name}; it takes {', '.join(known) or 'none'}"
            )
    return kind(**settings)


def to_json(method: Any) -> dict[str, int | str | None]:
    """Parameters as they stand in a release file; shares as decimal text.

    Raises
    ------
    ParameterError
        If a field was not made by `parameter`, so that nobody said that it is public.
    """
    for field in dataclasses.fields(method):
        if "check" not in field.metadata:
            raise ParameterError(
                f"{field.name} of {method.name} is not a declared public parameter"
            )
    values = dataclasses.asdict(method)
    return {name: str(v) if isinstance(v, Decimal) else v for name, v in values.items()}
