"""Methods of a release that answer queries and compute statistics. Public."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd.api._release_facts import ReleaseFacts
from psd.query.reliability import Threshold
from psd.space.regions import attach_crs

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.query.explain import Explanation
    from psd.query.joint import Joint
    from psd.statistics.raster import Raster

__all__ = ["ReleaseAnswers"]


class ReleaseAnswers(ReleaseFacts):
    """Queries and statistics; each is post-processing and costs no epsilon."""

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
            where it is 0 and the error is not. An answer is reliable if its relative error is at
            most the threshold and its interval lies above 0. Its quality is ``good``, ``use with
            care`` or, if it is not reliable, ``poor``.

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
        ['cells half as wide at its edge', 2.0]
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
            ``estimate, error, density`` (of cells, per square kilometre of ground) and
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
            ``density`` (per square kilometre of ground, or square unit of a local CRS), ``error,
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
