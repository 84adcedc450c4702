"""Private choices: which of many public candidates is best, for one charge, without a release.

`choose` picks sites, a price, prices of zones or a tariff from records, as `psd ask` answers one
count. `select` is the mechanism alone, for integer scores of one's own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.apps.choosing.candidate_areas import CandidateAreas
    from psd.apps.choosing.choice import Choice, choose
    from psd.apps.choosing.files import PriceList
    from psd.apps.choosing.objectives.price import Price
    from psd.apps.choosing.objectives.price_map import PriceMap
    from psd.apps.choosing.objectives.sites import Sites
    from psd.apps.choosing.objectives.tariffs import Tariffs
    from psd.apps.choosing.selection import select

__all__ = [
    "CandidateAreas",
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
    "CandidateAreas": "psd.apps.choosing.candidate_areas",
    "Choice": "psd.apps.choosing.choice",
    "Price": "psd.apps.choosing.objectives.price",
    "PriceList": "psd.apps.choosing.files",
    "PriceMap": "psd.apps.choosing.objectives.price_map",
    "Sites": "psd.apps.choosing.objectives.sites",
    "Tariffs": "psd.apps.choosing.objectives.tariffs",
    "choose": "psd.apps.choosing.choice",
    "select": "psd.apps.choosing.selection",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
