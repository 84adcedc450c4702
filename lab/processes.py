"""Environment of measured processes."""

from __future__ import annotations

import os

__all__ = ["environment"]


def environment(**variables: str) -> dict[str, str]:
    """Environment of a process of an installed package: Python keeps the byte code of modules.

    The first process may compile them; use the least or the median of several runs.
    """
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **variables}
