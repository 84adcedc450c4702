"""GeoParquet: columns for analysis, with the boxes as covering for quick spatial filters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".parquet"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write GeoParquet 1.1."""
    table.to_parquet(path, index=False, schema_version="1.1.0", write_covering_bbox=True)
