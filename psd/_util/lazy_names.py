"""Names of a package whose modules are imported when the name is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psd import _apps

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: Sequence[str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, whose names stand in a text for each module.

    A name of no module is one of `psd._apps.MEMBERS`, or an attribute that there is not.
    """
    homes = {name: module for module, text in (modules or {}).items() for name in text.split()}

    def get_member(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        return _apps.member_of(package, name)

    return get_member, lambda: sorted(names)
