"""`RegionRelease`: a release whose upper nodes are named regions. Public."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from psd.api.release import Release
from psd.errors import InternalError, ParameterError
from psd.query.answer_table import check_levels
from psd.query.reliability import Threshold
from psd.release.file import read_release
from psd.release.node_limit import MAX_NODES
from psd.release.record import ReleaseRecord
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["RegionRelease", "release_of"]


class RegionRelease(Release):
    """A release that counts the regions of a public hierarchy, and cells inside the lowest ones.

    Guarantees
    ----------
    - As `psd.Release`. In the estimates, the parts of each region sum to it, on every level.

    Parameters
    ----------
    record : ReleaseRecord
        The published fields; its tree is a `psd.space.region_tree.RegionTree`.
    """

    @staticmethod
    def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> RegionRelease:
        """Read a release file with regions; see `psd.load`."""
        record, digest = read_release(path, max_nodes=max_nodes)
        if not isinstance(record.tree, RegionTree):
            raise ParameterError("path must be a release with regions; use psd.load", name="path")
        release = RegionRelease(record)
        vars(release)["digest"] = digest
        return release

    @property
    def regions_tree(self) -> RegionTree:
        """Regions, cells and noisy counts."""
        if not isinstance(self.tree, RegionTree):
            raise InternalError("the tree has no regions")
        return self.tree

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of regions, the highest first."""
        return tuple(level.name for level in self.regions_tree.regions.levels)

    def top(
        self,
        k: int,
        *,
        level: str | None = None,
        size: tuple[int, int] | None = None,
        regions: Any = None,
        crs: Any = None,
        by: Literal["count", "density"] = "count",
        draws: int = 2000,
        seed: int = 0,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Rank the k regions with the most records, with the probability that each is in the top.

        Parameters
        ----------
        k : int
            Number of regions to list, at most the number that is ranked.
        level : str, optional
            Name of the level whose regions are ranked, at most 5,000; the lowest one by default.
        size, regions, crs, by, draws, seed
            As in `psd.Release.top`; with `size` or `regions` no level is ranked. Regions are ranked
            by their count.

        Raises
        ------
        ParameterError
            If an argument is out of range, or the release has no such level.
        """
        from psd.statistics.top_cells import rank_jointly

        if size is not None or regions is not None:
            if level is not None:
                raise ParameterError(f"level must be left out with size or regions, got {level!r}")
            return super().top(
                k, size=size, regions=regions, crs=crs, by=by, draws=draws, seed=seed
            )
        if by != "count":
            raise ParameterError(
                f"by must be count for the regions of a level, got {by!r}; size= ranks the cells "
                "of a raster by density"
            )
        return rank_jointly(self.query(level=level).joint(), k, draws=draws, seed=seed)

    def to_geopandas(  # type: ignore[override] # levels have names
        self, level: str | None = None, *, confidence: float = 0.95, threshold: Threshold = 0.3
    ) -> geopandas.GeoDataFrame:
        """Regions of a level with their polygons, estimates and densities.

        Parameters
        ----------
        level : str, optional
            Name of the level; the lowest one by default.
        confidence, threshold : float
            As in `query`.

        Returns
        -------
        GeoDataFrame
            Columns as those of `Answers.table`, ``density`` (per square kilometre of ground, or
            square unit of a local CRS), and the polygons, in the CRS of the release.

        Raises
        ------
        ParameterError
            If the release has no such level, or an argument is out of range.
        """
        from psd.export._metadata import release_metadata
        from psd.export._regions import named_regions_table

        check_levels(confidence, threshold)
        table = named_regions_table(
            self.model, self.regions_tree, level, confidence=confidence, threshold=threshold
        )
        table.attrs = release_metadata(self.record)
        return table

    def export(  # type: ignore[override] # levels have names
        self,
        path: str | os.PathLike[str],
        *,
        level: str | None = None,
        size: tuple[int, int] | None = None,
        band: Literal["count", "density", "error", "classes"] | None = None,
        crs: Any = None,
        unreliable: Literal["keep", "mark", "drop"] = "keep",
        threshold: Threshold = 0.3,
        overwrite: bool = False,
    ) -> None:
        """Write the regions of a level for a GIS program; the ending of the name is the format.

        Parameters
        ----------
        path : path-like
            Ends in ``.gpkg``, ``.parquet``, ``.fgb``, ``.geojson``, ``.csv`` or ``.xlsx``; or for a
            raster of the cells in ``.tif`` or ``.npy``.
        level : str, optional
            Name of the level; the lowest one by default. Not for rasters.
        size, band
            Of a raster, as in `psd.Release.export`.
        crs, unreliable, threshold, overwrite
            As in `psd.Release.export`.

        Raises
        ------
        ParameterError
            If the ending is not that of a format of tables or rasters, or an argument is out of
            range.
        DomainError
            If `crs` is not a CRS, or the regions cannot be transformed to it.
        WriteError
            If the file exists or cannot be written.
        """
        from psd.export import export_release, find_format, is_raster
        from psd.export._regions import export_regions
        from psd.release.allow_list import check_release

        check_release(self.record)
        if is_raster(find_format(path)):
            _refuse_level(level)
            export_release(
                self.model,
                path,
                size=size,
                band=band,
                crs=crs,
                unreliable=unreliable,
                threshold=threshold,
                digest=self.digest,
                overwrite=overwrite,
            )
            return
        for name, value in (("size", size), ("band", band)):
            if value is not None:
                raise ParameterError(
                    f"{name} must be left out unless output is a raster, got {value!r}; the format "
                    "is a table of regions"
                )
        export_regions(
            self.model,
            self.to_geopandas(level, threshold=threshold),
            path,
            metadata=self.metadata,
            crs=crs,
            unreliable=unreliable,
            threshold=threshold,
            overwrite=overwrite,
        )

    def _repr_html_(self) -> str:
        """The guarantee, in notebooks."""
        from psd.export._views import html_of

        return html_of(self.model, picture=False)


def _refuse_level(level: str | None) -> None:
    """Refuse a level of a raster."""
    if level is not None:
        raise ParameterError(
            f"level must be left out if output is a raster, got {level!r}; size sets its cells"
        )


def release_of(record: ReleaseRecord) -> Release:
    """Make the release of a record, with regions or without."""
    return RegionRelease(record) if isinstance(record.tree, RegionTree) else Release(record)
