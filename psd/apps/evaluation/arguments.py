"""Checks of arguments that comparisons and plans share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from psd.decompositions import Decomposition, as_method
from psd.errors import ParameterError
from psd.privacy.budget import method_parameters
from psd.privacy.loss import epsilon_text, parse_epsilon

__all__ = ["Epsilon", "check_distinct", "listed", "parse_epsilons", "resolve_methods"]

T = TypeVar("T")

Epsilon: TypeAlias = str | int | float | Decimal
"""An epsilon, as `psd.privacy.loss.parse_epsilon` takes it."""


def listed(value: Any) -> list[Any]:
    """Values of a list; a value alone is a list of one."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if is_list else [value]


def parse_epsilons(
    epsilons: Epsilon | Sequence[Epsilon], name: str = "epsilons"
) -> tuple[int, ...]:
    """Return nano-epsilons, each once; messages call them by the name."""
    nano = [parse_epsilon(value) for value in listed(epsilons)]
    return check_distinct(name, nano, [epsilon_text(value) for value in nano])


def check_distinct(argument: str, values: Sequence[T], names: Sequence[str]) -> tuple[T, ...]:
    """Return the values of a list that is not empty and has each value once, by its text."""
    if not names:
        raise ParameterError(f"{argument} must have at least one value, got none")
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"{argument} must have each value once, got {name} {names.count(name)} times"
            )
    return tuple(values)


def resolve_methods(
    methods: str | Decomposition | Sequence[str | Decomposition],
) -> tuple[Decomposition, ...]:
    """Return methods by name or value, each once."""
    resolved = [_resolve_method(item) for item in listed(methods)]
    for each in resolved:
        method_parameters(each)
    return check_distinct("methods", resolved, [each.name for each in resolved])


def _resolve_method(item: str | Decomposition) -> Decomposition:
    """Return a method by name or value; an error names the argument, which is a list."""
    try:
        return as_method(item)
    except ParameterError as error:
        if error.name != "method":
            raise
        text = str(error).replace("method must", "methods must", 1)
        raise ParameterError(text, name="methods", value=error.value) from None
