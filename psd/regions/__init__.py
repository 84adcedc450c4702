"""Public regions that are counted by name: hierarchies, their kinds and their files. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.regions.files import CellRegions, RegionFiles
    from psd.regions.hierarchy import RegionHierarchy

__all__ = ["CellRegions", "RegionFiles", "RegionHierarchy"]

# Imported when first used, for modules below are imported without them.
__getattr__, __dir__ = lazy_names(
    __name__, __all__, {"files": "CellRegions RegionFiles", "hierarchy": "RegionHierarchy"}
)
