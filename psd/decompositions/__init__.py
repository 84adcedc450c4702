"""The decompositions, one file each: public parameters as fields, the curator as an argument.

A file ``psd/decompositions/<name>.py`` that ends in ``method = <its class>`` is a method of the
library: the command line, ``psd methods``, the contract tests and the benchmarks find it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._util import plugins as registry
from psd._util.fields import from_settings
from psd.decompositions._base import Curator, Decomposition

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Curator", "Decomposition", "method", "method_class", "methods"]


def methods() -> tuple[str, ...]:
    """Names of all decompositions."""
    return registry.names(__name__)


def method_class(name: str) -> type[Any]:
    """Class of a decomposition by its name."""
    kind: type[Any] = registry.load(__name__, "method", name).method
    return kind


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
    made: Decomposition = from_settings(method_class(name), settings or {})
    return made
