"""Tables without geometries, for formats of numbers and texts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["plain_columns"]


def plain_columns(table: geopandas.GeoDataFrame) -> pandas.DataFrame:
    """Columns but the geometry; of cells their four sides after cell and level."""
    import pandas as pd

    plain = pd.DataFrame(table.drop(columns=table.geometry.name))
    if table.attrs.get("content") == "cells":
        sides = table.geometry.bounds.set_axis(["west", "south", "east", "north"], axis=1)
        plain = plain[["cell", "level"]].join(sides).join(plain.drop(columns=["cell", "level"]))
    return pd.DataFrame(plain)
