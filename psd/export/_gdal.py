"""Vector files of GDAL, by way of memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["write_layer"]


def write_layer(table: geopandas.GeoDataFrame, path: Path, driver: str, **options: str) -> None:
    """Write a table in a format of GDAL, which by itself does not always say that a disk is full.

    Raises
    ------
    OSError
        If the file cannot be written whole.
    """
    content = io.BytesIO()
    table.to_file(content, driver=driver, engine="pyogrio", **options)
    path.write_bytes(content.getbuffer())
