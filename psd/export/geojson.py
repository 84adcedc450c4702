"""GeoJSON (RFC 7946): longitude and latitude, for web maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._gdal import write_layer
from psd.space.crs import explain_proj_errors

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".geojson"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write features in EPSG:4326, whatever the CRS of the release."""
    with explain_proj_errors("the release", "EPSG:4326"):
        table = table.to_crs("EPSG:4326")
    write_layer(table, path, "GeoJSON", layer=path.stem, RFC7946="YES")
