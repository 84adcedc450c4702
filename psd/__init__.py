"""psd: private spatial statistics, published with their errors.

Points enter one object, noisy numbers leave it, and everything after that is ordinary geometry.

`build` turns points into a `Release`; a release answers `Release.query` from its file alone.
The private side (`psd.ingest.sources`, `psd.ingest.engines`, `psd.ingest.tally`,
`psd.curator.curator`, `psd.mechanisms`, `psd.decompositions`, `psd.publish.build`) holds points;
the public side (`psd.release.record`, `psd.estimation.least_squares`, `psd.query`,
`psd.statistics`, `psd.export`) cannot reach them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd._version import __version__

if TYPE_CHECKING:
    from psd.api.differences import difference, ratio
    from psd.api.loading import load
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.decompositions import method, methods
    from psd.decompositions.grid import Grid
    from psd.decompositions.quadtree import Quadtree
    from psd.errors import PsdError
    from psd.ingest.engines.spark import Spark, SparkTable
    from psd.ingest.sources.postgis import PostGIS
    from psd.publish.build import build
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.grids import grid_tree
    from psd.space.time_slices import TimeSlices

__all__ = [
    "Covariate",
    "Domain",
    "Grid",
    "PostGIS",
    "PsdError",
    "Quadtree",
    "Release",
    "SeriesRelease",
    "Spark",
    "SparkTable",
    "TimeSlices",
    "Tree",
    "__version__",
    "build",
    "difference",
    "grid_tree",
    "load",
    "method",
    "methods",
    "ratio",
]

# Where each name lives; imported when first used, so that the command line starts at once.
_HOMES = {
    "Covariate": "psd.space.covariate",
    "Domain": "psd.space.domain",
    "Grid": "psd.decompositions.grid",
    "PostGIS": "psd.ingest.sources.postgis",
    "PsdError": "psd.errors",
    "Quadtree": "psd.decompositions.quadtree",
    "Release": "psd.api.release",
    "SeriesRelease": "psd.api.series",
    "TimeSlices": "psd.space.time_slices",
    "Spark": "psd.ingest.engines.spark",
    "SparkTable": "psd.ingest.engines.spark",
    "Tree": "psd.space.box_tree",
    "build": "psd.publish.build",
    "difference": "psd.api.differences",
    "grid_tree": "psd.space.grids",
    "load": "psd.api.loading",
    "method": "psd.decompositions",
    "methods": "psd.decompositions",
    "ratio": "psd.api.differences",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'psd' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
