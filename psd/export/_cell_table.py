"""The table of cells, whose `plot` is a map that can be read without arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import geopandas as gpd
import shapely
from geopandas.plotting import GeoplotAccessor

from psd._util.extras import require_matplotlib
from psd.export._maps import classes_of

if TYPE_CHECKING:
    import folium

    from psd.release.record import ReleaseRecord

__all__ = ["CellTable"]


class CellTable(gpd.GeoDataFrame):  # type: ignore[misc]
    """A GeoDataFrame of cells.

    `plot` without the name of a column shows the density in classes, with a legend, and `explore`
    a map of classes that can be moved.
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

    def explore(self, column: str = "density", *, tiles: Any = None) -> folium.Map:
        """Make an interactive map for a notebook, with folium.

        Parameters
        ----------
        column : {"density", "estimate", "relative_error", "reliable", "quality"}
            What the colours show.
        tiles : str or folium.TileLayer, optional
            Background, such as ``"OpenStreetMap"``; none by default. The browser fetches it, and
            folium's own scripts, from servers on the internet; this library fetches nothing.

        Raises
        ------
        ParameterError
            If there is no such column.
        MissingExtraError
            If folium is not installed.
        """
        from psd.export._views import explore_release

        return explore_release(self._record, gpd.GeoDataFrame(self), column, tiles=tiles)
