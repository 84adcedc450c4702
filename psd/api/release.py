"""`Release`: published counts with methods for questions, tables, maps and files. Public."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psd import _apps
from psd._util.instances import check_instance, shown
from psd.api.guesses import guessed_of_release
from psd.api.publication import Publication
from psd.errors import ParameterError
from psd.query.answer_table import Threshold
from psd.query.index import QueryIndex
from psd.release.cube import ALL_TIME, CubeRecord, WindowRecord, all_time
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord
from psd.space.time_slices import TimeWindow

if TYPE_CHECKING:
    import geopandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psd.api.answers import Answers

__all__ = ["Release", "load"]


@dataclass(frozen=True, eq=False, repr=False)
class Release(Publication):
    """A differentially private release, ready to be saved, queried and exported.

    It may have time slices, each with counts of its own, under a single guarantee; and regions that
    are counted by name, on several levels, with cells inside the lowest ones.

    Guarantees
    ----------
    - It holds the answers of the curator, public parameters, and nothing else.
    - Every method is post-processing: it reads the release alone and costs no epsilon.
    - `epsilon` holds for all time slices together. Every slice of the list is there, even if it has
      no record.
    - In the estimates, the parts of each region sum to it, on every level.

    Parameters
    ----------
    record : ReleaseRecord or SeriesRecord
        The published fields, or those of time slices.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is meant by old names, and those of GeoPandas; see `psd.api.guesses`."""
            return guessed_of_release(self, name)

    def query(
        self,
        areas: Any = None,
        *,
        when: Any = None,
        category: str | Sequence[str] | None = None,
        each: Literal["slice", "category"] | Sequence[str] | None = None,
        level: str | None = None,
        id: str | None = None,
        crs: Any = None,
        outside: Literal["refuse", "skip", "zero"] = "refuse",
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
        errors: bool = True,
        top: int | None = None,
        by: Literal["count", "density"] | None = None,
        size: tuple[int, int] | None = None,
        quantiles: bool = False,
        classes: int | None = None,
        weight: Literal["area", "people"] | None = None,
        draws: int | None = None,
        seed: int | None = None,
        difference: Release | str | os.PathLike[str] | None = None,
        ratio: bool = False,
        mean: str | Sequence[str] | None = None,
        sum: str | Sequence[str] | None = None,
    ) -> Answers:
        """Estimate the counts of areas, with predicted errors; or ranks, class breaks, differences.

        Arguments have the names of the options of ``psd query``.

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
        when : str, date, psd.space.time_slices.TimeWindow, or list of these, optional
            Window of a release with time slices, such as ``"2024-02..2024-04"`` or ``"weekdays
            07-09"``, see `psd.TimeSlices.window`. Its slices are answered as one. A list has
            answers for each of its windows, with a column ``when``; they may overlap. All time by
            default.
        category : str or sequence of str, optional
            Label of a release with a category, such as ``"work"`` or ``"purpose=work"``, with all
            labels below it. A list has answers for each of its labels, with a column ``category``.
            All categories by default.
        each : {"slice", "category"} or list of both, optional
            Answer every slice of each window, with a column ``slice``, or every category of each
            label, with a column ``category``.
        level : str, optional
            Name of the level of regions by name; the lowest one by default.
        id : str, optional
            Column of a table with ids of regions; numbers without a fraction are read as integers.
        crs : any CRS that pyproj understands, optional
            CRS of polygons that do not state one. Tables and EWKT state theirs; GeoJSON is in
            EPSG:4326 unless its ``crs`` member names another; one shapely geometry is in the CRS
            of the release. It is never guessed otherwise.
        outside : {"refuse", "skip", "zero"}
            Whether boxes and polygons outside the bounds, where nothing was counted, are refused,
            left out, or answered by 0 without an error.
        confidence : float
            Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).
        threshold : float or tuple of two floats
            Largest relative error that counts as ``reliable``; or the largest one of a good
            estimate, and that of a reliable one, such as ``(0.165, 0.333)``. By default an
            estimate is good up to 0.12, or up to the threshold if that is less.
        errors : bool
            Whether errors are predicted. Without them, boxes alone are answered, by ``estimate``.
        top : int, optional
            Rank the cells with the most records, or the given areas or regions of `level`, at most
            5,000, and list this number of them, each with the probability that it is among them.
        by : {"count", "density"}, optional
            What cells are ranked by, as leaves differ in size; count by default.
        size : tuple of int, optional
            Columns and rows of a raster whose cells are ranked in place of the leaves, or classed
            (64 x 64 by default).
        quantiles : bool
            Compute the class breaks of density for a heat map.
        classes : int, optional
            Number of classes of equal weight, 2 to 100; 5 by default.
        weight : {"area", "people"}, optional
            Whether all classes have the same area, the default, or the same number of records.
        draws, seed : int, optional
            Number of draws of plausible true counts (2000 by default, of which a probability p has
            a standard error of about sqrt(p (1 - p) / draws)), or of simulated releases (100), and
            their seed, 0 by default. They do not protect data; the same seed gives the same table.
        difference : Release or path-like, optional
            A release of the same domain with independent noise, whose counts are subtracted. A cube
            is asked in the window of `when` and `category` too, ``cube[window, label]`` as it is.
            Regions by name are found in it by their ids, and must have the same outlines there.
        ratio : bool
            Divide by the counts of `difference` instead.
        mean, sum : str or sequence of str, optional
            Values of the release, such as ``"fare"``, whose means or sums are answered beside the
            counts, as ``mean_fare`` and ``sum_fare`` with ``_perturbation_error,
            _nonuniformity_error, _error, _lower, _upper``. A value beyond its bounds counted as the
            nearest bound. The interval of a mean is from bound to bound where the noise allows
            that there is no record.

        Returns
        -------
        psd.api.answers.Answers
            The table of answers, and what follows from it: totals, joint intervals, explanations.
            Of several slices as one, the estimate is the sum of the unbiased estimates of the
            slices, cut at 0, so it is not the sum of the answers of each slice, which are cut one
            by one. The noise of different slices is independent: its variances are added. What is
            uneven inside a cell is alike in many slices: the standard deviations are added.

            With `top`, rows by falling estimate: ``rank``, the sides of the cell or the caller's
            columns, ``estimate, error, density`` (of cells, per square kilometre of ground) and
            ``probability``. Errors are assumed to be jointly normal, with the covariance of
            `Answers.joint`, and all true counts to be equally likely beforehand.

            With `quantiles`, one row for each break: ``share`` of the weight at or below it,
            ``density`` (per square kilometre of ground, or square unit of a local CRS), ``error,
            lower, upper``. The error is the root mean square difference between simulated and
            published breaks. A break below the noise of one cell has a larger error than stated.

            With `difference`, the caller's columns or ``id``, and ``first, second, difference`` (or
            ``ratio``), ``perturbation_error, nonuniformity_error, error, lower, upper``. Variances
            of the noise add, and so do those of uneven cells, which overstates the error where
            points lie unevenly in the same way in both. Errors of a ratio are those of the delta
            method; its intervals are Fieller's, without an upper end if the second count may be 0.
            A person who is counted in both has spent the epsilons, deltas and rhos of both.

        Raises
        ------
        ParameterError
            If an area is malformed, not valid, too large, or lies outside the domain; a level or
            an id does not exist; `when`, `category` or `each` is given and the release has none; a
            window is not made of slices; slices that are running totals of a stream would be added;
            or an argument does not go with the others, or is out of range.
        DomainError
            If a CRS is missing or unknown, or a difference is of another domain.
        InputDataError
            If a file cannot be read.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.query([(0, 0, 2, 1), (0, 0, 1, 2)])["estimate"].round(1).tolist()
        [6.0, 5.0]
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> release = psd.Release.from_slices(months, releases)
        >>> answers = release.query([(0, 0, 2, 1)], when="2024-01..2024-02")
        >>> answers.table[["estimate", "perturbation_error"]].round(2).values.tolist()
        [[14.0, 2.71]]
        >>> release.query([(0, 0, 2, 1)], when="2024-02", difference=release["2024-01"]).table[
        ...     ["difference", "error"]
        ... ].round(1).values.tolist()
        [[2.0, 2.7]]
        """
        from psd.api.questions import Statistic, answer, asked_values
        from psd.query.areas import read_areas

        if isinstance(difference, str | os.PathLike):
            difference = load(difference)
        if difference is not None:
            check_instance("difference", difference, Release, 'psd.load("r.psd.parquet")')
        statistic = Statistic(
            top=top,
            by=by,
            size=size,
            quantiles=quantiles,
            classes=classes,
            weight=weight,
            draws=draws,
            seed=seed,
            difference=difference,
            ratio=ratio,
        )
        asked, first = None, self._first
        values = asked_values(first, mean=mean, sum=sum)
        if statistic.check_others(
            mean=mean,
            sum=sum,
            has_areas=areas is not None,
            has_levels=bool(self.levels),
            each=each,
            level=level,
            id=id,
            crs=crs,
            errors=None if errors else errors,
            outside=None if outside == "refuse" else outside,
        ):
            asked = read_areas(
                areas, first.domain, first.tree, level=level, column=id, crs=crs, outside=outside
            )
        return answer(
            asked,
            self._asked_time(when, each, of=category, values=len({number for _, number in values})),
            statistic,
            errors=errors,
            guarantee=self.record.guarantee_text,
            confidence=confidence,
            threshold=threshold,
            values=values,
            window=(when, category),
        )

    # --- tables, maps and files ---------------------------------------------------------------

    def to_geopandas(
        self,
        cells: Literal["leaves", "all"] = "leaves",
        *,
        level: int | str | None = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> geopandas.GeoDataFrame:
        """Cells, or regions of a level, as polygons with estimates, in the CRS of the release.

        Parameters
        ----------
        cells : {"leaves", "all"}
            The finest cells, or the nodes of every level.
        level : int or str, optional
            Coarser cells that tile the domain: the nodes of this level, 0 for the domain itself,
            and the leaves above it. With regions, the name of a level; the lowest one by default.
        confidence : float
            Of the intervals of regions, as in `query`; cells have none.
        threshold : float or tuple of two floats
            As in `query`.

        Returns
        -------
        GeoDataFrame
            ``cell, level, estimate, perturbation_error, density, relative_error, reliable,
            quality``, of each value means and sums, and the box as geometry; density is records
            per square kilometre of ground, or square unit of a local CRS. Relative errors and
            quality are as in `query`, with intervals of 95 %. Regions have the columns of
            `Answers.table`, and their density and polygons. Its ``attrs`` are `metadata` without
            the digest, its ``plot()`` shows the density in classes, and its ``explore()`` is an
            interactive map.

        Raises
        ------
        ParameterError
            If the release has no such level, or an argument is out of range.
        """
        from psd.export._cells import CellTable, cells_table, named_regions_table
        from psd.export._formats import release_metadata

        if self.levels:
            if cells != "leaves":
                raise ParameterError(
                    f"cells must be left out with regions, got {cells!r}; level names a level",
                    name="cells",
                )
            table = named_regions_table(
                self.index, level, confidence=confidence, threshold=threshold
            )
        else:
            table = cells_table(self.index.fit, cells, level=level, threshold=threshold)
        table.attrs = release_metadata(self._one())
        return CellTable.of(table, self._one())

    def to_points(self, n: int | None = None, *, seed: int | None = None) -> geopandas.GeoDataFrame:
        """Draw synthetic points, as many in each cell as its estimate rounded.

        Points are no people and no records. They carry the error of the release and an error of
        drawing; errors and intervals come from `query` alone.

        Guarantees
        ----------
        - They are made of the release and a seed, and cost no epsilon.
        - Without `n`, the number in each cell of each level, in each region and in each slice is
          the estimate rounded down or up: the integers of the estimate ``"integer"`` where the
          release has medians. Negative estimates count as 0, by least squares.
        - Inside a leaf they are spread by the density by which queries cut leaves, and lie inside
          regions and inside the raster of a boundary.

        Parameters
        ----------
        n : int, optional
            Number of points of all slices together, in the proportions of the estimates. By default
            the integers themselves. At most 10,000,000 here; `export` writes more.
        seed : int, optional
            The same seed gives the same points, on every machine with the same release. By default
            a new one of the system.

        Returns
        -------
        GeoDataFrame
            Points in the CRS of the release, on its values where it has a coordinate resolution. A
            column ``slice`` if the release has time slices, and one with ids for each level of
            regions, named by the level. Rows are in the order of slices and cells. Its ``attrs``
            are `metadata`, and what points are.

        Raises
        ------
        ParameterError
            If `n` or `seed` is out of range, the points do not fit into memory, or slices are
            running totals of a stream.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> points = release.to_points(seed=1)
        >>> len(points), int((points.geometry.x < 1).sum())
        (8, 5)
        """
        import pandas as pd

        from psd.export._views import MOST_HELD

        tables = list(self._point_tables(n, seed, most=MOST_HELD))
        points = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
        points.attrs = tables[0].attrs
        return points

    def _point_tables(
        self, n: int | None, seed: int | None, *, most: int
    ) -> Iterator[geopandas.GeoDataFrame]:
        """Tables of synthetic points; see `psd.export._views.point_tables`."""
        from psd.export._views import point_tables

        if isinstance(self.record, SeriesRecord) and self.record.are_running_totals:
            name = self.record.slices.names[0]
            raise ParameterError(
                "release must be one slice to draw points of running totals, each of which counts "
                f"the slices before it too; take one, such as release[{name!r}]"
            )
        if isinstance(self.record, CubeRecord | WindowRecord):
            return point_tables(self._window_counts(), n, seed, most=most, metadata=self.metadata)
        slices = self._asked_time(None, None if self.slices is None else "slice").slices
        choice = self._first.post_processing
        if choice.estimate == "signed":  # no cell has a negative number of points
            other = replace(choice, estimate="least-squares")
            records = {k: replace(each.record, post_processing=other) for k, each in slices.items()}
            slices = {name: QueryIndex(record=record) for name, record in records.items()}
        return point_tables(slices, n, seed, most=most, metadata=self.metadata)

    def _window_counts(self) -> Mapping[str, QueryIndex]:
        """Counts of the cells of each slice of a cube by their names, or of a window of one."""
        from psd.query.cube_views import WindowCounts

        if isinstance(self.record, WindowRecord):
            return WindowCounts(self._cube, {"": self.record.window})
        assert isinstance(self.record, CubeRecord)
        if self.slices is None:
            return WindowCounts(self._cube, {"": all_time(self.record)})
        windows = {
            name: self.record.cells_in(TimeWindow(name=name, numbers=np.array([number])))
            for number, name in enumerate(self.slices)
        }
        return WindowCounts(self._cube, windows)

    def to_xarray(
        self,
        columns: int = 256,
        rows: int = 256,
        *,
        when: Any = None,
        category: str | Sequence[str] | None = None,
        each: Literal["slice", "category"] | Sequence[str] | None = None,
    ) -> xarray.Dataset:
        """Counts, densities and errors of equal cells as a dataset of xarray.

        Parameters
        ----------
        columns, rows : int
            Size of the raster, at most 16,777,216 cells in all.
        when : str, psd.space.time_slices.TimeWindow, or list of these, optional
            Window of a cube, as in `query`. A list has a dimension ``when`` with their names.
        category : str or sequence of str, optional
            Label of a cube, as in `query`. A list has a dimension ``category``.
        each : {"slice", "category"} or list of both, optional
            Dimensions ``time``, the slices of the window or of a series, and ``category``, the
            categories of the label.

        Returns
        -------
        Dataset
            ``count, density, perturbation_error, nonuniformity_error, error`` over the centres
            ``y, x``, the first row in the north, with units; of values also means and sums, with
            the names of the columns of `query` (quality as 1 good, 2 use with care, 3 poor).
            Intervals are of 95 %. The coordinate ``spatial_ref`` has the
            CRS as rioxarray reads it (``dataset.rio.crs``); the attributes are `metadata`. The
            coordinates ``time`` and ``time_end`` are the beginnings and ends of slices as
            datetime64, on the clock of their attribute ``time_zone``; ``slice`` has their names.

        Raises
        ------
        ParameterError
            If the size is out of range, or `when`, `category` or `each` does not fit.
        MissingExtraError
            If xarray is not installed.
        """
        from psd.export._views import to_xarray

        asked = self._asked_time(when, each, of=category)
        names, first = asked.labels[0], next(self._views_of(asked)).record
        # What all of it shows, by its names in metadata.
        common = dict(first.shown) if isinstance(first, WindowRecord) else {}
        if "slice" in names and common:
            common["when"] = asked.texts[0].get("when", ALL_TIME)
        common = {name: text for name, text in common.items() if name not in names}
        return to_xarray(
            (view.index.fit for view in self._views_of(asked)),
            asked.labels,
            columns,
            rows,
            slices=self.slices,
            metadata={**self.metadata, **common},
        )

    def plot(
        self,
        kind: str = "density",
        *,
        slices: Sequence[str] | None = None,
        category: str | Sequence[str] | None = None,
        each: Literal["slice", "category"] | Sequence[str] | None = None,
        level: int | str | None = None,
        outline: geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
        threshold: Threshold = 0.3,
        ax: Axes | None = None,
        cmap: Any = None,
    ) -> Axes | Figure:
        """Draw a map of the cells with matplotlib: classes, colour bar, scale bar and guarantee.

        Time slices are drawn as small maps with the same classes, and one key for all. A cube is
        drawn in all time and all categories, or in small maps of some windows and categories.

        Parameters
        ----------
        kind : str
            What is shown, a column of `to_geopandas`: ``density``, ``estimate``,
            ``relative_error``, ``reliable``, ``quality`` or a mean, such as ``mean_fare``, whose
            colours are fainter by its quality; poor means are hatched.
        slices : sequence of str, optional
            Names of the time slices to draw, at most 48; all by default. Of a cube windows, as in
            `query`; all time by default.
        category : str or sequence of str, optional
            Labels of a cube, as in `query`; a list has a map of each.
        each : {"slice", "category"} or list of both, optional
            Draw each slice of the windows of a cube, or each category of the labels; at most 48.
        level : int or str, optional
            As in `to_geopandas`.
        outline : GeoDataFrame or GeoSeries, optional
            Polygons whose outlines are drawn over the cells.
        threshold : float or tuple of two floats
            As in `query`.
        ax : matplotlib Axes, optional
            Where to draw a release without time; by default a new figure.
        cmap : str or matplotlib Colormap, optional
            Colours of the classes.

        Returns
        -------
        matplotlib Axes
            With time slices, a Figure.

        Raises
        ------
        ParameterError
            If an argument is out of range, there is no such slice, or too many are drawn together.
        MissingExtraError
            If matplotlib is not installed.
        """
        from psd.export._maps import MOST_MAPS, draw_release, draw_series, more_fonts

        drawn: dict[str, Any] = {"outline": outline, "threshold": threshold, "cmap": cmap}
        views: Iterable[Release] = [self]
        titles, common, columns = [""], list[str](), 0
        if isinstance(self.record, CubeRecord):
            asked = self._asked_time(slices, each, of=category)
            titles = [", ".join(label.values()) for label in asked.labels]
            views, axis = self._views_of(asked), self.record.category
            common = [
                text if axis is None or name != "category" else f"{axis.column}={text}"
                for name, text in asked.texts[0].items()
                if name not in asked.labels[0]
            ]
            if len(asked.labels[0]) == 2:
                columns = len({[*label.values()][-1] for label in asked.labels})
        else:
            for name, value in (("category", category), ("each", each)):
                if value is not None:
                    raise ParameterError(
                        f"{name} must be left out, got {shown(value)}; the release is no cube",
                        name=name,
                    )
            if slices is not None or isinstance(self.record, SeriesRecord):
                titles = list(self._time() if slices is None else slices)
                views = (self[name] for name in titles)
        if titles == [""]:
            [view] = views
            cells = view.to_geopandas(level=level, threshold=threshold)
            with more_fonts():
                return draw_release(view.index.record, cells, kind, axes=ax, **drawn)
        if ax is not None:
            raise ParameterError("ax must be left out with time slices, each of which has one")
        if len(titles) > MOST_MAPS:
            name, fewer = "slices", "draw one of them, or fewer"
            if isinstance(self.record, CubeRecord):
                name = "each" if each is not None else "slices"
                fewer = "choose a shorter window, fewer windows or fewer labels"
            raise ParameterError(
                f"{name} must give at most {MOST_MAPS} maps in one picture, got {len(titles):,}; "
                + fewer,
                name=name,
            )
        tables = {
            title: view.to_geopandas(level=level, threshold=threshold)
            for title, view in zip(titles, views, strict=True)
        }
        guarantee = self.record.guarantee_text
        how = {**drawn, "common": common, "columns": columns, "guarantee": guarantee}
        with more_fonts():
            return draw_series(self._first, tables, kind, **how)

    def map(
        self,
        path: str | os.PathLike[str],
        *,
        regions: geopandas.GeoDataFrame | None = None,
        title: str | None = None,
        level: int | None = None,
        threshold: Threshold = 0.3,
        when: Any = None,
        category: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a page with a map that answers drawn areas, as `psd map` does.

        Guarantees
        ----------
        - The page is one file, made of the release and of public regions alone. It loads nothing.

        Parameters
        ----------
        path : path-like
            Ends in ``.html``.
        regions : GeoDataFrame, optional
            Public polygons to choose from, with a CRS; ``id`` and ``name`` are read.
        title : str, optional
            By default that of the release.
        level : int, optional
            Show cells down to this level alone; drawn areas then have no answer.
        threshold : float or tuple of two floats
            As in `query`.
        when : str, psd.space.time_slices.TimeWindow, or list of these, optional
            Windows of a cube, the steps of the slider; by default all time, and each slice. Other
            spans of time, and categories, are chosen on the page.
        category : str, optional
            Label of a cube that is shown first, as in `query`; all categories by default.
        overwrite : bool
            Whether an existing file is replaced.

        Raises
        ------
        ParameterError
            If the release has too many cells, or an argument does not fit.
        WriteError
            If the file exists or cannot be written.
        MissingExtraError
            If the app `web` is not installed.
        """
        pages = _apps.load_app(_apps.METHODS["map"], what="Release.map")
        how = {"title": title, "level": level, "threshold": threshold}
        page: str = pages.map_page(self, regions=regions, **how, when=when, category=category)
        _write_page(path, page, overwrite=overwrite)

    def sheet(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the sheet of method: what is published, how, and how exactly, for readers.

        Guarantees
        ----------
        - The page is one file, made of the release alone. It loads nothing.

        Parameters
        ----------
        path : path-like
            Ends in ``.html``.
        overwrite : bool
            Whether an existing file is replaced.

        Raises
        ------
        ParameterError
            If the name has another ending.
        WriteError
            If the file exists or cannot be written.
        MissingExtraError
            If matplotlib or the app `web` is not installed.
        """
        pages = _apps.load_app(_apps.METHODS["sheet"], what="Release.sheet")
        _write_page(path, pages.methodology_page(self), overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Small picture and the guarantee, in notebooks."""
        from html import escape

        from psd.export._views import html_of

        if not isinstance(self.record, ReleaseRecord):
            return f"<p>{escape(repr(self))}<br>{escape(self.record.guarantee_text)}</p>"
        return html_of(self.index.fit, picture=not self.levels)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Stream the leaves to libraries that read Arrow, with their boxes as WKB (GeoArrow)."""
        table = self.to_geopandas().to_arrow(index=False, geometry_encoding="WKB")
        return table.__arrow_c_stream__(requested_schema)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        when: Any = None,
        category: str | None = None,
        each: Literal["slice", "category"] | Sequence[str] | None = None,
        cells: Literal["leaves", "all"] = "leaves",
        level: int | str | None = None,
        size: tuple[int, int] | None = None,
        band: str | None = None,
        crs: Any = None,
        unreliable: Literal["keep", "mark", "drop"] = "keep",
        threshold: Threshold = 0.3,
        table: str | None = None,
        points: bool = False,
        n: int | None = None,
        seed: int | None = None,
        overwrite: bool = False,
    ) -> int:
        """Write the cells, or the regions of a level, for a GIS program, in the format of the name.

        With `points`, write synthetic points, those of `to_points`, batch by batch.

        Parameters
        ----------
        path : path-like
            Ends in ``.gpkg``, ``.parquet``, ``.fgb``, ``.geojson``, ``.csv``, ``.xlsx`` or
            ``.pmtiles``, or for a raster in ``.tif`` or ``.npy``; or the address
            ``postgresql://...`` of a PostGIS database. Regions have neither tiles nor a database.
        when : str, date or psd.space.time_slices.TimeWindow, optional
            Window of a cube, as in `query`; all time by default.
        category : str, optional
            Label of a cube, as in `query`; all categories by default.
        each : {"slice", "category"} or list of both, optional
            Write a row of each cell for each slice of the window, with a column ``slice``, or for
            each category of the label, with a column ``category``; at most 1,000,000 rows.
        cells : {"leaves", "all"}
            As in `to_geopandas`; rasters are made of the leaves.
        level : int or str, optional
            As in `to_geopandas`; not for rasters.
        size : tuple of int, optional
            Columns and rows of a raster; 256 x 256 by default.
        band : str, optional
            The only band of a GeoTIFF: ``count``, ``density``, ``error``, ``classes`` or a mean,
            such as ``mean_fare``; by default the first three, and means and sums of values with
            their errors and intervals. ``classes`` are those of the density, with a colour table,
            so that programs show them as a map.
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
        points : bool
            Write points, of all slices, in place of cells. The path then ends in ``.parquet``,
            ``.gpkg``, ``.fgb``, ``.geojson`` or ``.csv``, which has the columns ``x`` and ``y`` in
            any CRS and no place for metadata.
        n, seed : int, optional
            As in `to_points`; at most 1,000,000,000 points.
        overwrite : bool
            Whether an existing file or table is replaced.

        Returns
        -------
        int
            Number of cells or regions left out by ``drop``; of a raster, its cells without value.
            With `points`, their number.

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
        from psd.export import export_release, find_format, is_raster
        from psd.export._cells import export_regions
        from psd.export._release import check_parts
        from psd.release.schema import check_shown

        view = self if when is None and category is None else self[when, category]
        if each is not None and not isinstance(self.record, CubeRecord):
            raise ParameterError(
                f"each must be left out, got {shown(each)}; the release is no cube", name="each"
            )
        if points:
            from psd.export._views import MOST_WRITTEN, export_points

            of_cells: dict[str, object] = {"cells": cells, "level": level, "size": size}
            of_cells |= {"band": band, "table": table, "each": each}
            of_cells |= {"unreliable": unreliable, "threshold": threshold}
            usual = {"cells": "leaves", "unreliable": "keep", "threshold": 0.3}
            for name, value in of_cells.items():
                if value != usual.get(name):
                    raise ParameterError(
                        f"{name} must be left out with points, got {value!r}; they are drawn of "
                        "all cells"
                    )
            if view is not self:
                return view.export(path, points=True, n=n, seed=seed, crs=crs, overwrite=overwrite)
            check_shown(self.record)
            tables = self._point_tables(n, seed, most=MOST_WRITTEN)
            return export_points(tables, path, crs=crs, overwrite=overwrite)
        for name, value in (("n", n), ("seed", seed)):
            if value is not None:
                raise ParameterError(f"{name} must be left out without points, got {value!r}")
        record = view.record if isinstance(view.record, WindowRecord) else self._one()
        check_shown(record)
        writer = find_format(path)
        labels: Sequence[Mapping[str, str]] = [{}]
        views: Iterator[Release] = iter([view])
        if each is not None:
            asked = self._asked_time(when, each, of=category)
            labels, views = asked.labels, self._views_of(asked)
        if self.levels and not is_raster(writer):
            for name, value in (("size", size), ("band", band)):
                if value is not None:
                    raise ParameterError(
                        f"{name} must be left out unless output is a raster, got {value!r}; the "
                        "format is a table of regions"
                    )
            import pandas

            regions: list[geopandas.GeoDataFrame] = []
            for label, each_view in zip(labels, views, strict=True):
                part = each_view.to_geopandas(cells, level=level, threshold=threshold)
                if each is not None and not regions:
                    check_parts(writer, len(labels) * len(part))
                for place, (name, text) in enumerate(label.items()):
                    part.insert(place, name, text)
                regions.append(part)
            return export_regions(
                record,
                regions[0] if len(regions) == 1 else pandas.concat(regions, ignore_index=True),
                path,
                metadata=view.metadata,
                crs=crs,
                unreliable=unreliable,
                threshold=threshold,
                overwrite=overwrite,
            )
        if self.levels and level is not None:
            raise ParameterError(
                f"level must be left out if output is a raster, got {level!r}; size sets its cells"
            )
        parts: list[tuple[Mapping[str, str], Any]] = []
        if each is not None:
            parts = list(zip(labels, (each_view.record for each_view in views), strict=True))
        return export_release(
            record,
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
            parts=parts,
            overwrite=overwrite,
        )


load = Release.load


def _write_page(path: str | os.PathLike[str], page: str, *, overwrite: bool) -> None:
    """Write a page whose name says that it is one."""
    from psd._util.atomic_write import write_file

    if not os.fspath(path).lower().endswith((".html", ".htm")):
        raise ParameterError(f"path must end in .html, got {os.fspath(path)}; it is a page")
    write_file(path, page.encode("utf-8"), overwrite=overwrite)
