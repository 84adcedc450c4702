"""All planted bugs, theme by theme; those of an app that is not there are left out."""

from importlib import import_module
from pathlib import Path

from privacy.planted_bugs import bug
from support.needed_apps import TESTS, lacks_app

_MODULES = {
    "Noise": ("noise",),
    "Selections": ("selection",),
    "Choices": ("choices", "mechanisms_of_choice"),
    "Questions and shapes": ("curator", "shape"),
    "Budget": ("budget",),
    "Losses in rho": ("concentrated",),
    "Accounting": ("accounting",),
    "Domain and rows": ("domain",),
    "Filters": ("filters",),
    "Units and bounding": ("units",),
    "Values": ("values",),
    "Tallies and merging": ("tallies",),
    "Time slices": ("slices",),
    "Cubes": ("cubes", "categories", "region_cubes"),
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
    """Bugs of a module whose tests are collected; a module that lacks an app has none."""
    if lacks_app(Path(bug.__file__).with_name(f"{module}.py")):
        return []
    name = import_module(f"privacy.planted_bugs.{module}").__name__
    found = [each for each in bug.BUGS if each.plant.__module__ == name]
    return [each for each in found if not lacks_app(TESTS.parent / each.test.partition("::")[0])]


THEMES = {
    theme: [each for module in modules for each in _bugs_of(module)]
    for theme, modules in _MODULES.items()
}
BUGS = [each for theme in THEMES.values() for each in theme]
