"""The table of cells, whose `plot` is a map that can be read without arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import geopandas as gpd
import shapely
from geopandas.plotting import GeoplotAccessor

from psd._util.extras import require_matplotlib
from psd.export._maps import classes_of

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = ["CellTable"]


class CellTable(gpd.GeoDataFrame):  # type: ignore[misc]
    """A GeoDataFrame of cells.

    `plot` without the name of a column shows the density in classes, with a legend.
    """

    _metadata = [*gpd.GeoDataFrame._metadata, "_record"]  # noqa: RUF012, SLF001

    @classmethod
    def of(cls, cells: gpd.GeoDataFrame, record: ReleaseRecord) -> CellTable:
        """Make a table of the cells of a release."""
        table = cls(cells)
        table.attrs = dict(cells.attrs)
        object.__setattr__(table, "_record", record)
        return table

    def plot(self, column: str | None = None, **options: Any) -> Any:
        """Draw the cells; see `geopandas.GeoDataFrame.plot` for a column or a colour."""
        require_matplotlib("a map")
        if column is None and "color" not in options:
            areas = shapely.area(self.geometry.to_numpy())
            classes = classes_of(self._record, "density", self["density"], areas)
            colours, norm = classes.colour_map()
            legend = {"label": classes.label, "shrink": 0.8, "spacing": "uniform"}
            defaults = {"cmap": colours, "norm": norm, "legend": True, "legend_kwds": legend}
            column, options = (
                "density",
                defaults | {"edgecolor": "face", "linewidth": 0.2} | options,
            )
        return GeoplotAccessor(self)(column=column, **options)
