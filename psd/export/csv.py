"""CSV: one row of numbers per cell, with its four sides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

SUFFIX = ".csv"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write the sides in the CRS of the release, then the other columns."""
    sides = table.geometry.bounds.set_axis(["west", "south", "east", "north"], axis=1)
    rows = sides.join(table.drop(columns="geometry"))
    order = ["cell", "level", *sides.columns, "estimate", "perturbation_error", "density"]
    order += [name for name in ("release_source",) if name in rows]
    rows[order].to_csv(path, index=False, lineterminator="\n")
