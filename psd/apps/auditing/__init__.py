"""Attacks on builds of synthetic data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.auditing.attacks import audit

__all__ = ["audit"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
