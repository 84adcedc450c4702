"""Budgets of datasets over many releases. The package stores no records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger

__all__ = ["Account", "Ledger"]

# Imported when first used, for modules below are imported without them.
__getattr__, __dir__ = lazy_names(__name__, __all__, {"account": "Account", "ledger": "Ledger"})
