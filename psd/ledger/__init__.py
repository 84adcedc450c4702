"""Budgets of datasets over many releases. The package stores no records."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger

__all__ = ["Account", "Ledger"]

# The module of each name; imported when first used, for modules below are imported without them.
_MODULES = {
    "Account": "psd.ledger.account",
    "Ledger": "psd.ledger.ledger",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
