"""GeoParquet: columns for analysis; cells have a covering of boxes for quick spatial filters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".parquet"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write GeoParquet 1.1; the metadata of the table stand under ``PANDAS_ATTRS`` in the file."""
    covering = table.attrs.get("content", "cells") == "cells" and "bbox" not in table
    table.to_parquet(path, index=False, schema_version="1.1.0", write_covering_bbox=covering)
