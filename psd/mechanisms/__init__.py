"""Exact integer mechanisms from operating-system randomness, one file each. Private side.

A file ``psd/mechanisms/<name>.py`` that ends in ``mechanism = <its class>`` is a mechanism: a
frozen value with the members of `psd.mechanisms.base.Mechanism`. The contract tests find it there.
The other files are what mechanisms are drawn with.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from psd._util import plugins

__all__ = ["mechanisms"]


@cache
def mechanisms() -> dict[str, type[Any]]:
    """Classes of all mechanisms by the names of their files.

    Examples
    --------
    >>> list(mechanisms())
    ['exponential-mechanism', 'laplace', 'threshold']
    """
    modules = {
        name: plugins.load(__name__, "mechanism", name) for name in plugins.own_names(__name__)
    }
    return {name: m.mechanism for name, m in modules.items() if hasattr(m, "mechanism")}
