"""Exact integer mechanisms with randomness of the operating system, one file each. Private side.

A file ``psd/mechanisms/<name>.py`` with a line ``mechanism = <class>`` defines one: a frozen value
with the members of `psd.mechanisms.base.Mechanism`, which contract tests check. Other files hold
samplers; ``choice_laws.py`` has what is in floats, by which no release draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from psd._util import plugins

__all__ = ["mechanisms"]


@cache
def mechanisms() -> Mapping[str, type[Any]]:
    """Return the classes of all mechanisms by the names of their files."""
    modules = {
        name: plugins.load(__name__, "mechanism", name) for name in plugins.own_names(__name__)
    }
    found = {name: m.mechanism for name, m in modules.items() if hasattr(m, "mechanism")}
    return MappingProxyType(found)
