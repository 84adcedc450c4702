"""CSV: one row of numbers per cell, with its four sides; of other tables the plain columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.csv_text import csv_text
from psd.export._formats import plain_columns

if TYPE_CHECKING:
    import geopandas

__all__ = ["FIXED_CRS", "SUFFIX", "write"]

SUFFIX = ".csv"

FIXED_CRS = "release"
"""In another CRS cells are not boxes, and have no four sides."""


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write the sides of cells in the CRS of the release, then the other columns."""
    path.write_text(csv_text(plain_columns(table)), encoding="utf-8", newline="")
