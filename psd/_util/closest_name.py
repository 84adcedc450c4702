"""Refuse unknown names, and suggest the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from psd.errors import ParameterError

__all__ = ["check_names"]


def check_names(what: str, names: Iterable[object], allowed: Iterable[str]) -> None:
    """Refuse a name that does not exist, and suggest the closest one that does.

    Parameters
    ----------
    what : str
        What has the names, such as ``"key"``.
    names : iterable
        To be checked. Public.
    allowed : iterable of str
        Names that exist.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_names("key", ["epsilom"], ["epsilon", "method"])
    Traceback (most recent call last):
    psd.errors.ParameterError: key 'epsilom' does not exist; did you mean 'epsilon'?
    """
    existing = list(allowed)
    for name in names:
        if name in existing:
            continue
        text = str(name)[:80]
        closest = get_close_matches(text, existing, n=1)
        hint = f"did you mean {closest[0]!r}?" if closest else f"use one of {', '.join(existing)}"
        raise ParameterError(f"{what} {text!r} does not exist; {hint}", name=text)
