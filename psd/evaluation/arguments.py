"""Checks of arguments that comparisons and plans share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from psd.decompositions import Decomposition, as_method
from psd.errors import ParameterError
from psd.privacy.statements import method_parameters

__all__ = ["check_distinct", "resolve_methods"]

T = TypeVar("T")


def check_distinct(argument: str, values: Sequence[T], names: Sequence[str]) -> tuple[T, ...]:
    """Return the values of a list that is not empty and has each value once.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    values : sequence
        The list.
    names : sequence of str
        Text of each value; equal texts are equal values.

    Raises
    ------
    ParameterError
        If the list is empty or has a value twice.

    Examples
    --------
    >>> check_distinct("sizes", [0.1, 0.2], ["0.1", "0.2"])
    (0.1, 0.2)
    """
    if not names:
        raise ParameterError(f"{argument} must have at least one value, got none")
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"{argument} must have each value once, got {name} {names.count(name)} times"
            )
    return tuple(values)


def resolve_methods(methods: Sequence[str | Decomposition]) -> tuple[Decomposition, ...]:
    """Return methods by name or value, each once.

    Raises
    ------
    ParameterError
        If a method is unknown, is repeated or has a field that is not declared public, or if the
        list is empty.
    """
    resolved = [as_method(item) for item in methods]
    for each in resolved:
        method_parameters(each)
    return check_distinct("methods", resolved, [each.name for each in resolved])
