"""Methods of a release that give its cells to other programs: tables, maps and files. Public."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from psd.api._release_facts import ReleaseFacts
from psd.query.reliability import Threshold

if TYPE_CHECKING:
    import folium
    import geopandas
    import xarray
    from matplotlib.axes import Axes

__all__ = ["ReleaseOutputs"]


class ReleaseOutputs(ReleaseFacts):
    """Tables, maps and files of the cells; each is post-processing and costs no epsilon."""

    def to_geopandas(
        self,
        cells: Literal["leaves", "all"] = "leaves",
        *,
        level: int | None = None,
        threshold: Threshold = 0.3,
    ) -> geopandas.GeoDataFrame:
        """Cells as polygons with estimates, in the CRS of the release.

        Parameters
        ----------
        cells : {"leaves", "all"}
            The finest cells, or the nodes of every level.
        level : int, optional
            Coarser cells that tile the domain: the nodes of this level, 0 for the domain itself,
            and the leaves above it.
        threshold : float or tuple of two floats
            As in `query`.

        Returns
        -------
        GeoDataFrame
            ``cell, level, estimate, perturbation_error, density, relative_error, reliable,
            quality`` and the box as geometry; density is records per square kilometre of
            ground, or square unit of a local CRS. Relative errors and quality are as in
            `query`, with intervals of 95 %. Its ``attrs`` are `metadata` without the digest, and
            its ``plot()`` shows the density in classes.

        Raises
        ------
        ParameterError
            If the release has no such level, or an argument is out of range.
        """
        from psd.export._cell_table import CellTable
        from psd.export._cells import cells_table
        from psd.export._metadata import release_metadata

        table = cells_table(self.model, cells, level=level, threshold=threshold)
        table.attrs = release_metadata(self.record)
        return CellTable.of(table, self.model)

    def to_xarray(self, columns: int = 256, rows: int = 256) -> xarray.Dataset:
        """Counts, densities and errors of equal cells as a dataset of xarray.

        Parameters
        ----------
        columns, rows : int
            As in `raster`.

        Returns
        -------
        Dataset
            ``count, density, perturbation_error, nonuniformity_error, error`` over the centres
            ``y, x``, the first row in the north, with units. The coordinate ``spatial_ref`` has the
            CRS as rioxarray reads it (``dataset.rio.crs``); the attributes are `metadata`.

        Raises
        ------
        ParameterError
            If the size is out of range.
        MissingExtraError
            If xarray is not installed.
        """
        from psd.export._views import to_xarray

        return to_xarray(self.model, columns, rows, metadata=self.metadata)

    def plot(
        self,
        kind: Literal["density", "estimate", "relative_error", "reliable", "quality"] = "density",
        *,
        level: int | None = None,
        outline: geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
        threshold: Threshold = 0.3,
        axes: Axes | None = None,
    ) -> Axes:
        """Draw a map of the cells with matplotlib: classes, colour bar, scale bar and guarantee.

        Parameters
        ----------
        kind : {"density", "estimate", "relative_error", "reliable", "quality"}
            What is shown: a column of `to_geopandas`.
        level : int, optional
            As in `to_geopandas`.
        outline : GeoDataFrame or GeoSeries, optional
            Polygons whose outlines are drawn over the cells.
        threshold : float or tuple of two floats
            As in `query`.
        axes : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ParameterError
            If an argument is out of range.
        MissingExtraError
            If matplotlib is not installed.
        """
        from psd.export._maps import draw_release

        cells = self.to_geopandas(level=level, threshold=threshold)
        return draw_release(
            self.model, cells, kind, outline=outline, threshold=threshold, axes=axes
        )

    def explore(
        self,
        kind: Literal["density", "estimate", "relative_error", "reliable", "quality"] = "density",
        *,
        level: int | None = None,
        threshold: Threshold = 0.3,
        tiles: Any = None,
    ) -> folium.Map:
        """Make an interactive map for a notebook, with folium.

        Parameters
        ----------
        kind, level, threshold
            As in `plot`.
        tiles : str or folium.TileLayer, optional
            Background, such as ``"OpenStreetMap"``; none by default. The browser fetches it, and
            folium's own scripts, from servers on the internet; this library fetches nothing.

        Returns
        -------
        folium.Map

        Raises
        ------
        ParameterError
            If an argument is out of range.
        MissingExtraError
            If folium is not installed.
        """
        from psd.export._views import explore_release

        cells = self.to_geopandas(level=level, threshold=threshold)
        return explore_release(self.model, cells, kind, tiles=tiles)

    def _repr_html_(self) -> str:
        """Small picture and the guarantee, in notebooks."""
        from psd.export._views import html_of

        return html_of(self.model)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Stream the leaves to libraries that read Arrow, with their boxes as WKB (GeoArrow)."""
        table = self.to_geopandas().to_arrow(index=False, geometry_encoding="WKB")
        return table.__arrow_c_stream__(requested_schema)

    def catalogue(
        self,
        standard: Literal["stac", "dcat", "registry"],
        *,
        file: str | os.PathLike[str] = "release.psd.parquet",
    ) -> dict[str, Any]:
        """Make an entry for a catalogue, as JSON values.

        Parameters
        ----------
        standard : {"stac", "dcat", "registry"}
            An item of STAC 1.1; a dataset of DCAT-AP in JSON-LD; or the fields of the public
            registry of deployments of differential privacy: product, unit, flavour, epsilon, model,
            accounting, implementation, justification.
        file : path-like
            Release file; its name is the address in the entry, which stands beside it.

        Raises
        ------
        ParameterError
            If there is no such standard, or an item of STAC would have no time: `about` has no
            ``reference_date``.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.catalogue("registry")["flavour"]["name"]
        'pure differential privacy'
        """
        from psd.export._catalogue import Described, catalogue_entry

        described = Described(
            record=self.record,
            metadata=self.metadata,
            guarantee=self.guarantee_text,
            file=os.path.basename(file),
        )
        return catalogue_entry(standard, described)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        cells: Literal["leaves", "all"] = "leaves",
        level: int | None = None,
        size: tuple[int, int] | None = None,
        band: Literal["count", "density", "error", "classes"] | None = None,
        crs: Any = None,
        unreliable: Literal["keep", "mark", "drop"] = "keep",
        threshold: Threshold = 0.3,
        table: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the cells for a GIS program; the ending of the name selects the format.

        Parameters
        ----------
        path : path-like
            Ends in ``.gpkg``, ``.parquet``, ``.fgb``, ``.geojson``, ``.csv``, ``.xlsx`` or
            ``.pmtiles``, or for a raster in ``.tif`` or ``.npy``; or the address
            ``postgresql://...`` of a PostGIS database.
        cells : {"leaves", "all"}
            As in `to_geopandas`; rasters are made of the leaves.
        level : int, optional
            As in `to_geopandas`; not for rasters.
        size : tuple of int, optional
            Columns and rows of a raster; 256 x 256 by default.
        band : {"count", "density", "error", "classes"}, optional
            The only band of a GeoTIFF; by default the first three. ``classes`` are those of the
            density, with a colour table, so that programs show them as a map.
        crs : any CRS that pyproj understands, optional
            CRS of the file, that of the release by default. GeoJSON is always in EPSG:4326,
            PMTiles in EPSG:3857; rasters, CSV and XLSX are in the CRS of the release.
        unreliable : {"keep", "mark", "drop"}
            What is done with cells that are not reliable: ``mark`` adds a column ``flag``, which is
            ``u`` for them (to a raster the bands ``reliable`` and ``quality``); ``drop`` leaves
            them out (in a raster they have no value).
        threshold : float or tuple of two floats
            As in `query`; the file states it.
        table : str, optional
            Table of the database that is written, with its schema before a dot.
        overwrite : bool
            Whether an existing file or table is replaced.

        Raises
        ------
        ParameterError
            If the ending is not that of a format, the format cannot hold what is chosen, or an
            argument is out of range.
        DomainError
            If `crs` is not a CRS, or the cells cannot be transformed to it.
        WriteError
            If the file or table exists or cannot be written.
        MissingExtraError
            If a GeoTIFF needs rasterio, or a database needs its driver, and it is not installed.
        """
        from psd.export import export_release

        export_release(
            self.model,
            path,
            cells=cells,
            level=level,
            size=size,
            band=band,
            crs=crs,
            unreliable=unreliable,
            threshold=threshold,
            table=table,
            digest=self.digest,
            overwrite=overwrite,
        )
