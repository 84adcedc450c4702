"""Methods of a release that answer queries and compute statistics. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd.api._release_facts import ReleaseFacts
from psd.errors import ParameterError
from psd.query.reliability import Threshold

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.api.answers import Answers
    from psd.statistics.raster import Raster

__all__ = ["ReleaseAnswers"]


class ReleaseAnswers(ReleaseFacts):
    """Queries and statistics; each is post-processing and costs no epsilon."""

    def query(
        self,
        areas: Any = None,
        *,
        when: str | None = None,
        each: Literal["slice"] | None = None,
        level: str | None = None,
        id: str | None = None,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> Answers:
        """Estimate the counts of areas, with predicted errors.

        Parameters
        ----------
        areas : boxes, polygons, names of regions, a table, or a file, optional
            Boxes: one ``(west, south, east, north)``, an array of shape (n, 4), or a DataFrame
            with these columns, in the CRS of the release. Polygons: a GeoDataFrame or GeoSeries;
            or one or several shapely geometries, objects with ``__geo_interface__``, texts of WKT
            or EWKT, or GeoJSON as text or mapping. Their vertices are transformed to the CRS of
            the release, after lines are divided into pieces of at most 1/1000 of the longer side
            of the domain. Names: the id of a region of `level`, or several; a list among them is
            the union of its regions. A table: a DataFrame with a column `id` of these names. A
            file: its path, of polygons, of boxes, or with `id` of such a table. A text is WKT or
            GeoJSON, else the id of a region, else a path. By default, all regions of `level`.
        when : str, optional
            Window of a release with time slices: a month, week, day or hour, or ``FIRST..LAST``
            with both ends, such as ``"2024-02..2024-04"``. It is made of whole slices. All of them
            by default.
        each : {"slice"}, optional
            Answer every slice, one after another, with a first column ``slice``. By default, the
            slices are answered together, with one answer for each area.
        level : str, optional
            Name of the level of regions by name; the lowest one by default.
        id : str, optional
            Column of a table with ids of regions; numbers without a fraction are read as integers.
        crs : any CRS that pyproj understands, optional
            CRS of polygons that do not state one. Tables and EWKT state theirs; GeoJSON is in
            EPSG:4326 unless its ``crs`` member names another; one shapely geometry is in the CRS
            of the release. It is never guessed otherwise.
        confidence : float
            Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).
        threshold : float or tuple of two floats
            Largest relative error that counts as ``reliable``; or the largest one of a good
            estimate, and that of a reliable one, such as ``(0.165, 0.333)``. By default an
            estimate is good up to 0.12, or up to the threshold if that is less.

        Returns
        -------
        psd.api.answers.Answers
            The table of answers, and what follows from it: totals, joint intervals, explanations.
            Of several slices together, the estimate is the sum of the unbiased estimates of the
            slices, cut at 0, so it is not the sum of the answers of each slice, which are cut one
            by one. The noise of different slices is independent: its variances are added. What is
            uneven inside a cell is alike in many slices: the standard deviations are added.

        Raises
        ------
        ParameterError
            If an area is malformed, not valid, too large, or lies outside the domain; a level or
            an id does not exist; `when` or `each` is given and the release has no time; a window
            is not made of slices; or slices that are running totals of a stream would be added.
        DomainError
            If a CRS is missing or unknown.
        InputDataError
            If a file cannot be read.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.query([(0, 0, 2, 1), (0, 0, 1, 2)])["estimate"].round(1).tolist()
        [6.0, 5.0]
        >>> release.query("POLYGON((0 0, 2 0, 2 2, 0 0))", crs="EPSG:3857")["reliable"].item()
        False
        """
        from psd.api.answers import answer_question
        from psd.query.areas import read_areas

        for name, value in (("when", when), ("each", each)):
            if value is not None:
                raise ParameterError(
                    f"{name} must be left out, got {str(value)[:80]!r}; the release has no time "
                    "slices",
                    name=name,
                )
        return answer_question(
            read_areas(areas, self.domain, self.tree, level=level, column=id, crs=crs),
            {"": self.index},
            each=None,
            guarantee=self.guarantee_text,
            confidence=confidence,
            threshold=threshold,
        )

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

    def nested(
        self,
        areas: Any,
        *,
        parents: ArrayLike | None = None,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Count nested regions so that they add up, and the rings between them.

        Parameters
        ----------
        areas : boxes or polygons
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
        from psd.query.areas import read_areas
        from psd.statistics.nested import answer_nested

        return answer_nested(
            self.index,
            read_areas(areas, self.domain, self.tree, crs=crs),
            parents=parents,
            confidence=confidence,
            threshold=threshold,
        )

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
            ``probability``. Errors are assumed to be jointly normal, with the covariance
            of `Answers.joint`, and all true counts to be equally likely beforehand.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        from psd.query.areas import read_areas
        from psd.statistics.top_cells import rank_top

        areas = None if regions is None else read_areas(regions, self.domain, self.tree, crs=crs)
        return rank_top(self.index, k, size=size, areas=areas, by=by, draws=draws, seed=seed)

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
