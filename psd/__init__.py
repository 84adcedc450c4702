"""psd: private spatial statistics, published with their errors.

Points enter one object, noisy numbers leave it, and everything after that is ordinary geometry.

`build` turns points into a `Release`; a release answers `Release.query` from its file alone.
The private side (`psd.sources`, `psd.engines`, `psd.tally`, `psd.curator`, `psd.noise`,
`psd.decompositions`, `psd.publish`) holds points; the public side (`psd.release`,
`psd.inference`, `psd.query`, `psd.statistics`, `psd.export`) cannot reach them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psd._version import __version__

if TYPE_CHECKING:
    from psd.covariate import Covariate
    from psd.cutting import grid_tree
    from psd.decompositions import method, methods
    from psd.decompositions.grid import Grid
    from psd.decompositions.quadtree import Quadtree
    from psd.domain import Domain
    from psd.engines.spark import Spark, SparkTable
    from psd.errors import PsdError
    from psd.publish import build
    from psd.release import Release
    from psd.series import Series
    from psd.slices import Slices
    from psd.slicing import build_series
    from psd.sources.postgis import PostGIS
    from psd.statistics.between import difference, ratio
    from psd.tree import Tree

__all__ = [
    "Covariate",
    "Domain",
    "Grid",
    "PostGIS",
    "PsdError",
    "Quadtree",
    "Release",
    "Series",
    "Slices",
    "Spark",
    "SparkTable",
    "Tree",
    "__version__",
    "build",
    "build_series",
    "difference",
    "grid_tree",
    "method",
    "methods",
    "ratio",
]

# Where each name lives; imported when first used, so that the command line starts at once.
_HOMES = {
    "Covariate": "psd.covariate",
    "Domain": "psd.domain",
    "Grid": "psd.decompositions.grid",
    "PostGIS": "psd.sources.postgis",
    "PsdError": "psd.errors",
    "Quadtree": "psd.decompositions.quadtree",
    "Release": "psd.release",
    "Series": "psd.series",
    "Slices": "psd.slices",
    "Spark": "psd.engines.spark",
    "SparkTable": "psd.engines.spark",
    "Tree": "psd.tree",
    "build": "psd.publish",
    "build_series": "psd.slicing",
    "difference": "psd.statistics.between",
    "grid_tree": "psd.cutting",
    "method": "psd.decompositions",
    "methods": "psd.decompositions",
    "ratio": "psd.statistics.between",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'psd' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
