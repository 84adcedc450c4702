"""All planted bugs, theme by theme."""

from importlib import import_module

from privacy.planted_bugs.bug import BUGS

_MODULES = {
    "Noise": ("noise",),
    "Selections": ("selection",),
    "Choices": ("choices", "mechanisms_of_choice"),
    "Questions and shapes": ("curator", "shape"),
    "Budget": ("budget",),
    "Losses in rho": ("concentrated",),
    "Accounting": ("accounting",),
    "Domain and rows": ("domain",),
    "Units and bounding": ("units",),
    "Tallies and merging": ("tallies",),
    "Time slices": ("slices",),
    "Streams": ("streams",),
    "Regions": ("regions",),
    "Ledger": ("ledger",),
    "Local campaigns": ("local",),
    "Local campaigns in browsers": ("local_browser",),
    "Suggestions": ("suggestions",),
    "Refusals": ("refusals",),
    "Copies": ("copies",),
    "Metadata and messages": ("metadata",),
    "Release file": ("release_file",),
}


def _bugs_of(module):
    name = import_module(f"privacy.planted_bugs.{module}").__name__
    return [bug for bug in BUGS if bug.plant.__module__ == name]


THEMES = {
    theme: [bug for module in modules for bug in _bugs_of(module)]
    for theme, modules in _MODULES.items()
}
