"""Pages and folders that are made of releases alone, for their readers. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.web.site import write_site

__all__ = ["write_site"]


def __getattr__(name: str) -> Any:
    return _apps.member_of(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
