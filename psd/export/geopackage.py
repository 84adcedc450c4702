"""GeoPackage: one layer with styles, which QGIS opens as a map."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from psd.export._formats import describe, layer_bytes
from psd.export._styles import Style, layer_styles

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

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
    """Write one layer and its styles; version 1.2, which older programs read without a warning.

    The layer is named ``cells``, or ``answers`` for those of queries.
    """
    layer = table.attrs.get("content", "cells")
    content = layer_bytes(
        table,
        "GPKG",
        "gpkg",
        layer=layer,
        FID=_free_name(table, "fid"),
        GEOMETRY_NAME=_free_name(table, "geom"),
        layer_metadata=dict(table.attrs) or None,
        VERSION="1.2",
        IDENTIFIER=layer,
        DESCRIPTION=describe(table.attrs),
    )
    path.write_bytes(_with_styles(content, layer, layer_styles(table)))


def _free_name(table: geopandas.GeoDataFrame, name: str) -> str:
    """Name of a column of the format itself, which no column of the caller has."""
    columns = {str(column).lower() for column in table.columns}
    return next(each for each in _names_like(name) if each not in columns)


def _names_like(name: str) -> Iterator[str]:
    """The name, then the name with numbers."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _with_styles(content: bytes, layer: str, styles: list[Style]) -> bytes:
    """Content of a GeoPackage with the table from which QGIS takes styles; the first is used."""
    if not styles:
        return content
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(content)
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
            "f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description, owner, "
            "update_time) VALUES ('', '', ?, ?, ?, ?, '', ?, ?, '', ?)",
            [
                (layer, geometry, style.name, style.qml, number == 0, style.description, time)
                for number, style in enumerate(styles)
            ],
        )
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()
