"""GeoJSON (RFC 7946): longitude and latitude, for web maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".geojson"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write features in EPSG:4326, whatever the CRS of the release."""
    lonlat = table.to_crs("EPSG:4326")
    lonlat.to_file(path, driver="GeoJSON", engine="pyogrio", RFC7946="YES")
