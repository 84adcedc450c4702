"""Families of variants: one module each, in this package or in another one that is installed.

Another package registers its module under an entry point of the family's group. Nothing is imported
before a variant is used, so that a broken package breaks nothing else.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from psd._apps import FAMILIES, VARIANTS, load_app
from psd._util.instances import check_choice
from psd.errors import ParameterError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["load_member", "names"]

GROUPS: Final = {
    **FAMILIES,
    "psd.decompositions": "psd.decompositions",
    "psd.export": "psd.exports",
    "psd.ingest.engine": "psd.engines",
    "psd.ingest.sources": "psd.sources",
    "psd.privacy.noise_laws": "psd.mechanisms",
    "psd.regions.kinds": "psd.region_kinds",
}
"""Group of entry points of each family; a mechanism registers the law of its noise."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)

_registered: dict[str, dict[str, Any]] = {}


@cache
def own_names(package: str) -> tuple[str, ...]:
    """Names of the variants in a family: its public modules, with hyphens for underscores."""
    path = getattr(importlib.import_module(package), "__path__", ())
    modules = [module.name for module in pkgutil.iter_modules(path)]
    modules += VARIANTS.get(package, {})
    return tuple(sorted(name.replace("_", "-") for name in modules if not name.startswith("_")))


def names(package: str) -> tuple[str, ...]:
    """Names of all variants: those of this package, then those of others."""
    builtin = own_names(package)
    others = {*_registered.get(package, ()), *_entry_points(package)}
    valid = sorted(name for name in others - {*builtin} if _NAME.fullmatch(name))
    return (*builtin, *valid)


def load(package: str, kind: str, name: str) -> Any:
    """Module of a variant, which messages call by its kind, such as ``"method"``.

    A name without a variant is refused, with those that exist. So is a variant of another package
    that cannot be imported, or that two packages have.
    """
    if name in VARIANTS.get(package, {}):
        return load_app(VARIANTS[package][name], what=f"{kind} {name!r}")
    if name in own_names(package):
        return importlib.import_module(f"{package}.{name.replace('-', '_')}")
    every = names(package)
    if name not in every:
        check_choice(kind, name, every)
    if name in _registered.get(package, ()):
        return _registered[package][name]
    first, *more = _entry_points(package)[name]
    if more:
        packages = " and ".join(_package_of(entry) for entry in (first, *more))
        raise ParameterError(f"{kind} {name!r} is registered by {packages}; uninstall all but one")
    try:
        return first.load()
    except Exception as error:
        raise ParameterError(
            f"{kind} {name!r} of {_package_of(first)} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def load_member(package: str, kind: str, name: str, member: str) -> Any:
    """Member of the module of a variant, such as ``method``."""
    module = load(package, kind, name)
    if not hasattr(module, member):
        raise ParameterError(f"{kind} {name!r} must be a module with a member {member!r}")
    return getattr(module, member)


def own_classes(package: str, member: str) -> dict[str, type[Any]]:
    """Classes that the modules of this package offer as a member, by their names."""
    modules = (load(package, "variant", name) for name in own_names(package))
    classes = (getattr(module, member) for module in modules)
    return {kind.__name__: kind for kind in classes}


def register(package: str, kind: str, name: str, module: Any) -> None:
    """Add a variant to a family for the rest of this process, as an installed package would.

    Registering a name again replaces it; names of this package's own variants are taken. The
    module, or object, has the attributes that a module of the family has.
    """
    if name in own_names(package):
        raise ParameterError(f"{kind} {name!r} is one of psd; choose another name")
    if not _NAME.fullmatch(name):
        raise ParameterError(f"{kind} {name[:80]!r} must be {_RULE}")
    _registered.setdefault(package, {})[name] = module


def problems(package: str, kind: str) -> tuple[str, ...]:
    """Sentences about entry points that are left out because of their names."""
    sentences = []
    for name, entries in sorted(_entry_points(package).items()):
        for entry in entries:
            whose = f"{kind} {name[:80]!r} of {_package_of(entry)} is left out"
            if name in own_names(package):
                sentences.append(f"{whose}: psd has one of that name; it must be renamed")
            elif not _NAME.fullmatch(name):
                sentences.append(f"{whose}: its name must be {_RULE}")
    return tuple(sentences)


def refresh() -> None:
    """Look for installed packages again, after one was installed in a running process."""
    _entry_points.cache_clear()
    own_names.cache_clear()


_RULE = "small letters, digits and hyphens, at most 40, with a letter first"


@cache
def _entry_points(package: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of a family's group by their names."""
    from importlib.metadata import entry_points

    by_name: dict[str, tuple[EntryPoint, ...]] = {}
    if package in GROUPS:
        for entry in entry_points(group=GROUPS[package]):
            by_name[entry.name] = (*by_name.get(entry.name, ()), entry)
    return by_name


def _package_of(entry: EntryPoint) -> str:
    """Name and version of the package that registers an entry point."""
    return "another package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
