"""`Release`: a record with methods for queries, statistics and exports. Public."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.file_endings import check_release_name
from psd._util.instances import check_instance
from psd.errors import ParameterError
from psd.estimation.fit_cache import fit_cache
from psd.estimation.model import CountModel
from psd.privacy.epsilon import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.query.index import QueryIndex
from psd.query.reliability import Threshold
from psd.release.about import about_from_mapping
from psd.release.counts import record_from_counts
from psd.release.file import digest_of, read_release, write_release
from psd.release.node_limit import MAX_NODES
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord, guarantee_note
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain, public_domain
from psd.space.region_tree import RegionTree
from psd.space.regions import attach_crs

if TYPE_CHECKING:
    import folium
    import geopandas
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from pyproj import CRS

    from psd.estimation.least_squares import Estimates
    from psd.query.explain import Explanation
    from psd.query.joint import Joint
    from psd.statistics.raster import Raster

__all__ = ["Release"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A differentially private release, ready to be saved, queried and exported.

    Guarantees
    ----------
    - It holds the answers of the curator, public parameters, and nothing else.
    - Every method is post-processing: it reads the release alone and costs no epsilon.

    Parameters
    ----------
    record : ReleaseRecord
        The published fields.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """

    record: ReleaseRecord

    def __repr__(self) -> str:
        return (
            f"<Release: {self.method}, {len(self.tree):,} cells, "
            f"{self.record.loss_text} per {self.unit.kind}"
            f"{guarantee_note(self.record.source)}>"
        )

    @property
    def tree(self) -> Tree:
        """Cells and noisy counts."""
        return self.record.tree

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice."""
        return self.record.domain

    @property
    def epsilon(self) -> Decimal:
        """Privacy budget: enforced by the curator, or stated by the caller of given counts."""
        return Decimal(epsilon_text(self.record.epsilon))

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.record.method

    @property
    def parameters(self) -> Mapping[str, int | str | None]:
        """Public parameters of the method, and those that the build adds."""
        return self.record.parameters

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, and what the counts count."""
        return self.record.unit

    @property
    def post_processing(self) -> PostProcessing:
        """Post-processing of the counts; `with_post_processing` gives another one."""
        return self.record.post_processing

    @property
    def covariate(self) -> Covariate | None:
        """Public density that the release was built with."""
        return self.record.covariate

    @property
    def boundary(self) -> bool:
        """Whether the covariate is the raster of a public boundary."""
        return self.record.boundary

    @property
    def library(self) -> str:
        """Version of the library that made the release."""
        return self.record.library

    @property
    def inference(self) -> int:
        """Version of the estimates."""
        return self.record.inference

    @property
    def source(self) -> str:
        """Where the counts come from; see `psd.release.record.ReleaseRecord`."""
        return self.record.source

    @property
    def about(self) -> dict[str, str]:
        """What the publisher states, such as title and licence; `with_about` gives another one."""
        return {} if self.record.about is None else self.record.about.texts

    @property
    def guarantee_text(self) -> str:
        """Epsilon, unit of privacy and, unless the curator drew the counts, their source."""
        return self.record.guarantee_text

    @cached_property
    def model(self) -> CountModel:
        """Estimates, variances and densities of the cells."""
        return CountModel(record=self.record)

    def with_cache(self) -> Self:
        """Return the release with a fit that is kept in the user's cache folder, if it is large.

        Another process then does not compute it again. Answers are the same, to the bit, and the
        folder has public numbers only; see `psd.estimation.fit_cache`. The command line does so.
        """
        release = type(self)(self.record)
        vars(release)["digest"] = self.digest
        vars(release)["model"] = CountModel(
            record=self.record, cache=fit_cache(self.record, self.digest)
        )
        return release

    def with_near_fit(self) -> Self:
        """Return the release for a process that answers one request.

        A few boxes are answered from a fit of the cells near them, unless the cache has the fit of
        all cells. Answers are the same, to rounding; more requests take more time than without it.
        """
        release = type(self)(self.record)
        vars(release)["digest"] = self.digest
        vars(release)["model"] = self.model
        vars(release)["index"] = QueryIndex(model=self.model, once=True)
        return release

    @cached_property
    def index(self) -> QueryIndex:
        """Arrays that make queries fast."""
        return QueryIndex(model=self.model)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the file it was read from, or will be saved to."""
        return digest_of(self.record)

    @property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell, with variances."""
        return self.model.estimates

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north of the domain, in its CRS."""
        return self.domain.bounds

    @property
    def crs(self) -> CRS:
        """CRS of the domain, of its cells and of its bounds."""
        from pyproj import CRS

        return CRS.from_user_input(self.domain.crs)

    @property
    def metadata(self) -> dict[str, str]:
        """What exports state: `about`, epsilon, unit of privacy, source, counts, method, digest."""
        from psd.export._metadata import release_metadata

        return release_metadata(self.record, self.digest if self._has_file else "")

    @property
    def _has_file(self) -> bool:
        """Whether the release may be saved, and so has a digest."""
        return self.source in ("curator", "given")

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return self.model.total

    def with_post_processing(self, post_processing: PostProcessing) -> Release:
        """Make the same release with another post-processing; costs no epsilon."""
        return type(self)(replace(self.record, post_processing=post_processing))

    def with_about(self, about: Mapping[str, str] | None) -> Self:
        """Make the same release with other statements of the publisher; costs no epsilon.

        Parameters
        ----------
        about : mapping of texts, optional
            As in `psd.build`; all statements, or None for none. They are part of the content, so
            the digest is another one.

        Raises
        ------
        ParameterError
            If a key does not exist, or a text is not valid.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.with_about({"title": "Visits", "licence": "CC-BY-4.0"}).about["title"]
        'Visits'
        """
        return type(self)(replace(self.record, about=about_from_mapping(about)))

    @classmethod
    def from_counts(
        cls,
        tree: Tree,
        counts: ArrayLike,
        epsilons: ArrayLike | str | float,
        *,
        domain: Domain,
        unit: PrivacyUnit | None = None,
    ) -> Release:
        """Make a release of given noisy counts, such as those of another program.

        The guarantee of this library covers releases of its curator alone. This one, its file,
        and what is printed or exported from it state that the counts were given.

        Parameters
        ----------
        tree : Tree
            Cells; its own counts are replaced.
        counts : array_like of int, shape (leaves,), (nodes,) or (rows, columns)
            Noisy counts of the leaves in the order of the tree, of every node, or of a grid, its
            rows from the south and its columns from the west.
        epsilons : decimal, or array_like of decimals of the same shape
            Epsilon of each count; 0 where a node is not measured.
        domain : Domain
            Domain of the tree.
        unit : PrivacyUnit, optional
            Unit of privacy of the given counts; a record by default.

        Raises
        ------
        ParameterError
            If the shapes do not fit.
        """
        unit = PrivacyUnit() if unit is None else unit
        check_instance("tree", tree, Tree, "psd.grid_tree(domain, 8)")
        check_instance("unit", unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user")')
        domain = public_domain(domain)
        return cls(record_from_counts(tree, counts, epsilons, domain=domain, unit=unit))

    def query(
        self,
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Estimate the counts of regions, with predicted errors.

        Parameters
        ----------
        regions : polygons or boxes
            Polygons: a GeoDataFrame or GeoSeries; or one or several shapely geometries, objects
            with ``__geo_interface__``, texts of WKT or EWKT, or GeoJSON as text or mapping. Their
            vertices are transformed to the CRS of the release, after lines are divided into pieces
            of at most 1/1000 of the longer side of the domain. Boxes: one ``(west, south, east,
            north)``, an array of shape (n, 4), or a DataFrame with these columns, in the CRS of the
            release.
        crs : any CRS that pyproj understands, optional
            CRS of polygons that do not state one; it is never guessed. Tables and EWKT state
            theirs, and GeoJSON is in EPSG:4326 unless its ``crs`` member names another.
            ``release.domain.crs`` is the CRS of the release.
        confidence : float
            Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).
        threshold : float or tuple of two floats
            Largest relative error that counts as ``reliable``; or the largest one of a good
            estimate, and that of a reliable one, such as ``(0.165, 0.333)``. By default an estimate
            is good up to 0.12, or up to the threshold if that is less.

        Returns
        -------
        DataFrame or GeoDataFrame
            For a table, the caller's columns and index, followed by the answer's columns; for a
            GeoSeries its geometry and index. The answer's columns, in the order of the regions, are
            ``id`` (not for a GeoDataFrame), ``estimate,
            perturbation_error, nonuniformity_error, error, lower, upper,
            relative_perturbation_error, relative_nonuniformity_error, relative_error, reliable,
            quality``. Errors are predicted standard deviations in records; where users are counted,
            all of these are in users. Relative errors are divided by the estimate, and infinite
            where it is 0. An answer is reliable if its relative error is at most the threshold and
            its interval lies above 0. Its quality is ``good``, ``use with care`` or, if it is not
            reliable, ``poor``.

        Raises
        ------
        ParameterError
            If a region is malformed, not valid, too large, or lies outside the domain.
        DomainError
            If a CRS is missing or unknown.
        """
        from psd.api._answer_tables import with_columns_of
        from psd.query import answer_regions

        answers = answer_regions(
            self.index, regions, crs=crs, confidence=confidence, threshold=threshold
        )
        return with_columns_of(regions, answers, crs)

    def estimate(self, boxes: Any) -> NDArray[np.float64]:
        """Estimate the counts of many boxes, without errors.

        Guarantees
        ----------
        - Equal to ``query(boxes)["estimate"]``, up to rounding of the release's total.

        Parameters
        ----------
        boxes : boxes or DataFrame of boxes
            As in `query`: one ``(west, south, east, north)``, an array of shape (n, 4), or a
            DataFrame with these columns, in the CRS of the release.

        Returns
        -------
        ndarray, shape (n,), float64
            Records; not negative.

        Raises
        ------
        ParameterError
            If a box is malformed, or lies outside the domain.

        Notes
        -----
        If the leaves form a table of rows and columns, an answer is four look-ups in a summed-area
        table [1]_; otherwise the tree is traversed as for `query`.

        References
        ----------
        .. [1] Crow. "Summed-Area Tables for Texture Mapping." SIGGRAPH 1984.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.estimate([(0, 0, 2, 1), (0.5, 0, 1, 2)]).round(1).tolist()
        [6.0, 2.5]
        """
        from psd.query.boxes import box_estimates

        return box_estimates(self.index, boxes)

    def joint(
        self,
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> Joint:
        """Answer regions together, with their covariance, for totals, differences and ratios.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`, at most 5,000.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        confidence : float
            Confidence level of each interval ``lower`` to ``upper``, and of all intervals
            ``joint_lower`` to ``joint_upper`` together, in (0, 1).
        threshold : float or tuple of two floats
            As in `query`.

        Returns
        -------
        Joint
            See `psd.query.joint.Joint`.

        Raises
        ------
        ParameterError
            If a region is malformed or lies outside the domain, or there are too many.
        DomainError
            If a CRS is missing.
        """
        from psd.api._answer_tables import with_columns_of
        from psd.query.joint import answer_jointly

        shapes = attach_crs(regions, crs, self.domain)
        joint = answer_jointly(self.index, shapes, confidence=confidence, threshold=threshold)
        return replace(joint, answers=with_columns_of(regions, joint.answers, crs))

    def explain(self, regions: Any, *, crs: Any = None) -> list[Explanation]:
        """Explain the error of each answer, and what would reduce it.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`; each takes as long as some thousand answers.
        crs : any CRS that pyproj understands, optional
            As in `query`.

        Returns
        -------
        list of Explanation
            In the order of the regions; see `psd.query.explain.Explanation`.

        Raises
        ------
        ParameterError
            If a region is malformed or lies outside the domain.
        DomainError
            If a CRS is missing.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [500, 100, 0, 200], 1.0, domain=domain)
        >>> [found] = release.explain([(0, 0, 1, 2)])
        >>> found.noise_share < 0.01
        True
        >>> found.remedies[["change", "error"]].round(1).values.tolist()[-1]
        ['cells half as wide at its edge', 1.9]
        """
        from psd.query.explain import explain_regions

        regions = attach_crs(regions, crs, self.domain)
        self.query(regions)  # refuses regions that cannot be answered
        return explain_regions(self.model, regions)

    def nested(
        self,
        regions: Any,
        *,
        parents: ArrayLike | None = None,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Count nested regions so that they add up, and the rings between them.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`, each inside the next; or a table with columns ``id`` and ``parent``,
            the id of the region that each lies in.
        parents : array_like of int, optional
            Index of the region that contains each region, from 0; -1 for a region without a parent.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        confidence, threshold : float
            As in `query`.

        Returns
        -------
        DataFrame or GeoDataFrame
            As from `query`, and ``ring, ring_error, ring_lower, ring_upper``: the count inside a
            region but outside the regions directly inside it. A region's estimate is the sum of its
            ring and of the regions inside it, and no ring is negative.

        Raises
        ------
        ParameterError
            If a region does not lie inside its parent, or regions of one parent overlap.
        """
        from psd.api._answer_tables import with_columns_of
        from psd.statistics.nested import answer_nested

        shapes = attach_crs(regions, crs, self.domain)
        answers = answer_nested(
            self.index, shapes, parents=parents, confidence=confidence, threshold=threshold
        )
        return with_columns_of(regions, answers, crs)

    def raster(self, columns: int, rows: int) -> Raster:
        """Counts, densities and errors of equal cells over the domain.

        Parameters
        ----------
        columns, rows : int
            Size of the raster, at most 16,777,216 cells in all.

        Returns
        -------
        Raster
            Arrays of shape (rows, columns), the first row in the north; the counts sum to
            `total`. See `psd.statistics.raster.Raster`.

        Raises
        ------
        ParameterError
            If the size is out of range.
        """
        from psd.statistics.raster import density_raster

        return density_raster(self.model, columns, rows)

    def top(
        self,
        k: int,
        *,
        size: tuple[int, int] | None = None,
        regions: Any = None,
        crs: Any = None,
        by: Literal["count", "density"] = "count",
        draws: int = 2000,
        seed: int = 0,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Rank the k cells with the most records, each with the probability that it is among them.

        Parameters
        ----------
        k : int
            Number of cells or regions to list, at most the number that is ranked.
        size : tuple of int, optional
            Columns and rows of a raster to rank; without it the leaves are ranked.
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes, optional
            Regions to rank instead, at most 5,000.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        by : {"count", "density"}
            What cells are ranked by; leaves differ in size.
        draws : int
            Number of draws of plausible true counts; a probability p has a standard error of about
            sqrt(p (1 - p) / draws).
        seed : int
            Seed of these draws, which do not protect data; the same seed gives the same table.

        Returns
        -------
        DataFrame or GeoDataFrame
            k rows by falling estimate: ``rank``, the sides of the cell or the caller's columns,
            ``estimate, error, density`` (of cells, per square kilometre or unit of the CRS) and
            ``probability``. Errors are assumed to be jointly normal, with the covariance of
            `joint`, and all true counts to be equally likely beforehand.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        from psd.statistics.top_cells import rank_top

        if regions is not None:
            regions = attach_crs(regions, crs, self.domain)
        return rank_top(self.index, k, size=size, regions=regions, by=by, draws=draws, seed=seed)

    def quantiles(
        self,
        classes: int = 5,
        *,
        size: tuple[int, int] = (64, 64),
        weight: Literal["area", "people"] = "area",
        confidence: float = 0.95,
        draws: int = 100,
        seed: int = 0,
    ) -> pandas.DataFrame:
        """Compute the class breaks of a heat map, with their errors.

        Parameters
        ----------
        classes : int
            Number of classes of equal weight, 2 to 100.
        size : tuple of int
            Columns and rows of the raster whose cells are classed.
        weight : {"area", "people"}
            Whether all classes have the same area, or the same number of records.
        confidence : float
            Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).
        draws, seed : int
            Number of simulated releases, with the published counts as truth, and the seed of their
            draws.

        Returns
        -------
        DataFrame
            One row for each of the classes - 1 breaks: ``share`` of the weight at or below it,
            ``density`` (per square kilometre, or square unit of a CRS of unknown scale), ``error,
            lower, upper``. The error is the root mean square difference between simulated and
            published breaks. A break below the noise of one cell has a larger error than stated.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        from psd.statistics.quantiles import class_breaks

        return class_breaks(
            self.model,
            classes,
            size=size,
            weight=weight,
            confidence=confidence,
            draws=draws,
            seed=seed,
        )

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
            quality`` and the box as geometry; density is records per square kilometre, or square
            unit of a CRS of unknown scale. Relative errors and quality are as in `query`, with
            intervals of 95 %. Its ``attrs`` are `metadata` without the digest, and its ``plot()``
            shows the density in classes.

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

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release file; a failure leaves no partial file.

        Raises
        ------
        ParameterError
            If the counts come from replayed answers or a seed, a value is not declared public, see
            `psd.release.allow_list`, or the name has the ending of another format.
        WriteError
            If the file exists or cannot be written.
        """
        check_release_name(path, "path")
        write_release(self.record, path, overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> Release:
        """Read a release file.

        Parameters
        ----------
        path : path-like
            File to read.
        max_nodes : int
            Largest number of nodes in the file. Memory and time of queries grow with it, so raise
            it only for files from trusted senders.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged or of an unknown version, or states more
            nodes.
        ParameterError
            If `max_nodes` is not a positive integer, or the release has regions, which `psd.load`
            reads.
        """
        record, digest = read_release(path, max_nodes=max_nodes)
        if isinstance(record.tree, RegionTree):
            raise ParameterError("path must have no regions; use psd.load", name="path")
        release = Release(record)
        vars(release)["digest"] = digest
        return release
