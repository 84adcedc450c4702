"""Checks of the type of an argument, with a sentence that says what to write instead."""

from __future__ import annotations

from psd.errors import ParameterError

__all__ = ["check_instance", "refuse_class", "type_text"]


def check_instance(name: str, value: object, kind: type, example: str) -> None:
    """Refuse a value of another type, and say so if it is the class itself.

    Parameters
    ----------
    name : str
        Argument.
    value : object
        Checked; its text is in no message, since it may be private.
    kind : type
        Class that it must be an instance of.
    example : str
        What to write.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_instance("count", int, int, "5")
    Traceback (most recent call last):
    psd.errors.ParameterError: count must be an instance, got the class int; write 5
    >>> check_instance("count", "5", int, "5")
    Traceback (most recent call last):
    psd.errors.ParameterError: count must be of type int, got a value of type str; write 5
    """
    if isinstance(value, kind):
        return
    refuse_class(name, value, example)
    raise ParameterError(
        f"{name} must be of type {kind.__name__}, got {type_text(value)}; write {example}",
        name=name,
    )


def refuse_class(name: str, value: object, example: str | None = None) -> None:
    """Refuse a class where an instance belongs.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> refuse_class("count", int)
    Traceback (most recent call last):
    psd.errors.ParameterError: count must be an instance, got the class int; write int()
    """
    if isinstance(value, type):
        raise ParameterError(
            f"{name} must be an instance, got {type_text(value)}; "
            f"write {example or f'{value.__name__}()'}",
            name=name,
        )


def type_text(value: object) -> str:
    """Type of a value for a message, and never the value, which may be private.

    Examples
    --------
    >>> type_text(5)
    'a value of type int'
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of type {type(value).__name__}"
