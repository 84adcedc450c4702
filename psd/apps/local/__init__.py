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

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    {
        "aggregation": "aggregate",
        "answer_design": "design_numbers design_options design_words",
        "answer_tables": "tabulate tabulate_words",
        "campaign_design": "design_regions design",
        "campaigns": "write_campaign",
        "collection": "collect",
        "description": "describe",
        "protocols": "list_protocols",
        "randomization": "client randomize",
        "rounds": "next_round",
    },
)
