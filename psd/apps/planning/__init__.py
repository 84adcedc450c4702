"""Expected errors from public assumptions. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.planning.region_plan import plan_regions

__all__ = ["plan_regions"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
