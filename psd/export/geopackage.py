"""GeoPackage: one layer, for QGIS and ArcGIS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._gdal import write_layer

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".gpkg"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write one layer ``cells``; version 1.2, which older programs read without a warning."""
    write_layer(table, path, "GPKG", layer="cells", VERSION="1.2")
