"""The list of public names, whose pages autosummary makes for the site from their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from operator import attrgetter
from types import ModuleType

import psd

HEAD = """\
# Python API

`import psd` gives the names of this page: the everyday ones, and modules with the others. What is
not listed here is internal and may change. `help(psd.build)` prints what its page says.

This page is generated from the public names by `python docs/generate.py`.
"""


def page() -> str:
    """Give the text of the page."""
    names = [name for name in psd.__all__ if not name.startswith("_") and name != "apps"]
    listed = {name: attrgetter(name)(psd) for name in names}
    modules = {name: value for name, value in listed.items() if inspect.ismodule(value)}
    modules |= {f"apps.{name}": getattr(psd.apps, name) for name in psd.apps.__all__}
    parts = [HEAD]
    for title, chosen in (("Functions", inspect.isroutine), ("Classes", inspect.isclass)):
        group = [f"psd.{name}" for name, value in listed.items() if chosen(value)]
        parts += [f"## {title}\n", *_table(group)]
    seen = {id(value) for value in listed.values()}
    for name, module in modules.items():
        parts += [f"## psd.{name}\n", (inspect.getdoc(module) or "").partition("\n\n")[0], ""]
        found = [f"psd.{name}.{child}" for child in _names(module, seen)]
        parts += _table(found) if found else []
    return "\n".join(parts).rstrip() + "\n"


def _names(module: ModuleType, seen: set[int]) -> Iterator[str]:
    """Public classes and functions of a module that stand nowhere above."""
    for child in sorted(module.__all__):
        value = getattr(module, child)
        if (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in seen:
            seen.add(id(value))
            yield child


def _table(names: list[str]) -> list[str]:
    """Lines of a table of names that lead to their pages."""
    lines = "\n".join(f"   {name}" for name in names)
    return [f"```{{eval-rst}}\n.. autosummary::\n   :toctree: api\n\n{lines}\n```\n"]
