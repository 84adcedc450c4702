"""Local privacy: devices randomise their own answers, and a collector gets reports only.

A campaign is designed (`design`) and written to a file (`write_campaign`). Devices answer it
(`client` is their program, `randomize` does it for a table); their reports are collected
(`collect`), lead to a further round (`next_round`), and become a release (`aggregate`).
`design_regions` asks for a named region; `design_options` and `design_numbers` for an option or a
number, whose reports become a table (`tabulate`); `design_words` for words, by a list of words that
there may be (`tabulate_words`).

The device imports nothing of this library. The collector reads reports, never a place, and does not
reach the curator's side.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.local.aggregation import aggregate
    from psd.apps.local.answer_design import design_numbers, design_options, design_words
    from psd.apps.local.answer_tables import tabulate, tabulate_words
    from psd.apps.local.campaign_design import design, design_regions
    from psd.apps.local.campaigns import write_campaign
    from psd.apps.local.collection import collect
    from psd.apps.local.description import describe
    from psd.apps.local.protocols import list_protocols
    from psd.apps.local.randomization import client, randomize
    from psd.apps.local.rounds import next_round

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
    "write_campaign",
]

_MODULES = {
    "aggregate": "psd.apps.local.aggregation",
    "client": "psd.apps.local.randomization",
    "collect": "psd.apps.local.collection",
    "describe": "psd.apps.local.description",
    "design_numbers": "psd.apps.local.answer_design",
    "design_options": "psd.apps.local.answer_design",
    "design_regions": "psd.apps.local.campaign_design",
    "design_words": "psd.apps.local.answer_design",
    "design": "psd.apps.local.campaign_design",
    "list_protocols": "psd.apps.local.protocols",
    "next_round": "psd.apps.local.rounds",
    "randomize": "psd.apps.local.randomization",
    "tabulate": "psd.apps.local.answer_tables",
    "tabulate_words": "psd.apps.local.answer_tables",
    "write_campaign": "psd.apps.local.campaigns",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:  # `plan` is of another app; it simulates curators too
        return _apps.member_of(__name__, name)
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
