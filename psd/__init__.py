"""psd: private spatial statistics, published with their errors.

`build` turns points into a `Release`. A release answers `Release.query` from its file alone: it
holds noisy counts and public parameters, and everything after the build is ordinary geometry.

Names of this module, of `psd.decompositions`, `psd.errors` and `psd.testing`, and of the apps
`choosing`, `local` and `suggest` are public; other modules may change. Methods are classes of
`psd.decompositions`, or names such as ``"quadtree"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd import _apps
from psd.version import __version__

if TYPE_CHECKING:
    from psd import apps, decompositions, errors, testing
    from psd._apps import (
        Spark,
        SparkTable,
        Stream,
        audit,
        compare,
        evaluate,
        plan,
        plan_regions,
        train_factors,
        train_weights,
    )
    from psd.api.answers import Answers
    from psd.api.differences import difference, ratio
    from psd.api.release import Release, load
    from psd.curator.contribution_choice import ContributionChoice
    from psd.curator.private_bounds import PrivateBounds
    from psd.decompositions import method, methods
    from psd.errors import PsdError
    from psd.ingest.sources import Columns
    from psd.ingest.sources.postgis import PostGIS
    from psd.ingest.sources.sql import DuckDB
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger
    from psd.privacy.unit import PrivacyUnit
    from psd.publish.build import build
    from psd.publish.observer import Observer
    from psd.publish.single_count import ask
    from psd.publish.tallies import merge, tally
    from psd.regions.hierarchy import RegionHierarchy
    from psd.regions.inputs import CellRegions, RegionFiles
    from psd.release.signing import new_key, sign, verify
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.grids import grid_tree
    from psd.space.time_slices import TimeSlices

__all__ = [
    "Account",
    "Answers",
    "CellRegions",
    "Columns",
    "ContributionChoice",
    "Covariate",
    "Domain",
    "DuckDB",
    "Ledger",
    "Observer",
    "PostGIS",
    "PrivacyUnit",
    "PrivateBounds",
    "PsdError",
    "RegionFiles",
    "RegionHierarchy",
    "Release",
    "Spark",
    "SparkTable",
    "Stream",
    "TimeSlices",
    "Tree",
    "__version__",
    "apps",
    "ask",
    "audit",
    "build",
    "compare",
    "decompositions",
    "difference",
    "errors",
    "evaluate",
    "grid_tree",
    "load",
    "merge",
    "method",
    "methods",
    "new_key",
    "plan",
    "plan_regions",
    "ratio",
    "sign",
    "tally",
    "testing",
    "train_factors",
    "train_weights",
    "verify",
]

# The module of each name; imported when first used, so that the command line starts at once.
_MODULES = {
    "Account": "psd.ledger.account",
    "Answers": "psd.api.answers",
    "CellRegions": "psd.regions.inputs",
    "Columns": "psd.ingest.sources",
    "ContributionChoice": "psd.curator.contribution_choice",
    "Covariate": "psd.space.covariate",
    "Domain": "psd.space.domain",
    "DuckDB": "psd.ingest.sources.sql",
    "Ledger": "psd.ledger.ledger",
    "Observer": "psd.publish.observer",
    "PostGIS": "psd.ingest.sources.postgis",
    "PrivacyUnit": "psd.privacy.unit",
    "PrivateBounds": "psd.curator.private_bounds",
    "PsdError": "psd.errors",
    "RegionFiles": "psd.regions.inputs",
    "RegionHierarchy": "psd.regions.hierarchy",
    "Release": "psd.api.release",
    "TimeSlices": "psd.space.time_slices",
    "Tree": "psd.space.box_tree",
    "ask": "psd.publish.single_count",
    "build": "psd.publish.build",
    "difference": "psd.api.differences",
    "grid_tree": "psd.space.grids",
    "load": "psd.api.release",
    "merge": "psd.publish.tallies",
    "method": "psd.decompositions",
    "methods": "psd.decompositions",
    "new_key": "psd.release.signing",
    "ratio": "psd.api.differences",
    "sign": "psd.release.signing",
    "tally": "psd.publish.tallies",
    "verify": "psd.release.signing",
}

# Submodules that are public themselves.
_SUBMODULES = ("apps", "decompositions", "errors", "testing")

_apps.answer_old_names()


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"psd.{name}")
    if name in _apps.MEMBERS:
        return _apps.load_member(name)
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    now = "psd.Release" if name == "SeriesRelease" else _apps.MOVED.get(f"psd.{name}")
    raise AttributeError(
        f"module 'psd' has no attribute {name!r}" if now is None else f"psd.{name} is {now} now"
    )


def __dir__() -> list[str]:
    return sorted(__all__)
