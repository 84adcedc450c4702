"""Expected errors from public assumptions. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.planning.region_plan import plan_regions

__all__ = ["plan_regions"]


def __getattr__(name: str) -> Any:
    return _apps.member_of(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
