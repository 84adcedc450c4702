"""Vector files of GDAL, written in memory first."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["write_layer"]


def write_layer(table: geopandas.GeoDataFrame, path: Path, driver: str, **options: str) -> None:
    """Write a table in a format of GDAL; GDAL itself does not always report a full disk.

    Raises
    ------
    OSError
        If the file cannot be written completely.
    """
    content = io.BytesIO()
    table.to_file(content, driver=driver, engine="pyogrio", **options)
    path.write_bytes(content.getbuffer())
