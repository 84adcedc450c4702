"""`Release`: published counts with methods for queries, statistics and files. Public."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd import _apps
from psd._util.file_endings import check_release_name
from psd._util.instances import check_instance
from psd.api.guesses import guessed_of_release
from psd.errors import InternalError, ParameterError
from psd.estimation.fit_cache import fit_cache
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.query.index import QueryIndex
from psd.query.reliability import Threshold
from psd.release import file, series_file
from psd.release.about import about_from_mapping
from psd.release.counts import record_from_counts
from psd.release.node_limit import MAX_NODES
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord, guarantee_note
from psd.release.series import SeriesRecord, receipt_of
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain, public_domain
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import folium
    import geopandas
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pyproj import CRS

    from psd.api.answers import Answers
    from psd.estimation.least_squares import Estimates
    from psd.query.areas import Areas
    from psd.statistics.raster import Raster

__all__ = ["Release", "load"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
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
    note_saved : callable, optional
        Called with the path of a saved file: the ledger that paid notes it.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """

    record: ReleaseRecord | SeriesRecord
    note_saved: Callable[[str | os.PathLike[str]], None] | None = None

    def __repr__(self) -> str:
        size = (
            f"{len(self._first.tree):,} cells"
            if self.slices is None
            else f"{len(self.slices)} slices by {self.slices.by}"
        )
        facts = [self.method, size] if self.slices is None else [size, self.method]
        return (
            f"<Release: {', '.join(facts)}, {self.record.loss_text} per {self.unit.kind}"
            f"{guarantee_note(self._first.source)}>"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is meant by names of GeoPandas; see `psd.api.guesses`."""
            return guessed_of_release(self, name)

    # --- made, saved and read ---------------------------------------------------------------

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

    @classmethod
    def from_slices(cls, slices: TimeSlices, releases: Sequence[Release]) -> Release:
        """Join one release for each time slice.

        Guarantees
        ----------
        - `epsilon` is the sum over all releases, since they may count the same records. A release
          under the epsilon of one slice is built from records: ``psd.build(..., slices=...)``.

        Raises
        ------
        ParameterError
            If the releases do not belong together, or one of them has slices or a delta, or states
            a charge of a ledger: they would state more epsilon together than that charge.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> release = psd.Release.from_slices(months, releases)
        >>> answers = release.query([(0, 0, 2, 1)], each="slice")
        >>> answers.table[["slice", "estimate"]].round(1).values.tolist()
        [['2024-01', 6.0], ['2024-02', 8.0]]
        """
        records = tuple(release.index.record for release in releases)
        if any(receipt_of(record) is not None for record in records):
            raise ParameterError(
                "releases must not state a charge of a ledger, since their series would state more "
                "epsilon than the charge; save each as a file of its own, or build the series with "
                "slices="
            )
        if any(record.rho is not None for record in records):
            raise ParameterError(
                "releases must have losses in epsilon to be joined, got one with a delta; build a "
                "series with slices=, whose rho is that of all slices together"
            )
        return cls(SeriesRecord(slices=slices, releases=records, scope="slice"))

    @staticmethod
    def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> Release:
        """Read a release file, with time slices, with regions, or without.

        Parameters
        ----------
        path : path-like
            File to read.
        max_nodes : int
            Largest number of nodes in the file, in all slices together; 2^22 by default. Memory and
            time of queries grow with it, so raise it only for files from trusted senders.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged or of an unknown version, or states more
            nodes.
        ParameterError
            If `max_nodes` is not a positive integer.

        Examples
        --------
        >>> import tempfile, psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> release = psd.Release.from_counts(psd.grid_tree(domain, 1), [5], 1, domain=domain)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.save(folder + "/r.psd.parquet")
        ...     len(psd.load(folder + "/r.psd.parquet").tree)
        2
        """
        record: ReleaseRecord | SeriesRecord
        if os.path.isfile(path) and series_file.is_series(path):  # a pipe may not end
            record, digest = series_file.read_series(path, max_nodes=max_nodes)
        else:
            record, digest = file.read_release(path, max_nodes=max_nodes)
        release = Release(record)
        vars(release)["digest"] = digest
        return release

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
        if isinstance(self.record, SeriesRecord):
            series_file.write_series(self.record, path, overwrite=overwrite)
        else:
            file.write_release(self.record, path, overwrite=overwrite)
        if self.note_saved is not None:
            self.note_saved(path)

    def with_post_processing(self, post_processing: PostProcessing) -> Self:
        """Make the same release with another post-processing; costs no epsilon."""
        return self._changed(post_processing=post_processing)

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
        return self._changed(about=about_from_mapping(about))

    def _changed(self, **fields: Any) -> Self:
        """The same release, or the same slices, with other fields."""
        if isinstance(self.record, SeriesRecord):
            records = tuple(replace(each, **fields) for each in self.record.releases)
            return type(self)(replace(self.record, releases=records))
        return type(self)(replace(self.record, **fields))

    def with_cache(self) -> Self:
        """Return the release with a fit that is kept in the user's cache folder, if it is large.

        Another process then does not compute it again. Answers are the same, to the bit, and the
        folder has public numbers only; see `psd.estimation.fit_cache`. The command line does so.
        With time slices nothing is kept.
        """
        if isinstance(self.record, SeriesRecord):
            return self
        release = type(self)(self.record)
        vars(release)["digest"] = self.digest
        cache = fit_cache(self.record, self.digest)
        vars(release)["index"] = QueryIndex(record=self.record, cache=cache)
        return release

    # --- time -------------------------------------------------------------------------------

    @property
    def slices(self) -> TimeSlices | None:
        """Time slices, in the order of time; None for a release without time."""
        return self.record.slices if isinstance(self.record, SeriesRecord) else None

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """A release of each time slice; without time, the release itself."""
        if isinstance(self.record, SeriesRecord):
            return tuple(map(Release, self.record.releases))
        return (self,)

    def __iter__(self) -> Iterator[str]:
        """Names of the time slices.

        Raises
        ------
        ParameterError
            If the release has no time.
        """
        return iter(self._time())

    def __getitem__(self, name: str) -> Release:
        """Release of one time slice.

        Raises
        ------
        ParameterError
            If the release has no such slice.
        """
        names = self._time().names
        if name not in names:
            raise ParameterError(
                f"slice {name!r} is not in this series; it has {len(names)}, from {names[0]} to "
                f"{names[-1]}"
            )
        return self.releases[names.index(name)]

    def _time(self) -> TimeSlices:
        """Time slices, which there must be."""
        if self.slices is None:
            raise ParameterError(
                "release must have time slices, got one without; query it without a time"
            )
        return self.slices

    def _one(self) -> ReleaseRecord:
        """Published fields of a release without time."""
        if isinstance(self.record, SeriesRecord):
            names = self.record.slices.names
            raise ParameterError(
                f"release must be one time slice for this, got {len(names):,}; take one of them, "
                f"such as release[{names[0]!r}]"
            )
        return self.record

    @property
    def _first(self) -> ReleaseRecord:
        """Published fields of the release, or of its first slice."""
        return self.record.releases[0] if isinstance(self.record, SeriesRecord) else self.record

    # --- what the file states -----------------------------------------------------------------

    @property
    def tree(self) -> Tree:
        """Cells and noisy counts."""
        return self._one().tree

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice."""
        return self._first.domain

    @property
    def epsilon(self) -> Decimal:
        """Privacy budget: enforced by the curator, or stated by the caller of given counts.

        Of all time slices together: their sum, if each has a contribution bound of its own.
        """
        return Decimal(epsilon_text(self.record.epsilon))

    @property
    def method(self) -> str:
        """Name of the method."""
        return self._first.method

    @property
    def parameters(self) -> Mapping[str, int | str | None]:
        """Public parameters of the method, and those that the build adds."""
        return self._one().parameters

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, and what the counts count."""
        return self._first.unit

    @property
    def post_processing(self) -> PostProcessing:
        """Post-processing of the counts; `with_post_processing` gives another one."""
        return self._first.post_processing

    @property
    def covariate(self) -> Covariate | None:
        """Public density that the release was built with."""
        return self._one().covariate

    @property
    def boundary(self) -> bool:
        """Whether the covariate is the raster of a public boundary."""
        return self._first.boundary

    @property
    def library(self) -> str:
        """Version of the library that made the release."""
        return self._first.library

    @property
    def inference(self) -> int:
        """Version of the estimates."""
        return self._first.inference

    @property
    def source(self) -> str:
        """Where the counts come from; see `psd.release.record.ReleaseRecord`."""
        return self._first.source

    @property
    def about(self) -> dict[str, str]:
        """What the publisher states, such as title and licence; `with_about` gives another one."""
        about = self._first.about
        return {} if about is None else about.texts

    @property
    def guarantee_text(self) -> str:
        """Epsilon, unit of privacy and, unless the curator drew the counts, their source."""
        return self.record.guarantee_text

    @property
    def metadata(self) -> dict[str, str]:
        """What exports state: `about`, epsilon, unit of privacy, source, counts, method, digest.

        Epsilon is that of all time slices together.
        """
        from psd.export._metadata import release_metadata

        if not isinstance(self.record, SeriesRecord):
            return release_metadata(self.record, self.digest if self._has_file else "")
        facts = {**self.releases[0].metadata, "epsilon": epsilon_text(self.record.epsilon)}
        unit = facts["unit_of_privacy"] + self.record.bound_text
        return {**facts, "unit_of_privacy": unit, "digest": self.digest}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the file it was read from, or will be saved to."""
        if isinstance(self.record, SeriesRecord):
            return series_file.digest_of(self.record)
        return file.digest_of(self.record)

    @property
    def _has_file(self) -> bool:
        """Whether the release may be saved, and so has a digest."""
        return self.source in ("curator", "given")

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
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of regions, the highest first; none without regions."""
        tree = self._first.tree
        if not isinstance(tree, RegionTree):
            return ()
        return tuple(level.name for level in tree.regions.levels)

    @property
    def regions_tree(self) -> RegionTree:
        """Regions, cells and noisy counts; only with regions."""
        tree = self._one().tree
        if not isinstance(tree, RegionTree):
            raise InternalError("the tree has no regions")
        return tree

    # --- estimates ----------------------------------------------------------------------------

    @cached_property
    def index(self) -> QueryIndex:
        """The fit of the cells, and arrays that make queries fast."""
        return QueryIndex(record=self._one())

    @property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell, with variances."""
        return self.index.fit.estimates

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return self.index.total

    # --- questions ----------------------------------------------------------------------------

    def query(
        self,
        areas: Any = None,
        *,
        when: str | None = None,
        each: Literal["slice"] | None = None,
        level: str | None = None,
        id: str | None = None,
        crs: Any = None,
        outside: Literal["refuse", "skip", "zero"] = "refuse",
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
        outside : {"refuse", "skip", "zero"}
            Whether boxes and polygons outside the bounds, where nothing was counted, are refused,
            left out, or answered by 0 without an error.
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
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> release = psd.Release.from_slices(months, releases)
        >>> answers = release.query([(0, 0, 2, 1)], when="2024-01..2024-02")
        >>> answers.table[["estimate", "perturbation_error"]].round(2).values.tolist()
        [[14.0, 2.71]]
        >>> release.query([(0, 0, 2, 1)], each="slice")["estimate"].round(1).tolist()
        [6.0, 8.0]
        """
        from psd.api.answers import answer_question
        from psd.query.areas import read_areas

        first = self._first
        asked = read_areas(
            areas, first.domain, first.tree, level=level, column=id, crs=crs, outside=outside
        )
        return answer_question(
            asked,
            self._asked_slices(when, each),
            each=each,
            guarantee=self.guarantee_text,
            confidence=confidence,
            threshold=threshold,
        )

    def _asked_slices(self, when: str | None, each: str | None) -> dict[str, QueryIndex]:
        """Slices of a window, by their names; without time one without a name."""
        if not isinstance(self.record, SeriesRecord):
            for name, value in (("when", when), ("each", each)):
                if value is not None:
                    raise ParameterError(
                        f"{name} must be left out, got {str(value)[:80]!r}; the release has no "
                        "time slices",
                        name=name,
                    )
            return {"": self.index}
        if each not in (None, "slice"):
            raise ParameterError(
                f"each must be 'slice' or left out, got {str(each)[:80]!r}", name="each"
            )
        names = self.record.slices.names
        chosen = range(len(names)) if when is None else self.record.slices.window(when)
        if each is None and len(chosen) > 1 and self.record.are_running_totals:
            raise ParameterError(
                "slices must be counts to be added up, got running totals, each of which counts "
                'the slices before it too; ask with when= for one slice, or with each="slice", or '
                "add up those of the other file of the stream",
                name="when",
            )
        return {names[number]: self.releases[number].index for number in chosen}

    def _areas(self, areas: Any, crs: Any, level: str | None = None) -> Areas:
        """Areas of a question that takes one slice."""
        from psd.query.areas import read_areas

        return read_areas(areas, self.domain, self.tree, level=level, crs=crs)

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
        from psd.statistics.nested import answer_nested

        return answer_nested(
            self.index,
            self._areas(areas, crs),
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

        return density_raster(self.index.fit, columns, rows)

    def top(
        self,
        k: int,
        *,
        areas: Any = None,
        level: str | None = None,
        size: tuple[int, int] | None = None,
        crs: Any = None,
        by: Literal["count", "density"] = "count",
        draws: int = 2000,
        seed: int = 0,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Rank the k cells with the most records, each with the probability that it is among them.

        A release with regions ranks those of a level by their count.

        Parameters
        ----------
        k : int
            Number of cells or regions to list, at most the number that is ranked.
        areas : boxes, polygons, names of regions, a table, or a file, optional
            Areas to rank instead of cells, as in `query`, at most 5,000.
        level : str, optional
            Name of the level whose regions are ranked, at most 5,000; the lowest one by default.
        size : tuple of int, optional
            Columns and rows of a raster to rank; without it the leaves are ranked.
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
        from psd.statistics.top_cells import rank_top

        if level is not None and (size is not None or areas is not None or not self.levels):
            raise ParameterError(
                f"level must be left out with size, areas, or a release without regions, got "
                f"{level!r}"
            )
        asked = None if areas is None else self._areas(areas, crs)
        if self.levels and size is None and asked is None:
            if by != "count":
                raise ParameterError(
                    f"by must be count for the regions of a level, got {by!r}; size= ranks the "
                    "cells of a raster by density"
                )
            asked = self._areas(None, None, level)
        return rank_top(self.index, k, size=size, areas=asked, by=by, draws=draws, seed=seed)

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
            self.index.fit,
            classes,
            size=size,
            weight=weight,
            confidence=confidence,
            draws=draws,
            seed=seed,
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
            quality`` and the box as geometry; density is records per square kilometre of
            ground, or square unit of a local CRS. Relative errors and quality are as in
            `query`, with intervals of 95 %. Regions have the columns of `Answers.table`, and
            their density and polygons. Its ``attrs`` are `metadata` without the digest, and
            its ``plot()`` shows the density in classes.

        Raises
        ------
        ParameterError
            If the release has no such level, or an argument is out of range.
        """
        from psd.export._cell_table import CellTable
        from psd.export._cells import cells_table
        from psd.export._metadata import release_metadata
        from psd.export._regions import named_regions_table

        if self.levels:
            self._check_cells(cells)
            table = named_regions_table(
                self.index, level, confidence=confidence, threshold=threshold
            )
            table.attrs = release_metadata(self._one())
            return table
        table = cells_table(self.index.fit, cells, level=level, threshold=threshold)
        table.attrs = release_metadata(self._one())
        return CellTable.of(table, self._one())

    def _check_cells(self, cells: str) -> None:
        """Refuse a choice of cells where regions are meant."""
        if cells != "leaves":
            raise ParameterError(
                f"cells must be left out with regions, got {cells!r}; level names a level",
                name="cells",
            )

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

        return to_xarray(self.index.fit, columns, rows, metadata=self.metadata)

    def plot(
        self,
        kind: Literal["density", "estimate", "relative_error", "reliable", "quality"] = "density",
        *,
        slices: Sequence[str] | None = None,
        level: int | str | None = None,
        outline: geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
        threshold: Threshold = 0.3,
        ax: Axes | None = None,
        cmap: Any = None,
    ) -> Axes | Figure:
        """Draw a map of the cells with matplotlib: classes, colour bar, scale bar and guarantee.

        Time slices are drawn as small maps with the same classes, and one key for all.

        Parameters
        ----------
        kind : {"density", "estimate", "relative_error", "reliable", "quality"}
            What is shown: a column of `to_geopandas`.
        slices : sequence of str, optional
            Names of the time slices to draw, at most 48; all by default.
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
        from psd.export._maps import draw_release

        shown: dict[str, Any] = {"outline": outline, "threshold": threshold, "cmap": cmap}
        if isinstance(self.record, SeriesRecord):
            if ax is not None:
                raise ParameterError("ax must be left out with time slices, each of which has one")
            return self._plot_slices(kind, slices, level, **shown)
        if slices is not None:
            self._time()
        cells = self.to_geopandas(level=level, threshold=threshold)
        return draw_release(self._one(), cells, kind, axes=ax, **shown)

    def _plot_slices(
        self,
        kind: str,
        slices: Sequence[str] | None,
        level: int | str | None,
        *,
        threshold: Threshold,
        **shown: Any,
    ) -> Figure:
        """Small maps of time slices; see `plot`."""
        from psd.export._map_series import MOST_MAPS, draw_series

        names = list(self) if slices is None else list(slices)
        if len(names) > MOST_MAPS:
            raise ParameterError(
                f"slices must be at most {MOST_MAPS} to be drawn together, got {len(names):,}; "
                "name those to draw"
            )
        cells = {name: self[name].to_geopandas(level=level, threshold=threshold) for name in names}
        return draw_series(
            self._first,
            cells,
            kind,
            guarantee=self.guarantee_text,
            threshold=threshold,
            **shown,
        )

    def explore(
        self,
        kind: Literal["density", "estimate", "relative_error", "reliable", "quality"] = "density",
        *,
        level: int | str | None = None,
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
        return explore_release(self._one(), cells, kind, tiles=tiles)

    def map(
        self,
        path: str | os.PathLike[str],
        *,
        regions: geopandas.GeoDataFrame | None = None,
        title: str | None = None,
        level: int | None = None,
        threshold: Threshold = 0.3,
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
        page: str = pages.map_page(
            self, regions=regions, title=title, level=level, threshold=threshold
        )
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

        if isinstance(self.record, SeriesRecord):
            return f"<p>{escape(repr(self))}<br>{escape(self.guarantee_text)}</p>"
        return html_of(self.index.fit, picture=not self.levels)

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
            ``reference_date``, and there are no time slices.

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
            record=self._first,
            metadata=self.metadata,
            guarantee=self.guarantee_text,
            file=os.path.basename(file),
            slices=self.slices,
        )
        return catalogue_entry(standard, described)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        cells: Literal["leaves", "all"] = "leaves",
        level: int | str | None = None,
        size: tuple[int, int] | None = None,
        band: Literal["count", "density", "error", "classes"] | None = None,
        crs: Any = None,
        unreliable: Literal["keep", "mark", "drop"] = "keep",
        threshold: Threshold = 0.3,
        table: str | None = None,
        overwrite: bool = False,
    ) -> int:
        """Write the cells, or the regions of a level, for a GIS program, in the format of the name.

        Parameters
        ----------
        path : path-like
            Ends in ``.gpkg``, ``.parquet``, ``.fgb``, ``.geojson``, ``.csv``, ``.xlsx`` or
            ``.pmtiles``, or for a raster in ``.tif`` or ``.npy``; or the address
            ``postgresql://...`` of a PostGIS database. Regions have neither tiles nor a database.
        cells : {"leaves", "all"}
            As in `to_geopandas`; rasters are made of the leaves.
        level : int or str, optional
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

        Returns
        -------
        int
            Number of cells or regions left out by ``drop``; of a raster, its cells without value.

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
        from psd.export._regions import export_regions
        from psd.release.allow_list import check_release

        check_release(self._one())
        if self.levels and not is_raster(find_format(path)):
            self._check_cells(cells)
            for name, value in (("size", size), ("band", band)):
                if value is not None:
                    raise ParameterError(
                        f"{name} must be left out unless output is a raster, got {value!r}; the "
                        "format is a table of regions"
                    )
            return export_regions(
                self._one(),
                self.to_geopandas(level=level, threshold=threshold),
                path,
                metadata=self.metadata,
                crs=crs,
                unreliable=unreliable,
                threshold=threshold,
                overwrite=overwrite,
            )
        if self.levels and level is not None:
            raise ParameterError(
                f"level must be left out if output is a raster, got {level!r}; size sets its cells"
            )
        return export_release(
            self._one(),
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


load = Release.load


def _write_page(path: str | os.PathLike[str], page: str, *, overwrite: bool) -> None:
    """Write a page whose name says that it is one."""
    from psd._util.atomic_write import write_file

    if not os.fspath(path).lower().endswith((".html", ".htm")):
        raise ParameterError(f"path must end in .html, got {os.fspath(path)}; it is a page")
    write_file(path, page.encode("utf-8"), overwrite=overwrite)
