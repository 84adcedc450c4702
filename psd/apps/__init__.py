"""Apps: neighbours that build on public names of the core, each in a folder that can be removed.

What a folder lists in its `__all__` is public; `psd.plan` is of `planning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._apps import USES, load_app

if TYPE_CHECKING:
    from psd.apps import (
        auditing,
        choosing,
        evaluation,
        local,
        planning,
        spark,
        streams,
        suggest,
        web,
    )

__all__ = [
    "auditing",
    "choosing",
    "evaluation",
    "local",
    "planning",
    "spark",
    "streams",
    "suggest",
    "web",
]


def __getattr__(name: str) -> Any:
    if name in USES:
        return load_app(f"psd.apps.{name}", what=f"psd.apps.{name}")
    raise AttributeError(f"module 'psd.apps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(USES)
