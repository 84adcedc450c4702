"""GeoPackage: one layer with styles, which QGIS opens as a map."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from psd.errors import WriteError
from psd.export._formats import describe, layer_bytes, write_cells
from psd.export._styles import Style, cell_styles, layer_styles, mean_names

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".gpkg"

_STYLES = """
CREATE TABLE layer_styles (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256),
    f_table_schema TEXT(256), f_table_name TEXT(256), f_geometry_column TEXT(256),
    styleName TEXT(30), styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN, description TEXT,
    owner TEXT(30), ui TEXT(30),
    update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))
"""


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write a layer, ``cells`` or ``answers``, and its styles; version 1.2, for older programs."""
    options = _options(table)
    path.write_bytes(layer_bytes(table, "GPKG", "gpkg", **options))
    _add_styles(path, options["layer"], layer_styles(table))


def write_parts(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of cells, one after the other, as one layer with styles; see `write`."""
    waiting = iter(tables)
    first = next(waiting)
    options = _options(first)
    names = ["density", *(f"{n}{end}" for n in mean_names(first) for end in ("", "_quality"))]
    values, areas = [], []

    def noted() -> Iterator[geopandas.GeoDataFrame]:
        for table in chain([first], waiting):
            values.append([table[name].to_numpy() for name in names])
            areas.append(shapely.area(table.geometry.to_numpy()))
            yield table

    write_cells(noted(), path, "GPKG", "gpkg", **options)
    columns = dict(zip(names, map(np.concatenate, zip(*values, strict=True)), strict=True))
    styles = cell_styles(columns, np.concatenate(areas), first.attrs)
    _add_styles(path, options["layer"], styles)


def write_points(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of points, one after the other, as one layer without styles."""
    waiting = iter(tables)
    first = next(waiting)
    write_cells(chain([first], waiting), path, "GPKG", "gpkg", **_options(first))


def _options(table: geopandas.GeoDataFrame) -> dict[str, Any]:
    """Options of the layer and its file."""
    layer = table.attrs.get("content", "cells")
    return {
        "layer": layer,
        "FID": _free_name(table, "fid"),
        "GEOMETRY_NAME": _free_name(table, "geom"),
        "layer_metadata": dict(table.attrs) or None,
        "VERSION": "1.2",
        "IDENTIFIER": layer,
        "DESCRIPTION": describe(table.attrs),
    }


def _free_name(table: geopandas.GeoDataFrame, name: str) -> str:
    """Name of a column of the format itself, which no column of the caller has."""
    columns = {str(column).lower() for column in table.columns}
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in columns)


def _add_styles(path: Path, layer: str, styles: list[Style]) -> None:
    """Add the table from which QGIS takes styles to a GeoPackage; the first one is used."""
    if not styles:
        return
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = MEMORY")  # the file has no other name yet
            ((geometry,),) = connection.execute("SELECT column_name FROM gpkg_geometry_columns")
            # One time in all tables: that of GDAL, which OGR_CURRENT_DATE sets.
            ((time,),) = connection.execute("SELECT last_change FROM gpkg_contents")
            connection.execute(_STYLES)
            connection.execute(
                "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, "
                "last_change) VALUES ('layer_styles', 'attributes', 'layer_styles', "
                "'styles of QGIS', ?)",
                (time,),
            )
            connection.executemany(
                "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, "
                "f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description, "
                "owner, update_time) VALUES ('', '', ?, ?, ?, ?, '', ?, ?, '', ?)",
                [
                    (layer, geometry, style.name, style.qml, number == 0, style.description, time)
                    for number, style in enumerate(styles)
                ],
            )
    except sqlite3.Error as error:
        raise WriteError(f"cannot write {path.name}: {error}; its disk may be full") from None
