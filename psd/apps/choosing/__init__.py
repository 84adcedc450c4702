"""Private choices: which of many public candidates is best, for one charge, without a release.

`choose` picks sites, a price, prices of zones or a tariff from records, as `psd ask` answers one
count. `select` is the mechanism alone, for integer scores of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    {
        "candidate_areas": "CandidateAreas",
        "choice": "Choice choose",
        "files": "PriceList",
        "objectives.price": "Price",
        "objectives.price_map": "PriceMap",
        "objectives.sites": "Sites",
        "objectives.tariffs": "Tariffs",
        "selection": "select",
    },
)
