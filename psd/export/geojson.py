"""GeoJSON (RFC 7946): longitude and latitude, for web maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._gdal import write_layer

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".geojson"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write features in EPSG:4326, whatever the CRS of the release."""
    write_layer(table.to_crs("EPSG:4326"), path, "GeoJSON", layer=path.stem, RFC7946="YES")
