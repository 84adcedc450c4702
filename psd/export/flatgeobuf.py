"""FlatGeobuf: one layer that programs read in parts, for maps in a browser and large tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._formats import describe, layer_bytes, write_cells

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".fgb"


def write_parts(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of cells, one after the other, with a spatial index."""
    _write(tables, path, index="YES")


def write_points(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of points in their order; an index would take the memory of all of them."""
    _write(tables, path, index="NO")


def _write(tables: Iterable[geopandas.GeoDataFrame], path: Path, *, index: str) -> None:
    """Write tables, one after the other, with a spatial index or without."""
    waiting = iter(tables)
    first = next(waiting)
    options = {"layer": first.attrs["content"], "DESCRIPTION": describe(first.attrs)}
    options["SPATIAL_INDEX"] = index
    write_cells(chain([first], waiting), path, "FlatGeobuf", "fgb", **options)


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write cells within the world with a spatial index, which sorts rows; others in order."""
    content = table.attrs.get("content", "cells")
    index = "YES" if content == "cells" and not table.geometry.is_empty.any() else "NO"
    path.write_bytes(
        layer_bytes(
            table,
            "FlatGeobuf",
            "fgb",
            layer=content,
            SPATIAL_INDEX=index,
            DESCRIPTION=describe(table.attrs),
        )
    )
