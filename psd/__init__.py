"""psd: private spatial statistics, published with their errors.

`build` turns points into a `Release`. A release answers `Release.query` from its file alone: it
holds noisy counts and public parameters, and everything after the build is ordinary geometry.

Names of this module and of `psd.choosing`, `psd.decompositions`, `psd.errors`, `psd.local`,
`psd.suggest` and `psd.testing` are public; other modules may change. Methods are classes of
`psd.decompositions`, or names such as ``"quadtree"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd._version import __version__

if TYPE_CHECKING:
    from psd import choosing, decompositions, errors, local, suggest, testing
    from psd.api.differences import difference, ratio
    from psd.api.loading import load
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.auditing.audit import audit
    from psd.curator.contribution_choice import ContributionChoice
    from psd.curator.private_bounds import PrivateBounds
    from psd.decompositions import method, methods
    from psd.errors import PsdError
    from psd.evaluation.compare import compare
    from psd.evaluation.evaluate import evaluate
    from psd.ingest.engines.spark import Spark, SparkTable
    from psd.ingest.sources import Columns
    from psd.ingest.sources.postgis import PostGIS
    from psd.ingest.sources.sql import DuckDB
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger
    from psd.planning.plan import plan
    from psd.planning.region_plan import plan_regions
    from psd.privacy.unit import PrivacyUnit
    from psd.publish.build import build
    from psd.publish.observer import Observer
    from psd.publish.single_count import ask
    from psd.publish.suggestions import train_factors, train_weights
    from psd.publish.tallies import merge, tally
    from psd.release.signing import new_key, sign, verify
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.grids import grid_tree
    from psd.space.region_hierarchy import RegionHierarchy
    from psd.space.region_inputs import CellRegions, RegionFiles
    from psd.space.time_slices import TimeSlices
    from psd.streams.stream import Stream

__all__ = [
    "Account",
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
    "SeriesRelease",
    "Spark",
    "SparkTable",
    "Stream",
    "TimeSlices",
    "Tree",
    "__version__",
    "ask",
    "audit",
    "build",
    "choosing",
    "compare",
    "decompositions",
    "difference",
    "errors",
    "evaluate",
    "grid_tree",
    "load",
    "local",
    "merge",
    "method",
    "methods",
    "new_key",
    "plan",
    "plan_regions",
    "ratio",
    "sign",
    "suggest",
    "tally",
    "testing",
    "train_factors",
    "train_weights",
    "verify",
]

# The module of each name; imported when first used, so that the command line starts at once.
_MODULES = {
    "Account": "psd.ledger.account",
    "CellRegions": "psd.space.region_inputs",
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
    "RegionFiles": "psd.space.region_inputs",
    "RegionHierarchy": "psd.space.region_hierarchy",
    "Release": "psd.api.release",
    "SeriesRelease": "psd.api.series",
    "Spark": "psd.ingest.engines.spark",
    "SparkTable": "psd.ingest.engines.spark",
    "Stream": "psd.streams.stream",
    "TimeSlices": "psd.space.time_slices",
    "Tree": "psd.space.box_tree",
    "ask": "psd.publish.single_count",
    "audit": "psd.auditing.audit",
    "build": "psd.publish.build",
    "compare": "psd.evaluation.compare",
    "difference": "psd.api.differences",
    "evaluate": "psd.evaluation.evaluate",
    "grid_tree": "psd.space.grids",
    "load": "psd.api.loading",
    "merge": "psd.publish.tallies",
    "method": "psd.decompositions",
    "methods": "psd.decompositions",
    "new_key": "psd.release.signing",
    "plan": "psd.planning.plan",
    "plan_regions": "psd.planning.region_plan",
    "ratio": "psd.api.differences",
    "sign": "psd.release.signing",
    "tally": "psd.publish.tallies",
    "train_factors": "psd.publish.suggestions",
    "train_weights": "psd.publish.suggestions",
    "verify": "psd.release.signing",
}

# Submodules that are public themselves.
_SUBMODULES = ("choosing", "decompositions", "errors", "local", "suggest", "testing")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"psd.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'psd' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
