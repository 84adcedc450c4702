"""GeoJSON (RFC 7946): longitude and latitude, for web maps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.export._formats import describe, layer_bytes, write_cells
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".geojson"

FIXED_CRS = "EPSG:4326"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write features in EPSG:4326, whatever the CRS of the release, and a member ``metadata``."""
    table = transform_table(table, FIXED_CRS)
    path.write_bytes(layer_bytes(table, "GeoJSON", "pmtiles", **_options(table)))


def write_points(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of points, one after the other; see `write`."""
    waiting = (transform_table(table, FIXED_CRS) for table in tables)
    first = next(waiting)
    write_cells(chain([first], waiting), path, "GeoJSON", "pmtiles", **_options(first))


def _options(table: geopandas.GeoDataFrame) -> dict[str, Any]:
    """Options of the layer and its file."""
    extra = {"type": "FeatureCollection", "metadata": dict(table.attrs)}
    return {
        "layer": table.attrs.get("content", "cells"),
        "RFC7946": "YES",
        "NATIVE_DATA": json.dumps(extra),
        "NATIVE_MEDIA_TYPE": "application/vnd.geo+json",
        "DESCRIPTION": describe(table.attrs),
        "AUTODETECT_JSON_STRINGS": "NO",  # a text may look like a list
    }
