"""Private choices: which of many public candidates is best, for one charge, without a release.

`choose` picks sites, a price, prices of zones or a tariff from records, as `psd ask` answers one
count. `select` is the mechanism alone, for integer scores of one's own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.choosing.choice import Choice, choose
    from psd.choosing.objectives.price import Price
    from psd.choosing.objectives.price_map import PriceMap
    from psd.choosing.objectives.sites import Sites
    from psd.choosing.objectives.tariffs import Tariffs
    from psd.choosing.selection import select
    from psd.space.catchments import Catchments
    from psd.space.price_list import PriceList

__all__ = [
    "Catchments",
    "Choice",
    "Price",
    "PriceList",
    "PriceMap",
    "Sites",
    "Tariffs",
    "choose",
    "select",
]

# The module of each name; imported when first used.
_MODULES = {
    "Catchments": "psd.space.catchments",
    "Choice": "psd.choosing.choice",
    "Price": "psd.choosing.objectives.price",
    "PriceList": "psd.space.price_list",
    "PriceMap": "psd.choosing.objectives.price_map",
    "Sites": "psd.choosing.objectives.sites",
    "Tariffs": "psd.choosing.objectives.tariffs",
    "choose": "psd.choosing.choice",
    "select": "psd.choosing.selection",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
