"""`SeriesRelease`: one release per time slice, under a single guarantee. Public."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from psd._util.file_endings import check_release_name
from psd.api.region_release import RegionRelease, release_of
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
    import pandas
    from matplotlib.figure import Figure

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
    >>> series.query([(0, 0, 2, 1)])[["slice", "estimate"]].round(1).values.tolist()
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
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Query every slice; the answers follow one another, with a first column ``slice``.

        Parameters
        ----------
        regions, crs, confidence, threshold
            As in `Release.query`.

        Returns
        -------
        DataFrame or GeoDataFrame
            As from `Release.query`, for each slice.
        """
        options = {"crs": crs, "confidence": confidence, "threshold": threshold}
        named = zip(self, self.releases, strict=True)
        return stack_answers({name: release.query(regions, **options) for name, release in named})

    def query_regions(
        self,
        level: str | None = None,
        ids: Sequence[str | Sequence[str]] | None = None,
        *,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame:
        """Named regions of every slice, one after another, with a first column ``slice``.

        Parameters
        ----------
        level, ids, confidence, threshold
            As in `psd.api.region_release.RegionRelease.query_regions`.

        Raises
        ------
        ParameterError
            If the releases have no named regions, or as there.
        """
        options: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
        return stack_answers(
            {name: r.query_regions(level, ids, **options) for name, r in self._named_regions()}
        )

    def query_table(
        self,
        table: pandas.DataFrame,
        column: str = "id",
        *,
        level: str | None = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame:
        """Regions of a table of the caller, for every slice, with a first column ``slice``.

        Parameters
        ----------
        table, column, level, confidence, threshold
            As in `psd.api.region_release.RegionRelease.query_table`.

        Raises
        ------
        ParameterError
            If the releases have no named regions, or as there.
        """
        options: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
        return stack_answers(
            {
                name: r.query_table(table, column, level=level, **options)
                for name, r in self._named_regions()
            }
        )

    def total(
        self,
        regions: Any,
        first: str | None = None,
        last: str | None = None,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Estimate the counts of regions in several slices together, one answer per region.

        Guarantees
        ----------
        - The sum over one slice is the answer of that slice.

        Parameters
        ----------
        regions, crs, confidence, threshold
            As in `Release.query`.
        first, last : str, optional
            Names of the first and the last slice, both included; those of the series by default.

        Returns
        -------
        DataFrame or GeoDataFrame
            As from `Release.query`. The estimate is the sum of the unbiased estimates of the
            slices, cut at 0, so it is not the sum of the answers of `query`, which are cut one by
            one. The noise of different slices is independent: its variances are added. What is
            uneven inside a cell is alike in many slices: the standard deviations are added.

        Raises
        ------
        ParameterError
            If a slice from first to last is not in the series, the slices are running totals of a
            stream, or as `Release.query`.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> series = psd.SeriesRelease.of(months, releases)
        >>> answers = series.total([(0, 0, 2, 1)], "2024-01", "2024-02")
        >>> answers[["estimate", "perturbation_error"]].round(2).values.tolist()
        [[14.0, 2.71]]
        """
        from psd.api._answer_tables import with_columns_of
        from psd.query.slice_sums import answer_slice_sums

        slices = [release.index for _, release in self._between(first, last)]
        answers = answer_slice_sums(
            slices, regions, crs=crs, confidence=confidence, threshold=threshold
        )
        return with_columns_of(regions, answers, crs)

    def total_regions(
        self,
        level: str | None = None,
        ids: Sequence[str | Sequence[str]] | None = None,
        first: str | None = None,
        last: str | None = None,
        *,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame:
        """Named regions of several slices together, one answer per region.

        Parameters
        ----------
        level, ids, confidence, threshold
            As in `psd.api.region_release.RegionRelease.query_regions`.
        first, last : str, optional
            As in `total`, and so are the errors.

        Raises
        ------
        ParameterError
            If the releases have no named regions, a slice is not in the series, or as there.
        """
        from psd.query.slice_sums import answer_named_sums

        names = [name for name, _ in self._between(first, last)]
        slices = [(r.model, r.regions_tree) for name, r in self._named_regions() if name in names]
        return answer_named_sums(slices, level, ids, confidence=confidence, threshold=threshold)

    def total_table(
        self,
        table: pandas.DataFrame,
        column: str = "id",
        first: str | None = None,
        last: str | None = None,
        *,
        level: str | None = None,
        confidence: float = 0.95,
        threshold: Threshold = 0.3,
    ) -> pandas.DataFrame:
        """Regions of a table of the caller, for several slices together.

        Parameters
        ----------
        table, column, level, confidence, threshold
            As in `psd.api.region_release.RegionRelease.query_table`.
        first, last : str, optional
            As in `total`.

        Raises
        ------
        ParameterError
            If the releases have no named regions, a slice is not in the series, or as there.
        """
        from psd.api._answer_tables import join_answers, region_ids

        options: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
        answers = self.total_regions(level, region_ids(table, column), first, last, **options)
        joined: pandas.DataFrame = join_answers(table, answers)
        return joined

    def _between(self, first: str | None, last: str | None) -> list[tuple[str, Release]]:
        """Names and releases from one slice to another, all of which must be in the series."""
        if self.record.are_running_totals:
            raise ParameterError(
                "slices must be counts to be added up, got running totals, each of which counts "
                "the slices before it too; query one slice, or add up those of the other file of "
                "the stream"
            )
        names = self.slices.names
        ends = f"{first or names[0]}..{last or names[-1]}"
        between = TimeSlices.parse(self.slices.by, ends, self.slices.time_zone).names
        if first is None and last is None:
            between = names
        for name in between:
            if name not in names:
                raise ParameterError(
                    f"slices must be among the {len(names)} from {names[0]} to {names[-1]}; "
                    f"{name!r} is not in this series"
                )
        return [(name, self[name]) for name in between]

    def _named_regions(self) -> Iterator[tuple[str, RegionRelease]]:
        """Names and releases of the slices, which must have named regions."""
        for name, release in zip(self, self.releases, strict=True):
            if not isinstance(release, RegionRelease):
                raise ParameterError(
                    "query_regions must be used with a series that was built with regions="
                )
            yield name, release

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


def stack_answers(
    answers: dict[str, pandas.DataFrame | geopandas.GeoDataFrame],
) -> pandas.DataFrame | geopandas.GeoDataFrame:
    """Tables of the slices, one after another, with the name of the slice in front.

    Raises
    ------
    ParameterError
        If the caller's regions have a column ``slice``.
    """
    import pandas

    for name, table in answers.items():
        if "slice" in table.columns:
            raise ParameterError(
                "regions must not have a column slice, which the answers add; rename it"
            )
        table.insert(0, "slice", name)
    return pandas.concat(list(answers.values()))
