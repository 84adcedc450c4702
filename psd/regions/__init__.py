"""Public regions that are counted by name: hierarchies, their kinds and their files. Public."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.regions.files import CellRegions, RegionFiles
    from psd.regions.hierarchy import RegionHierarchy

__all__ = ["CellRegions", "RegionFiles", "RegionHierarchy"]

# The module of each name; imported when first used, for modules below are imported without them.
_MODULES = {
    "CellRegions": "psd.regions.files",
    "RegionFiles": "psd.regions.files",
    "RegionHierarchy": "psd.regions.hierarchy",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
