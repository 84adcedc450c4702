"""Local privacy: devices randomise their own answers, and a collector gets reports only.

A campaign is designed (`design`), devices answer it (`client` is their program, `randomize` does
it for a table), and their reports are collected (`collect`), lead to a further round
(`next_round`), and become a release (`aggregate`), which is queried like any other. No place is
ever collected. `design_regions` asks for a named region. `design_options` and `design_numbers` ask
for an option or a number instead; their reports become a table (`tabulate`). `design_words` asks
for words, whose table needs a list of words that there may be (`tabulate_words`).

The device imports nothing of this library. The collector reads reports, never a place, and does
not reach the curator's side.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.local.aggregation import aggregate
    from psd.local.answer_design import design_numbers, design_options, design_words
    from psd.local.answer_tables import tabulate
    from psd.local.campaign_design import design
    from psd.local.collection import collect
    from psd.local.description import describe
    from psd.local.protocols import list_protocols
    from psd.local.randomization import client, randomize
    from psd.local.region_design import design_regions
    from psd.local.rounds import next_round
    from psd.local.word_tables import tabulate_words

__all__ = [
    "aggregate",
    "client",
    "collect",
    "describe",
    "design",
    "design_numbers",
    "design_options",
    "design_regions",
    "design_words",
    "list_protocols",
    "next_round",
    "plan",
    "randomize",
    "tabulate",
    "tabulate_words",
]

_MODULES = {
    "aggregate": "psd.local.aggregation",
    "client": "psd.local.randomization",
    "collect": "psd.local.collection",
    "describe": "psd.local.description",
    "design_numbers": "psd.local.answer_design",
    "design_options": "psd.local.answer_design",
    "design_regions": "psd.local.region_design",
    "design_words": "psd.local.answer_design",
    "design": "psd.local.campaign_design",
    "list_protocols": "psd.local.protocols",
    "next_round": "psd.local.rounds",
    # It simulates curators too, so nothing here may import it before it is called.
    "plan": "psd.planning.local_plan",
    "randomize": "psd.local.randomization",
    "tabulate": "psd.local.answer_tables",
    "tabulate_words": "psd.local.word_tables",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'psd.local' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
