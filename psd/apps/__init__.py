"""Apps: neighbours that build on public names of the core, each in a folder that can be removed.

`choosing`, `local` and `suggest` are public. Of the others, `psd` has names such as `psd.plan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._apps import USES, load_app

if TYPE_CHECKING:
    from psd.apps import choosing, local, suggest

__all__ = ["choosing", "local", "suggest"]


def __getattr__(name: str) -> Any:
    if name in USES:
        return load_app(f"psd.apps.{name}", what=f"psd.apps.{name}")
    raise AttributeError(f"module 'psd.apps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(USES)
