"""CSV: a row per cell, with its four sides, or per point; of other tables the plain columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.column_kinds import csv_text
from psd.export._formats import plain_columns
from psd.release.cube import ALL_TIME

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".csv"

FIXED_CRS = "release"
"""In another CRS cells are not boxes, and have no four sides."""


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write the sides of cells in the CRS of the release, then the other columns."""
    write_parts([table], path)


def write_parts(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables one after the other, with one heading; see `write`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, table in enumerate(tables):
            plain = plain_columns(table)
            # What is shown of a cube, which other formats state with the guarantee.
            for name in ("category", "when"):
                text = table.attrs.get(name, ALL_TIME)
                if name not in plain and text != ALL_TIME:
                    plain.insert(0, name, text.partition("=")[2] or text)  # of column=label
            file.write(csv_text(plain, heading=number == 0))


write_points = write_parts
"""The columns of points, x and y; a file of text has no place for all that the release states."""
