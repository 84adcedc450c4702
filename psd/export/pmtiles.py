"""PMTiles: vector tiles in one file, for maps in a browser."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psd.errors import PsdWarning
from psd.export._formats import describe, layer_bytes
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".pmtiles"

FIXED_CRS = "EPSG:3857"
"""The CRS of map tiles."""

# Width of the square of the tile of zoom 0 in metres, and units across a tile.
_WORLD, _EXTENT = 40_075_016.7, 4096

# The smallest cell has at least this many units at the largest zoom.
_UNITS = 16

# Most tiles along a side of the domain, and the largest zoom.
_TILES, _LARGEST = 64, 14


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write tiles of zoom 0 to the zoom at which the smallest polygon can be seen."""
    plane = transform_table(table, FIXED_CRS)
    ends = plane.geometry.bounds
    beyond = int(((ends.maxy > _WORLD / 2 + 1) | (ends.miny < -_WORLD / 2 - 1)).sum())
    if beyond:
        warnings.warn(
            f"{beyond:,} of {len(plane):,} shapes reach beyond 85.05 degrees of latitude, where "
            "map tiles end; the part beyond is not in the file, and .gpkg holds it",
            PsdWarning,
            stacklevel=2,
        )
    parts = plane.geometry.explode(index_parts=False).bounds.dropna().to_numpy()
    sides = np.clip(parts, -_WORLD / 2, _WORLD / 2)
    # Tiles cut polygons: a program that sums the features of a file counts some of them twice.
    path.write_bytes(
        layer_bytes(
            plane,
            "PMTiles",
            "pmtiles",
            layer=str(table.attrs.get("content", "cells")),
            MINZOOM="0",
            MAXZOOM=str(_largest_zoom(sides)),
            NAME=str(table.attrs.get("title", "differentially private release")),
            DESCRIPTION=describe(table.attrs),
            TYPE="overlay",
        )
    )


def _largest_zoom(sides: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    """Zoom at which the smallest polygon has a visible size, if there are not too many tiles."""
    if not len(sides):
        return 0
    # A part may be narrow where longitude 180 cuts a cell.
    at_seam = (np.abs(sides[:, ::2]) > _WORLD / 2 - 1).any(axis=1)
    whole = sides[~at_seam] if not at_seam.all() else sides
    smallest = max(float((whole[:, 2:] - whole[:, :2]).min()), 1e-3)
    # The widths with parts west and east of longitude 0 as they are, and beside each other at 180.
    beside = np.where(sides[:, [0]] < 0, sides + np.array([_WORLD, 0, _WORLD, 0]), sides)
    width = min(float(each[:, 2].max() - each[:, 0].min()) for each in (sides, beside))
    across = max(width, float(sides[:, 3].max() - sides[:, 1].min()), 1e-3)
    seen = np.ceil(np.log2(_WORLD / _EXTENT * _UNITS / smallest))
    few = np.floor(np.log2(_WORLD * _TILES / across))
    return int(np.clip(min(seen, few), 0, _LARGEST))
