"""`Publication`: published counts, and what their file states. `Release` asks questions of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Integers
from psd._util.file_endings import check_release_name
from psd._util.instances import check_instance, shown
from psd.errors import ParameterError
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.query.index import MOST_KEPT, CubeIndex, CubeWindow, QueryIndex
from psd.release import cube_file, file, series_file
from psd.release.about import about_from_mapping
from psd.release.cube import (
    ALL_TIME,
    CubeRecord,
    WindowRecord,
    all_time,
    first_record,
    refuse_views,
    shown_records,
    window_record,
)
from psd.release.node_reader import MAX_NODES
from psd.release.post_processing import PostProcessing
from psd.release.record import SOURCE_NOTES, ReleaseRecord, record_from_counts
from psd.release.series import SeriesRecord, receipt_of
from psd.space.box_tree import Tree
from psd.space.categories import CategoryAxis
from psd.space.domain import Domain, public_domain
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeSlices, TimeWindow
from psd.space.windows import read_windows, warn_of_clock_changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskedTime:
    """Slices that are asked about, and the windows of them that are answered."""

    slices: Mapping[str, QueryIndex]  # by their names
    windows: tuple[Integers, ...]  # numbers among these, ascending
    labels: tuple[Mapping[str, str], ...]  # of each window, columns in front of its answers
    texts: tuple[Mapping[str, str], ...]  # of each window, its names: when, slice and category
    # The cube that is asked; then `slices` has its plane without a name, and windows have numbers
    # of the cells of the cube, see `psd.query.cubes.Windows`.
    cube: CubeIndex | None = None
    series: Sequence[ReleaseRecord] = ()  # all slices, by which sums of some are settled


def _asked_categories(
    category: CategoryAxis, of: Any, *, is_each: bool
) -> list[tuple[dict[str, str], Integers]]:
    """Cells of categories that are asked about, each with its label if it is not all of them."""
    is_one = isinstance(of, str) or not isinstance(of, Iterable)
    texts = [of] if is_one else list(of)
    if not texts or not all(isinstance(text, str) for text in texts if of is not None):
        raise ParameterError(
            f"category must be a label, or several, got {shown(of)}", name="category"
        )
    asked: list[tuple[dict[str, str], Integers]] = []
    for text in texts:
        label = {} if text is None else {"category": category.label_named(text)}
        first, stop = (0, category.size) if text is None else category.span_of(text)
        if is_each:
            cells = range(first, stop)
            asked += [({"category": category.names[c]}, np.array([c])) for c in cells]
        else:
            asked.append((label, np.arange(first, stop)))
    return asked


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """Published counts, made, saved and read: all of `Release` but questions and pictures.

    Parameters
    ----------
    record : ReleaseRecord or SeriesRecord
        The published fields, or those of time slices.
    """

    record: ReleaseRecord | SeriesRecord | CubeRecord
    _note_saved: Callable[[str | os.PathLike[str]], None] | None = None

    def __repr__(self) -> str:
        size = (
            f"{len(self._first.tree):,} cells"
            if self.slices is None
            else f"{len(self.slices)} slices by {self.slices.by}"
        )
        if isinstance(self.record, WindowRecord):
            size = ", ".join([*self.record.shown.values(), size])
        facts = [self.method, size] if self.slices is None else [size, self.method]
        return (
            f"<Release: {', '.join(facts)}, {self.record.loss_text} per {self.unit.kind}"
            f"{SOURCE_NOTES[self._first.source]}>"
        )

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
    ) -> Self:
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
        check_instance("tree", tree, Tree, "psd.decompositions.grid_tree(domain, 8)")
        check_instance("unit", unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user")')
        domain = public_domain(domain)
        return cls(record_from_counts(tree, counts, epsilons, domain=domain, unit=unit))

    @classmethod
    def from_slices(cls, slices: TimeSlices, releases: Sequence[Self]) -> Self:
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
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
        >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
        >>> releases = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
        >>> release = psd.Release.from_slices(months, releases)
        >>> answers = release.query([(0, 0, 2, 1)], each="slice")
        >>> answers.table[["slice", "estimate"]].round(1).values.tolist()
        [['2024-01', 6.0], ['2024-02', 8.0]]
        """
        for release in releases:
            refuse_views(release.record, "to be joined")
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

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> Self:
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
        >>> tree = psd.decompositions.grid_tree(domain, 1)
        >>> release = psd.Release.from_counts(tree, [5], 1, domain=domain)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.save(folder + "/r.psd.parquet")
        ...     len(psd.load(folder + "/r.psd.parquet").tree)
        2
        """
        record, digest = cube_file.read_published(path, max_nodes=max_nodes)
        release = cls(record)
        vars(release)["digest"] = digest
        return release

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release file; a failure leaves no partial file.

        Raises
        ------
        ParameterError
            If the counts come from replayed answers or a seed, a value is not declared public, see
            `psd.release.schema`, or the name has the ending of another format.
        WriteError
            If the file exists or cannot be written.
        """
        check_release_name(path, "path")
        self._refuse_window("saved")
        if isinstance(self.record, SeriesRecord):
            series_file.write_series(self.record, path, overwrite=overwrite)
        elif isinstance(self.record, CubeRecord):
            cube_file.write_cube(self.record, path, overwrite=overwrite)
        else:
            file.write_release(self.record, path, overwrite=overwrite)
        if self._note_saved is not None:
            self._note_saved(path)

    def replace(
        self,
        *,
        about: Mapping[str, str] | None = None,
        post_processing: PostProcessing | None = None,
    ) -> Self:
        """Make the same release with other statements or another post-processing; costs no epsilon.

        Parameters
        ----------
        about : mapping of texts, optional
            All statements of the publisher, as in `psd.build`; an empty one leaves none. They are
            part of the content, so the digest is another one.
        post_processing : PostProcessing, optional
            How estimates are made; see `psd.release.post_processing.PostProcessing`.

        Raises
        ------
        ParameterError
            If a key does not exist, a text is not valid, or the post-processing does not fit.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.replace(about={"title": "Visits", "licence": "CC-BY-4.0"}).metadata["title"]
        'Visits'
        """
        self._refuse_window("changed")
        fields: dict[str, Any] = {}
        if about is not None:
            fields["about"] = about_from_mapping(about)
        if post_processing is not None:
            fields["post_processing"] = post_processing
        if isinstance(self.record, SeriesRecord):
            records = tuple(dataclasses.replace(each, **fields) for each in self.record.releases)
            return type(self)(dataclasses.replace(self.record, releases=records))
        if isinstance(self.record, CubeRecord):
            layers = {
                name: dataclasses.replace(layer, **fields)
                for name in ("joint", "plane", "labels", "times")
                if (layer := getattr(self.record, name)) is not None
            }
            return type(self)(dataclasses.replace(self.record, **layers))
        return type(self)(dataclasses.replace(self.record, **fields))

    # --- time -------------------------------------------------------------------------------

    def _refuse_window(self, done: str) -> None:
        """Refuse a window of a cube for what is done with releases."""
        if isinstance(self.record, WindowRecord):
            raise ParameterError(
                f"release must not be a window of a cube to be {done}, since it is a view of the "
                "cube; take the cube itself"
            )

    @property
    def slices(self) -> TimeSlices | None:
        """Time slices, in the order of time; None for a release without time."""
        return None if isinstance(self.record, ReleaseRecord) else self.record.slices

    @cached_property
    def _releases(self) -> tuple[Self, ...]:
        """A release of each time slice of a series; without time, the release itself."""
        if not isinstance(self.record, SeriesRecord):
            return (self,)
        return tuple(map(type(self), self.record.releases))

    def __iter__(self) -> Iterator[str]:
        """Names of the time slices.

        Raises
        ------
        ParameterError
            If the release has no time.
        """
        return iter(self._time())

    def __getitem__(self, name: Any) -> Self:
        """Release of one time slice; of a cube a view of a window of time, and of a category.

        ``cube["weekdays 07-09"]`` has all categories, ``cube["weekdays 07-09", "work"]`` one label
        with all labels below it, and ``cube[:, "work"]`` all time. A view is asked, drawn and
        exported, and has the guarantee of its cube; it is no release of its own, and cannot be
        saved. Its cells have the answers of `Release.query` to their boxes.

        Raises
        ------
        ParameterError
            If the release has no such slice, or the cube no such window or label.

        Examples
        --------
        >>> import numpy as np, pandas as pd, psd
        >>> rng = np.random.default_rng(1)
        >>> x, y = rng.uniform(0, 8, (2, 500))
        >>> data = pd.DataFrame({"x": x, "y": y, "fare": np.where(x > 4, "low", "full")})
        >>> cube = psd.build(
        ...     data,
        ...     domain=psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857"),
        ...     input_crs="EPSG:3857",
        ...     epsilon=1,
        ...     category="fare",
        ...     labels=["full", "low"],
        ...     per="record",
        ... )
        >>> low = cube[:, "low"]
        >>> low.metadata["category"]
        'fare=low'
        >>> bool((low.to_geopandas()["estimate"] >= 0).all())
        True
        """
        if isinstance(self.record, CubeRecord):
            is_pair = isinstance(name, tuple) and len(name) == 2
            when, category = name if is_pair else (name, None)
            when = None if isinstance(when, slice) and when == slice(None) else when
            return self._view_of(self._asked_time(when, None, of=category))
        if isinstance(name, tuple):
            raise ParameterError(
                "release must be a cube to have views, got "
                + ("a window of one" if isinstance(self.record, WindowRecord) else "another")
            )
        slices = self._time()
        if name not in slices.names:
            raise ParameterError(
                f"slice {name!r} is not in this series; it has {len(slices)}, from "
                f"{slices.names[0]} to {slices.names[-1]}"
            )
        return self._releases[slices.names.index(name)]

    def _view_of(self, asked: AskedTime) -> Self:
        """View of the one window that is asked about."""
        if len(asked.windows) > 1:
            name = "when" if len({text.get("when") for text in asked.texts}) > 1 else "category"
            what = "window" if name == "when" else "label"
            raise ParameterError(
                f"{name} must be one {what}, got {len(asked.windows):,}", name=name
            )
        return next(self._views_of(asked))

    def _views_of(self, asked: AskedTime) -> Iterator[Self]:
        """View of each window of a cube, slice of a series, or the release, as far as asked."""
        if isinstance(self.record, ReleaseRecord):
            yield self
            return
        names = list(asked.slices)
        for text, window in zip(asked.texts, asked.windows, strict=True):
            if isinstance(self.record, CubeRecord):
                name = text.get("slice", text.get("when", ALL_TIME))
                yield self._view(TimeWindow(name=name, numbers=window), text.get("category"))
            elif len(window) > 1:
                self._one()  # refuses it
            else:
                yield self[names[window[0]]]

    def _view(self, window: TimeWindow, category: str | None = None) -> Self:
        """A cube in a window, with numbers of cells of all axes, of a label if one is named."""
        assert isinstance(self.record, CubeRecord)
        view = type(self)(window_record(self.record, window, category))
        known = {"digest": vars(self)["digest"]} if "digest" in vars(self) else {}
        vars(view).update(_cube=self._cube, **known)
        return view

    def _asked_time(self, when: Any, each: Any, *, of: Any = None, values: int = 0) -> AskedTime:
        """Windows asked about, and their slices, one without a name if no time; of: categories."""
        # What is answered one by one: slices, categories or both.
        is_one = isinstance(each, str) or not isinstance(each, Iterable)
        asked = () if each is None else (each,) if is_one else tuple(each)
        if not set(asked) <= {"slice", "category"} or len(set(asked)) < len(asked):
            raise ParameterError(
                f"each must be 'slice', 'category', both or left out, got {str(each)[:80]!r}",
                name="each",
            )
        category = self.record.category if isinstance(self.record, CubeRecord) else None
        is_view = isinstance(self.record, WindowRecord)
        each_category, each_slice = (
            name if name in asked else None for name in ("category", "slice")
        )
        for name, value in (("category", of), ("each", each_category)):
            if value is not None and category is None:
                raise ParameterError(
                    f"{name} must be left out, got {shown(value)}; the release "
                    + ("is one window of a cube" if is_view else "has no categories"),
                    name=name,
                )
        if self.slices is None:
            for name, value in (("when", when), ("each", each_slice)):
                if value is not None:
                    raise ParameterError(
                        f"{name} must be left out, got {shown(value)}; the release "
                        + ("is one window of a cube" if is_view else "has no time slices"),
                        name=name,
                    )
        if isinstance(self.record, ReleaseRecord):
            if isinstance(self.record, WindowRecord):
                windows = [self.record.window.numbers]
                return self._asked_cube(self.record.cube, windows, [{}], [{}])
            return AskedTime(
                slices={"": self.index}, windows=(np.zeros(1, np.int64),), labels=({},), texts=({},)
            )
        slices = self.record.slices
        texts: list[dict[str, str]] = [{}]
        windows = [np.arange(1 if slices is None else len(slices))]
        columns: list[str] = [name for name in ("slice", "category") if name in asked]
        if when is not None and slices is not None:
            found_windows, is_list = read_windows(when, slices)
            warn_of_clock_changes(found_windows, slices)
            windows = [window.numbers for window in found_windows]
            texts = [{"when": window.name} for window in found_windows]
            columns = ["when", *columns] if is_list else columns
        if "slice" in asked and slices is not None:
            of_each = [(text, n) for text, window in zip(texts, windows, strict=True)
                       for n in window.tolist()]  # fmt: skip
            texts = [{**text, "slice": slices.names[number]} for text, number in of_each]
            windows = [np.array([number]) for _, number in of_each]
        if category is not None:
            categories = _asked_categories(category, of, is_each="category" in asked)
            if of is not None and not isinstance(of, str):
                columns = [*columns, "category"]
            # A cell of a cube has the number slice x categories + category.
            both = [
                (text | own, (window[:, None] * category.size + cells).ravel())
                for text, window in zip(texts, windows, strict=True)
                for own, cells in categories
            ]
            texts, windows = [text for text, _ in both], [window for _, window in both]
        labels = [{name: text[name] for name in dict.fromkeys(columns)} for text in texts]
        if isinstance(self.record, CubeRecord):
            return self._asked_cube(self.record, windows, labels, texts)
        assert slices is not None  # of a series
        if max(map(len, windows)) > 1 and self.record.are_running_totals:
            raise ParameterError(
                "slices must be counts to be added up, got running totals, each of which counts "
                'the slices before it too; ask with when= for one slice, or with each="slice", or '
                "add up those of the other file of the stream",
                name="when",
            )
        chosen = np.unique(np.concatenate(windows))
        nodes = sum(len(record.tree) for record in self.record.releases)
        nodes *= 1 + 2 * values  # a value has a fit for each of its bounds
        # Fits of a large series are not kept: a slice is fitted when it is its turn.
        if nodes <= MOST_KEPT or len(chosen) == 1:
            found = [self._releases[number].index for number in chosen]
        else:
            records = self.record.releases
            found = [QueryIndex(record=records[number], is_kept=False) for number in chosen]
        return AskedTime(
            slices={slices.names[n]: index for n, index in zip(chosen, found, strict=True)},
            windows=tuple(np.searchsorted(chosen, window) for window in windows),
            labels=tuple(labels),
            texts=tuple(texts),
            series=self.record.releases,
        )

    def _one_window(self, when: Any, of: Any = None) -> QueryIndex | CubeWindow:
        """A release without time, or a cube in one window of some categories."""
        if isinstance(self.record, WindowRecord):
            return CubeWindow(index=self._cube, window=self.record.window.numbers)
        if not isinstance(self.record, CubeRecord):
            return self.index
        windows = self._asked_time(when, None, of=of).windows
        if len(windows) > 1:
            raise ParameterError(f"when must be one window, got {len(windows):,}", name="when")
        return CubeWindow(index=self._cube, window=windows[0])

    def _asked_cube(
        self,
        record: CubeRecord,
        windows: Sequence[Integers],
        labels: Sequence[dict[str, str]],
        texts: Sequence[dict[str, str]],
    ) -> AskedTime:
        """Windows of a cube that are asked about."""
        return AskedTime(
            slices={"": QueryIndex(record=record.plane)},
            windows=tuple(windows),
            labels=tuple(labels),
            texts=tuple(texts),
            cube=self._cube,
        )

    @cached_property
    def _cube(self) -> CubeIndex:
        """The fit of a cube, made when it is first asked."""
        record = self.record.cube if isinstance(self.record, WindowRecord) else self.record
        assert isinstance(record, CubeRecord)  # only a cube is asked so
        return CubeIndex(record=record)

    @cached_property
    def _all_time(self) -> Self:
        """The view of a cube in all time and all categories; else the release itself."""
        if not isinstance(self.record, CubeRecord):
            return self
        return self._view(all_time(self.record))

    def _time(self) -> TimeSlices:
        """Time slices, which there must be."""
        if self.slices is None:
            raise ParameterError(
                "release must have time slices, got one without; query it without a time"
            )
        return self.slices

    def _one(self) -> ReleaseRecord:
        """Published fields of a release without time, or of a cube in all time."""
        if isinstance(self.record, SeriesRecord):
            names = self.record.slices.names
            raise ParameterError(
                f"release must be one time slice for this, got {len(names):,}; take one of them, "
                f"such as release[{names[0]!r}]"
            )
        if isinstance(self.record, CubeRecord):
            [record] = shown_records(self.record)
            return record
        return self.record

    @property
    def _first(self) -> ReleaseRecord:
        """Published fields of the release, of its first slice, or of the plane of a cube."""
        return first_record(self.record)

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
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, and what the counts count."""
        return self._first.unit

    @property
    def metadata(self) -> dict[str, str]:
        """What exports state: `about`, epsilon, unit of privacy, source, counts, method, digest.

        Epsilon is that of all time slices together.
        """
        from psd.export._formats import release_metadata

        if not isinstance(self.record, SeriesRecord):
            # What may not be saved has no file, and so no digest.
            has_file = self.record.source in ("curator", "given", "local")
            return release_metadata(self._first, self.digest if has_file else "")
        facts = {**self._releases[0].metadata, "epsilon": epsilon_text(self.record.epsilon)}
        unit = facts["unit_of_privacy"] + self.record.bound_text
        return {**facts, "unit_of_privacy": unit, "digest": self.digest}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the file it was read from, or will be saved to.

        A window has that of its cube.
        """
        if isinstance(self.record, SeriesRecord):
            return series_file.digest_of(self.record)
        if isinstance(self.record, CubeRecord):
            return cube_file.digest_of(self.record)
        if isinstance(self.record, WindowRecord):
            return cube_file.digest_of(self.record.cube)
        return file.digest_of(self.record)

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
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.catalogue("registry")["flavour"]["name"]
        'pure differential privacy'
        """
        from psd.export._catalogue import Described, catalogue_entry

        self._refuse_window("entered in a catalogue")
        described = Described(
            record=self._first,
            metadata=self.metadata,
            guarantee=self.record.guarantee_text,
            file=os.path.basename(file),
            slices=self.slices,
        )
        return catalogue_entry(standard, described)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of regions, the highest first; none without regions."""
        tree = self._first.tree
        if not isinstance(tree, RegionTree):
            return ()
        return tuple(level.name for level in tree.regions.levels)

    # --- estimates ----------------------------------------------------------------------------

    @cached_property
    def index(self) -> QueryIndex:
        """The fit of the cells, and arrays that make queries fast."""
        if isinstance(self.record, CubeRecord):
            return self._all_time.index
        if isinstance(self.record, WindowRecord):
            from psd.query.cube_views import window_index

            return window_index(self._cube, self.record)
        return QueryIndex(record=self._one())

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        if isinstance(self.record, CubeRecord | WindowRecord):
            # Total of a cube in all time, or of a window, without the errors of its cells.
            from psd.query.cube_views import window_counts

            record = self._one()
            assert isinstance(record, WindowRecord)
            count, _ = window_counts(self._cube.fit, record.window.numbers)
            return float(count[0])
        return self.index.total
