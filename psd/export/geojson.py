"""GeoJSON (RFC 7946): longitude and latitude, for web maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._formats import describe, layer_bytes
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas

__all__ = ["FIXED_CRS", "SUFFIX", "write"]

SUFFIX = ".geojson"

FIXED_CRS = "EPSG:4326"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write features in EPSG:4326, whatever the CRS of the release, and a member ``metadata``."""
    table = transform_table(table, FIXED_CRS)
    extra = {"type": "FeatureCollection", "metadata": dict(table.attrs)}
    options = {
        "RFC7946": "YES",
        "NATIVE_DATA": json.dumps(extra),
        "NATIVE_MEDIA_TYPE": "application/vnd.geo+json",
        "DESCRIPTION": describe(table.attrs),
        "AUTODETECT_JSON_STRINGS": "NO",  # a text may look like a list
    }
    layer = table.attrs.get("content", "cells")
    path.write_bytes(layer_bytes(table, "GeoJSON", "pmtiles", layer=layer, **options))
