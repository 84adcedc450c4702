"""psd: private spatial statistics, published with their errors.

`build` turns points into a `Release`. A release answers `Release.query` from its file alone: it
holds noisy counts and public parameters, and everything after the build is ordinary geometry.

The names of this module and of its modules below are public, and so are those that each app lists;
other modules may change. Methods are classes of `psd.decompositions`, or names
such as ``"quadtree"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd import _apps
from psd.version import __version__

if TYPE_CHECKING:
    from psd import apps, decompositions, errors, ledger, regions, signing, sources, testing
    from psd._apps import plan
    from psd.api.answers import Answers
    from psd.api.release import Release, load
    from psd.decompositions import methods
    from psd.errors import PsdError
    from psd.ingest.sources import Columns
    from psd.ledger.ledger import Ledger
    from psd.privacy.unit import PrivacyUnit
    from psd.publish.build import build
    from psd.publish.single_count import ask
    from psd.publish.tallies import merge, tally
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = [
    "Answers",
    "Columns",
    "Covariate",
    "Domain",
    "Ledger",
    "PrivacyUnit",
    "PsdError",
    "Release",
    "TimeSlices",
    "__version__",
    "apps",
    "ask",
    "build",
    "decompositions",
    "errors",
    "ledger",
    "load",
    "merge",
    "methods",
    "plan",
    "regions",
    "signing",
    "sources",
    "tally",
    "testing",
]

# The module of each name; imported when first used, so that the command line starts at once.
_MODULES = {
    "Answers": "psd.api.answers",
    "Columns": "psd.ingest.sources",
    "Covariate": "psd.space.covariate",
    "Domain": "psd.space.domain",
    "Ledger": "psd.ledger.ledger",
    "PrivacyUnit": "psd.privacy.unit",
    "PsdError": "psd.errors",
    "Release": "psd.api.release",
    "TimeSlices": "psd.space.time_slices",
    "ask": "psd.publish.single_count",
    "build": "psd.publish.build",
    "load": "psd.api.release",
    "merge": "psd.publish.tallies",
    "methods": "psd.decompositions",
    "tally": "psd.publish.tallies",
}

# Submodules that are public themselves.
_SUBMODULES = (
    "apps",
    "decompositions",
    "errors",
    "ledger",
    "regions",
    "signing",
    "sources",
    "testing",
)

_apps.answer_old_names()


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"psd.{name}")
    if name in _apps.MEMBERS:
        return _apps.load_member(name)
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    now = _apps.MOVED.get(f"psd.{name}")
    raise AttributeError(
        f"module 'psd' has no attribute {name!r}" if now is None else f"psd.{name} is {now} now"
    )


def __dir__() -> list[str]:
    return sorted(__all__)
