"""Attacks on builds of synthetic data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.auditing.attacks import audit

__all__ = ["audit"]


def __getattr__(name: str) -> Any:
    return _apps.member_of(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
