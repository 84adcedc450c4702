"""All planted bugs, theme by theme."""

from __future__ import annotations

from privacy.planted_bugs import (
    accounting,
    budget,
    choices,
    concentrated,
    copies,
    curator,
    domain,
    ledger,
    local,
    local_browser,
    mechanisms_of_choice,
    metadata,
    noise,
    refusals,
    regions,
    release_file,
    selection,
    shape,
    slices,
    streams,
    suggestions,
    tallies,
    units,
)
from privacy.planted_bugs.bug import BUGS

_MODULES = {
    "Noise": (noise,),
    "Selections": (selection,),
    "Choices": (choices, mechanisms_of_choice),
    "Questions and shapes": (curator, shape),
    "Budget": (budget,),
    "Losses in rho": (concentrated,),
    "Accounting": (accounting,),
    "Domain and rows": (domain,),
    "Units and bounding": (units,),
    "Tallies and merging": (tallies,),
    "Time slices": (slices,),
    "Streams": (streams,),
    "Regions": (regions,),
    "Ledger": (ledger,),
    "Local campaigns": (local,),
    "Local campaigns in browsers": (local_browser,),
    "Suggestions": (suggestions,),
    "Refusals": (refusals,),
    "Copies": (copies,),
    "Metadata and messages": (metadata,),
    "Release file": (release_file,),
}

THEMES = {
    theme: [bug for module in modules for bug in BUGS if bug.plant.__module__ == module.__name__]
    for theme, modules in _MODULES.items()
}
