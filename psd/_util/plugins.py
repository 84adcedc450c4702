"""Families of variants, each variant one file that is found by its name and imported when used."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from psd.errors import ParameterError

__all__ = ["load", "names"]


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of the variants in a package: its public modules, underscores read as hyphens.

    Parameters
    ----------
    package : str
        Dotted name, such as ``"psd.decompositions"``.

    Examples
    --------
    >>> "quadtree" in names("psd.decompositions")
    True
    """
    path = importlib.import_module(package).__path__
    found = (module.name for module in pkgutil.iter_modules(path))
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


def load(package: str, what: str, name: str) -> ModuleType:
    """Module of a variant.

    Parameters
    ----------
    package : str
        Dotted name of the family.
    what : str
        What a variant is called in messages, such as ``"method"``.
    name : str
        Variant asked for.

    Raises
    ------
    ParameterError
        If there is no such variant; the message lists those that exist.
    """
    if name not in names(package):
        raise ParameterError(f"{what} {name!r} is none of {', '.join(names(package))}")
    return importlib.import_module(f"{package}.{name.replace('-', '_')}")
