"""The decompositions, one file each: public parameters as fields, the curator as an argument.

A file ``psd/decompositions/<name>.py`` that ends in ``method = <its class>`` is a method of the
library: the command line, ``psd methods``, the contract tests and the benchmarks find it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from psd._util import plugins as registry
from psd._util.fields import from_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psd.curator.curator import Curator
    from psd.space.tree import Tree

__all__ = ["Decomposition", "method", "method_class", "methods"]


class Decomposition(Protocol):
    """A way to cut space into cells and to share epsilon among them.

    Guarantees
    ----------
    - Fields are public; the curator, who holds the points, is an argument.
    - The whole of the curator's epsilon is spent at every point of the domain.
    """

    name: ClassVar[str]
    paper: ClassVar[str]

    def build(self, curator: Curator) -> Tree:
        """Ask the curator and give back the tree of its answers."""


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
