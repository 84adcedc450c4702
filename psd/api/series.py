"""`SeriesRelease`: one release per time slice, under a single guarantee. Public."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from psd._util.file_endings import check_release_name
from psd.api.region_release import release_of
from psd.api.release import Release
from psd.errors import ParameterError
from psd.privacy.epsilon import epsilon_text
from psd.privacy.unit import ContributionScope, PrivacyUnit
from psd.query.reliability import Threshold
from psd.release.node_limit import MAX_NODES
from psd.release.record import guarantee_note
from psd.release.series import SeriesRecord, receipt_of
from psd.release.series_file import digest_of, read_series, write_series
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import geopandas
    from matplotlib.figure import Figure

    from psd.api.answers import Answers

__all__ = ["SeriesRelease"]


@dataclass(frozen=True, eq=False, repr=False)
class SeriesRelease:
    """Releases of time slices under a single guarantee.

    Guarantees
    ----------
    - Every slice of the list has a release, even if it has no record.
    - `epsilon` holds for all slices together.

    Parameters
    ----------
    record : SeriesRecord
        The published fields.
    note_saved : callable, optional
        Called with the path of a saved file: the ledger that paid notes it.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
    >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
    >>> series = psd.SeriesRelease.of(months, releases)
    >>> answers = series.query([(0, 0, 2, 1)], each="slice")
    >>> answers.table[["slice", "estimate"]].round(1).values.tolist()
    [['2024-01', 6.0], ['2024-02', 8.0]]
    """

    record: SeriesRecord
    note_saved: Callable[[str | os.PathLike[str]], None] | None = None

    @classmethod
    def of(cls, slices: TimeSlices, releases: list[Release] | tuple[Release, ...]) -> SeriesRelease:
        """Join one release per slice to a series.

        Guarantees
        ----------
        - `epsilon` is the sum over all releases, since they may count the same records. A series
          under the epsilon of one slice is built from records: ``psd.build(..., slices=...)``.

        Raises
        ------
        ParameterError
            If the releases do not belong together, or one of them has a delta, or states a charge
            of a ledger: the series would state more epsilon than that charge.
        """
        records = tuple(release.record for release in releases)
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

    def __repr__(self) -> str:
        return (
            f"<SeriesRelease: {len(self)} slices by {self.slices.by}, {self.method}, "
            f"{self.record.loss_text} per {self.unit.kind}"
            f"{guarantee_note(self.record.releases[0].source)}>"
        )

    @property
    def slices(self) -> TimeSlices:
        """Names of the slices, in the order of time."""
        return self.record.slices

    @property
    def scope(self) -> ContributionScope:
        """Whether the contribution bound holds for all slices together, or for each slice."""
        return self.record.scope

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """One release per slice."""
        return tuple(map(release_of, self.record.releases))

    @property
    def epsilon(self) -> Decimal:
        """Privacy budget of all slices together: their sum if the scope is a slice."""
        return Decimal(epsilon_text(self.record.epsilon))

    @property
    def source(self) -> str:
        """Where the counts come from; see `psd.release.record.ReleaseRecord`."""
        return self.record.releases[0].source

    @property
    def about(self) -> dict[str, str]:
        """What the publisher states, such as title and licence; the same for every slice."""
        return self.releases[0].about

    @property
    def guarantee_text(self) -> str:
        """Epsilon of all slices, unit of privacy and, unless the curator drew them, the source."""
        return self.record.guarantee_text

    @property
    def metadata(self) -> dict[str, str]:
        """What exports state, see `Release.metadata`; epsilon is that of all slices together."""
        facts = {**self.releases[0].metadata, "epsilon": epsilon_text(self.record.epsilon)}
        unit = facts["unit_of_privacy"] + self.record.bound_text
        return {**facts, "unit_of_privacy": unit, "digest": self.digest}

    @property
    def method(self) -> str:
        """Name of the method of every release."""
        return self.record.releases[0].method

    @property
    def domain(self) -> Domain:
        """Domain of every release."""
        return self.record.releases[0].domain

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, and what the counts count."""
        return self.record.releases[0].unit

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the file it was read from, or will be saved to."""
        return digest_of(self.record)

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.slices)

    def __iter__(self) -> Iterator[str]:
        """Names of the slices in the order of time."""
        return iter(self.slices)

    def __getitem__(self, name: str) -> Release:
        """Release of one slice.

        Raises
        ------
        ParameterError
            If the series has no such slice.
        """
        if name not in self.slices.names:
            names = self.slices.names
            raise ParameterError(
                f"slice {name!r} is not in this series; it has {len(names)}, from {names[0]} to "
                f"{names[-1]}"
            )
        return self.releases[self.slices.names.index(name)]

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
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> series = psd.SeriesRelease.of(months, releases)
        >>> answers = series.query([(0, 0, 2, 1)], when="2024-01..2024-02")
        >>> answers.table[["estimate", "perturbation_error"]].round(2).values.tolist()
        [[14.0, 2.71]]
        >>> series.query([(0, 0, 2, 1)], each="slice")["estimate"].round(1).tolist()
        [6.0, 8.0]
        """
        from psd.api.answers import answer_question
        from psd.query.areas import read_areas

        if each not in (None, "slice"):
            raise ParameterError(
                f"each must be 'slice' or left out, got {str(each)[:80]!r}", name="each"
            )
        first = self.releases[0]
        asked = read_areas(areas, first.domain, first.tree, level=level, column=id, crs=crs)
        chosen = range(len(self)) if when is None else self.slices.window(when)
        if each is None and len(chosen) > 1 and self.record.are_running_totals:
            raise ParameterError(
                "slices must be counts to be added up, got running totals, each of which counts "
                'the slices before it too; ask with when= for one slice, or with each="slice", or '
                "add up those of the other file of the stream",
                name="when",
            )
        return answer_question(
            asked,
            {self.slices.names[number]: self.releases[number].index for number in chosen},
            each=each,
            guarantee=self.guarantee_text,
            confidence=confidence,
            threshold=threshold,
        )

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
            ``reference_date``, and there are no slices.
        """
        from psd.export._catalogue import Described, catalogue_entry

        described = Described(
            record=self.record.releases[0],
            metadata=self.metadata,
            guarantee=self.guarantee_text,
            file=os.path.basename(file),
            slices=self.slices,
        )
        return catalogue_entry(standard, described)

    def plot(
        self,
        kind: Literal["density", "estimate", "relative_error", "reliable", "quality"] = "density",
        *,
        slices: Sequence[str] | None = None,
        level: Any = None,
        outline: geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
        threshold: Threshold = 0.3,
    ) -> Figure:
        """Draw the slices as small maps with the same classes, and one key for all.

        Parameters
        ----------
        kind, level, outline, threshold
            As in `Release.plot`.
        slices : sequence of str, optional
            Names of the slices to draw, at most 48; all by default.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        ParameterError
            If the series has no such slice, or too many to be drawn together, or an argument is
            out of range.
        MissingExtraError
            If matplotlib is not installed.
        """
        from psd.export._map_series import MOST_MAPS, draw_series

        names = list(self) if slices is None else list(slices)
        if len(names) > MOST_MAPS:
            raise ParameterError(
                f"slices must be at most {MOST_MAPS} to be drawn together, got {len(names):,}; "
                "name those to draw"
            )
        cells = {name: self[name].to_geopandas(level=level, threshold=threshold) for name in names}
        return draw_series(
            self.releases[0].model,
            cells,
            kind,
            guarantee=self.guarantee_text,
            outline=outline,
            threshold=threshold,
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the series to one file; a failure leaves no partial file.

        Raises
        ------
        ParameterError
            If the counts come from replayed answers or a seed, a value is not declared public, see
            `psd.release.allow_list`, or the name has the ending of another format.
        WriteError
            If the file exists or cannot be written.
        """
        check_release_name(path, "path")
        write_series(self.record, path, overwrite=overwrite)
        if self.note_saved is not None:
            self.note_saved(path)

    @staticmethod
    def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> SeriesRelease:
        """Read the file of a series.

        Parameters
        ----------
        path : path-like
            File to read.
        max_nodes : int
            Largest number of nodes in the file, in all slices together. Memory and time of queries
            grow with it, so raise it only for files from trusted senders.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged, of an unknown version or a single release,
            or states more nodes.
        ParameterError
            If `max_nodes` is not a positive integer.
        """
        record, digest = read_series(path, max_nodes=max_nodes)
        series = SeriesRelease(record)
        vars(series)["digest"] = digest
        return series
