"""The decompositions, one file each: public parameters as fields, the curator as an argument.

A file ``psd/decompositions/<name>.py`` that ends in ``method = <its class>`` is a method of the
library: the command line, ``psd methods``, the contract tests and the benchmarks find it there. A
module of another package is one too, by an entry point of the group ``psd.decompositions``; see
``docs/contributing/method.md``. The classes are attributes of this package, such as
``psd.decompositions.Quadtree``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from psd._util import plugins
from psd._util.fields import from_settings
from psd.decompositions._base import Curator, Decomposition
from psd.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Curator", "Decomposition", "method", "method_class", "methods", "register"]

_KIND = "method"


def methods() -> tuple[str, ...]:
    """Names of all decompositions: those of this package, then those of others."""
    return plugins.names(__name__)


def method_class(name: str) -> type[Any]:
    """Class of a decomposition by its name.

    Raises
    ------
    ParameterError
        If there is no such method, or it is of another package and is not one.
    """
    return _checked(name, getattr(plugins.load(__name__, _KIND, name), "method", None))


def method(name: str, settings: Mapping[str, str] | None = None) -> Decomposition:
    """Decomposition by its name, with parameters as text.

    Raises
    ------
    ParameterError
        If the method or a parameter is unknown, or a value is wrong.

    Examples
    --------
    >>> method("quadtree", {"height": "6"})
    Quadtree(height=6, budget='geometric', workload=None, prune=0)
    """
    decomposition: Decomposition = from_settings(method_class(name), settings or {})
    return decomposition


def register(kind: type[Any]) -> type[Any]:
    """Make a class a method for the rest of this process; for notebooks and tests.

    Parameters
    ----------
    kind : type
        Frozen dataclass of the form of `Decomposition`.

    Returns
    -------
    type
        The class, so that this is a decorator.

    Raises
    ------
    ParameterError
        If its name is that of a method of this package, or it is not of that form.
    """
    from types import SimpleNamespace

    name = str(getattr(kind, "name", ""))
    plugins.register(__name__, _KIND, name, SimpleNamespace(method=_checked(name, kind)))
    return kind


def _checked(name: str, kind: Any) -> type[Any]:
    """Refuse what is not a dataclass with this name, a paper and a build."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and hasattr(kind, "build")):
        raise ParameterError(
            f"method {name!r} must be a dataclass with a function build; its module ends in "
            "'method = <the class>'"
        )
    stated, paper = getattr(kind, "name", None), getattr(kind, "paper", None)
    if stated != name:
        raise ParameterError(
            f"method {name!r} is registered under another name than its class states, which is "
            f"{str(stated)[:80]!r}"
        )
    if not (isinstance(paper, str) and paper):
        raise ParameterError(f"method {name!r} must state its paper, a text, in its class")
    return kind


def __getattr__(name: str) -> Any:
    """Class of a method of this package, imported when first used."""
    if name[0].isupper():
        for each in plugins.own_names(__name__):
            kind = method_class(each)
            if kind.__name__ == name:
                return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    classes = (method_class(name).__name__ for name in plugins.own_names(__name__))
    return sorted((*__all__, *classes))
