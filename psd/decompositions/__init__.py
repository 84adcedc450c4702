"""The decompositions, one file each: public parameters as fields, the curator as an argument.

A file ``psd/decompositions/<name>.py`` that ends in ``method = <its class>`` is a method: the
command line, ``psd methods``, contract tests and benchmarks find it there. So is a module of
another package, by an entry point of the group ``psd.decompositions``; see
``docs/contributing/method.md``. The classes are attributes of this package.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from psd._util import plugins
from psd._util.declared_parameters import (
    check_parameters,
    choice,
    from_settings,
    integer_between,
    public_field,
)
from psd._util.instances import refuse_class, type_text
from psd.decompositions._base import Curator, Decomposition
from psd.errors import ParameterError
from psd.privacy.budget import share, split_total, uniform_shares
from psd.release.record import GIVEN_METHOD
from psd.space.box_tree import Tree
from psd.space.grids import cut_grid, cut_grids, grid_tree
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psd.decompositions._regions import Regions as Regions

__all__ = [
    "Cells",
    "Curator",
    "Decomposition",
    "Regions",
    "Tree",
    "as_method",
    "as_region_method",
    "check_parameters",
    "choice",
    "cut_grid",
    "cut_grids",
    "grid_tree",
    "integer_between",
    "method",
    "method_class",
    "methods",
    "public_field",
    "region_method",
    "register",
    "share",
    "split_total",
    "uniform_shares",
]

_KIND = "method"

_RESERVED = f"a method must not be named {GIVEN_METHOD!r}, which marks counts that were given"


def methods() -> tuple[str, ...]:
    """Names of all decompositions: those of this package, then those of others.

    Examples
    --------
    >>> "quadtree" in methods()
    True
    """
    return plugins.names(__name__)


def method_class(name: str) -> type[Any]:
    """Class of a decomposition by its name.

    Raises
    ------
    ParameterError
        If the method does not exist, or is of another package and does not have the form of one.

    Examples
    --------
    >>> method_class("quadtree").__name__
    'Quadtree'
    """
    return _checked(name, plugins.load_member(__name__, _KIND, name, "method"))


def method(name: str, settings: Mapping[str, str] | None = None) -> Decomposition:
    """Make a decomposition by its name, with parameters as text.

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


def as_method(value: Any) -> Decomposition:
    """Return a decomposition, or make it by its name.

    Raises
    ------
    ParameterError
        If the value is a class, or not a decomposition.

    Examples
    --------
    >>> as_method("quadtree").name
    'quadtree'
    """
    if isinstance(value, str):
        return method(value)
    refuse_class("method", value)
    if not (hasattr(value, "build") and hasattr(value, "name")):
        raise ParameterError(
            f"method must be a name or a decomposition, got {type_text(value)}; psd.methods() "
            "lists the names",
            name="method",
        )
    if value.name == GIVEN_METHOD:
        raise ParameterError(_RESERVED, name="method")
    decomposition: Decomposition = value
    return decomposition


def as_region_method(value: Any) -> Decomposition:
    """Return a method for regions, or make it by its name or that of what is inside them.

    Raises
    ------
    ParameterError
        If the value is neither.

    Examples
    --------
    >>> as_region_method("auto").inside, as_region_method("regions").inside
    ('auto', 'cascade')
    """
    from psd.decompositions._regions import Regions
    from psd.decompositions.cube import Cube

    if isinstance(value, Regions | Cube):
        found: Decomposition = value
        return found
    if isinstance(value, str):
        return region_method(value)
    raise ParameterError(
        "method must be auto, cascade, none, cube or a psd.decompositions.Regions with regions, "
        f"got {type_text(value)}"
    )


def region_method(name: object, settings: Mapping[str, str] | None = None) -> Decomposition:
    """Make the method by the name of what is inside the lowest regions, and texts of parameters.

    Parameters
    ----------
    name : object
        ``"regions"``, or a value of `Regions.inside`; or ``"cube"``. Public.
    settings : mapping, optional
        Parameters of `Regions`, or of `Cube`, as text.

    Raises
    ------
    ParameterError
        If the name is another one, or a parameter does not exist or has a wrong value.

    Examples
    --------
    >>> region_method("none", {"weights": "1,4"}).weights
    '1,4'
    """
    from psd.decompositions._regions import INSIDE, Regions
    from psd.decompositions.cube import Cube

    stated = dict(settings or {})
    if name == Cube.name:
        return method(Cube.name, stated)
    if name != Regions.name:
        if name not in INSIDE:
            names = ", ".join((*INSIDE, Regions.name, Cube.name))
            raise ParameterError(
                f"method must be one of {names} with regions, got {str(name)[:80]!r}",
                name="method",
            )
        if "inside" in stated:
            raise ParameterError(f"inside must be left out with method {name}", name="inside")
        stated["inside"] = str(name)
    regions: Decomposition = from_settings(Regions, stated)
    return regions


def register(kind: type[Any]) -> type[Any]:
    """Register a class as a method until the process ends, for notebooks and tests.

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
        If its name is that of a method of this package, or it does not have that form.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from psd.decompositions import cut_grid
    >>> @dataclass(frozen=True)
    ... class Quarters:
    ...     name, paper = "quarters", "none"
    ...     def build(self, curator):
    ...         cells = cut_grid(curator.cut, curator.root(), curator.domain.lattice, (2, 2))
    ...         curator.count(cells, loss=curator.loss)
    ...         return curator.tree()
    >>> register(Quarters).name in methods()
    True
    """
    from types import SimpleNamespace

    name = str(kind.name) if hasattr(kind, "name") else ""
    plugins.register(__name__, _KIND, name, SimpleNamespace(method=_checked(name, kind)))
    return kind


def _checked(name: str, kind: Any) -> type[Any]:
    """Refuse an object that is not a dataclass with this name, a paper and a function build."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and hasattr(kind, "build")):
        raise ParameterError(
            f"method {name!r} must be a dataclass with a function build; its module ends in "
            "'method = <the class>'"
        )
    described: Any = kind
    if not (
        hasattr(described, "name")
        and hasattr(described, "paper")
        and isinstance(described.paper, str)
    ):
        raise ParameterError(f"method {name!r} must state its name and its paper in its class")
    if name == GIVEN_METHOD:
        raise ParameterError(_RESERVED)
    if described.name != name:
        raise ParameterError(
            f"method {name!r} is registered under another name than its class states, which is "
            f"{str(described.name)[:80]!r}"
        )
    return kind


def __getattr__(name: str) -> Any:
    """Class of a method of this package, imported when first used."""
    if name == "Regions":  # not in the list of methods, since it needs regions
        from psd.decompositions._regions import Regions

        return Regions
    classes = plugins.own_classes(__name__, "method") if name[0].isupper() else {}
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes[name]


def __dir__() -> list[str]:
    return sorted((*__all__, *plugins.own_classes(__name__, "method")))
