"""`Answers`: what `Release.query` gives, and what follows from it. Public."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.api.guesses import guessed_of_answers
from psd.errors import ParameterError
from psd.query.answer_table import Threshold
from psd.query.areas import Areas, answers_table, beside_shapes
from psd.query.index import CubeWindow, QueryIndex

if TYPE_CHECKING:
    import folium
    import geopandas
    import pandas
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from psd.api.publication import AskedTime
    from psd.query.explain import Explanation
    from psd.query.joint import Derived, Joint
    from psd.space.domain import Domain


# What a map shows if no column is named.
_SHOWN = ("estimate", "difference", "ratio")

# Columns of values that a message names.
_NAMED = 6


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answers:
    """Estimated counts of areas, with predicted errors; made by `Release.query`.

    Guarantees
    ----------
    - All of it is post-processing: it reads the release alone and costs no epsilon.
    - `joint`, `total` and `explain` are computed when they are asked for.

    Parameters
    ----------
    areas : psd.query.areas.Areas
        What was asked about.
    time : psd.api.publication.AskedTime
        The time slices that were asked about, and the windows of them that were answered.
    blocks : tuple of dict of arrays
        Columns of the answers of each window.
    guarantee : str
        Epsilon and unit of privacy.
    confidence, threshold
        As in `Release.query`.
    statistic : str
        ``top``, ``quantiles`` or ``difference`` if it was asked for in place of counts.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [50, 10, 0, 20], 1.0, domain=domain)
    >>> answers = release.query([(0, 0, 1, 1), (1, 0, 2, 1)])
    >>> len(answers), answers["estimate"].round(1).tolist()
    (2, [50.0, 10.0])
    >>> answers.table[["id", "error", "quality"]].round(2).values.tolist()
    [[1, 1.42, 'good'], [2, 1.42, 'use with care']]
    >>> round(answers.total().estimate, 1)
    60.0
    """

    areas: Areas
    time: AskedTime
    blocks: tuple[dict[str, Any], ...]
    guarantee: str
    confidence: float
    threshold: Threshold
    statistic: str = ""
    _made: Any = None  # the table of a statistic
    _rows: Any = None  # numbers of the areas in a table of ranks

    __iter__ = None
    """A table is not a sequence of rows; `table` has rows and columns."""

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.areas) * len(self.blocks) if self._made is None else len(self._made)

    def __getitem__(self, name: str) -> pandas.Series[Any]:
        """One column of the table."""
        return self.table[name]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Columns and writers, as in pandas; see `psd.api.guesses`."""
            return guessed_of_answers(self, name)

    def __repr__(self) -> str:
        notes = "".join(f"\nNote: {note}." for note in self.notes)
        return f"{self.table!r}\n<Answers: {len(self):,}, {self.guarantee}>{notes}"

    @cached_property
    def table(self) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Answers in the order of the areas, beside what the caller gave.

        For a table, its columns, index and CRS, followed by the columns of the answers; for a
        GeoSeries its geometry and index. The columns of the answers are ``id`` (not beside a table
        of polygons or of ids), ``estimate, perturbation_error, nonuniformity_error, error, lower,
        upper, relative_perturbation_error, relative_nonuniformity_error, relative_error, reliable,
        quality``. Several windows have a column ``when`` in front, and ``each="slice"`` a column
        ``slice``. Errors are predicted standard deviations in records; where users are counted, all
        of these are in users.
        Relative errors are divided by the estimate, and infinite where it is 0 and the error is
        not. An answer is reliable if its relative error is at most the threshold and its interval
        lies above 0. Its quality is ``good``, ``use with care`` or, if it is not reliable,
        ``poor``. Statistics have the columns that `Release.query` states.
        """
        if self._made is not None:
            made: pandas.DataFrame = self._made
            return made
        return answers_table(self.areas, self.blocks, self.time.labels)

    @property
    def arrays(self) -> dict[str, Any]:
        """The columns of the answers alone, with ids, as lists and arrays; needs no pandas."""
        if self._made is not None:
            return {str(name): self._made[name].to_numpy() for name in self._made}
        named: dict[str, Any] = {
            name: [label[name] for label in self.time.labels for _ in range(len(self.areas))]
            for name in self.time.labels[0]
        }
        ids = np.array(self.areas.labels(), object)
        named["id"] = np.resize(ids, len(self)).tolist()
        blocks = self.blocks
        return {**named, **{n: np.concatenate([each[n] for each in blocks]) for n in blocks[0]}}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the answers leave out: parts beyond the bounds, and in no region.

        They follow from public geometry alone. A statistic of cells has none.
        """
        from psd.query.areas import notes_of

        if self.statistic not in ("", "difference"):
            return ()
        record = next(iter(self.time.slices.values())).record
        return notes_of(self.areas, record.domain, record.tree)

    def joint(self, of: str = "estimate") -> Joint:
        """Answer areas and windows together, with their covariance, for differences and ratios.

        Windows share the noise of the slices that are in both; see `psd.query.joint.Joint`.

        Parameters
        ----------
        of : str
            The column that is answered: the counts, or a mean or sum of a value of the release,
            such as ``mean_fare``, whether it was asked for or not.

        Returns
        -------
        psd.query.joint.Joint
            Its ``answers`` are `table` with ``joint_lower, joint_upper``: all of these intervals
            hold together with the confidence of the query.

        Raises
        ------
        ParameterError
            If there are more than 5,000 answers, they are no counts, or there is no such column.
        """
        from psd.query.cube_covariance import answer_cube_jointly
        from psd.query.joint import answer_windows_jointly
        from psd.query.joint_values import answer_values_jointly

        self._check_counts("joint answers")
        values = next(iter(self.time.slices.values())).record.values if self.time.slices else ()
        asked_of = {f"{kind}_{value.name}": (kind, number)
                    for number, value in enumerate(values) for kind in ("mean", "sum")}  # fmt: skip
        if of != "estimate" and of not in asked_of:
            others = ", ".join(list(asked_of)[:_NAMED]) or "the release has no values"
            raise ParameterError(
                f"of must be estimate, or a mean or sum of a value ({others}), got "
                f"{str(of)[:80]!r}",
                name="of",
            )
        certainty: dict[str, Any] = {"confidence": self.confidence, "threshold": self.threshold}
        asked = self.time.windows, self.time.labels, self.areas
        if self.time.cube is not None:
            return answer_cube_jointly(self.time.cube, *asked, **certainty)
        certainty["series"] = self.time.series
        slices = list(self.time.slices.values())
        if of in asked_of:
            return answer_values_jointly(slices, *asked, **certainty, value=asked_of[of])
        return answer_windows_jointly(slices, *asked, **certainty)

    def total(self, of: str = "estimate") -> Derived:
        """All answers together: the answer to the union of areas and windows, with its error.

        Parameters
        ----------
        of : str
            As in `joint`; means have no total.

        Returns
        -------
        psd.query.joint.Derived
            ``estimate, perturbation_error, nonuniformity_error, error, lower, upper``.

        Raises
        ------
        ParameterError
            If answers overlap, so that points in both would be counted twice; or as in `joint`.
        """
        return self.joint(of).total()

    def nested(
        self, *, parents: ArrayLike | None = None
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Count areas that lie in each other so that they add up, and the rings between them.

        Each area lies inside the next; or the table that was asked about has columns ``id`` and
        ``parent``, the id of the area that each lies in.

        Parameters
        ----------
        parents : array_like of int, optional
            Index of the area that contains each area, from 0; -1 for an area without a parent.

        Returns
        -------
        DataFrame or GeoDataFrame
            As `table`, and ``ring, ring_error, ring_lower, ring_upper``: the count inside an area
            but outside the areas directly inside it. The estimate of an area is the sum of its
            ring and of the areas inside it, and no ring is negative.

        Raises
        ------
        ParameterError
            If an area does not lie inside its parent, areas of one parent overlap, or several time
            slices were answered.
        """
        from psd.statistics.several_areas import answer_nested

        return answer_nested(
            self._one_window("nested answers"),
            self.areas,
            parents=parents,
            confidence=self.confidence,
            threshold=self.threshold,
        )

    def explain(self) -> list[Explanation]:
        """Explain the error of each answer, and what would reduce it.

        Returns
        -------
        list of psd.query.explain.Explanation
            In the order of the answers; each takes as long as some thousand answers.

        Raises
        ------
        ParameterError
            If the areas are regions by name, or several time slices of a series were answered.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
        >>> tree = psd.decompositions.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [500, 100, 0, 200], 1.0, domain=domain)
        >>> [found] = release.query([(0, 0, 1, 2)]).explain()
        >>> found.noise_share < 0.01
        True
        >>> found.remedies[["change", "error"]].round(1).values.tolist()[-1]
        ['cells half as wide at its edge', 2.0]
        """
        from psd.query.cubes import Windows
        from psd.query.explain import explain_areas, explain_windows

        if self.time.cube is not None:
            fit = self.time.cube.fit
            windows = Windows.of_cells(self.time.windows, fit.record.sizes)
            return explain_windows(fit, self.areas, windows)
        asked = self._one_window("explanations")
        assert isinstance(asked, QueryIndex)  # a cube is refused
        return explain_areas(asked.fit, self.areas)

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """`table` with the geometry of each area, in the CRS of the caller or of the release."""
        import geopandas as gpd

        if self.statistic == "quantiles":
            raise ParameterError("quantiles must be left out for a map; class breaks have no place")
        if self._rows is None or isinstance(self.table, gpd.GeoDataFrame):
            return beside_shapes(self.table, self.areas, self._domain)
        shapes = self.areas.shapes(self._domain)[self._rows]
        return gpd.GeoDataFrame(self.table, geometry=shapes, crs=self._domain.crs)

    def plot(
        self, column: str | None = None, *, ax: Axes | None = None, cmap: Any = "viridis"
    ) -> Axes:
        """Draw the areas in the colours of a column, with matplotlib.

        Parameters
        ----------
        column : str, optional
            A column of `table`; by default the estimate, difference or ratio. Relative errors that
            are infinite are left blank, and means are fainter by their quality, poor ones hatched.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        cmap : str or matplotlib Colormap
            Colours.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ParameterError
            If there is no such column, or several windows were answered.
        MissingExtraError
            If matplotlib is not installed.
        """
        from psd._util.extras import picture_text, require_matplotlib

        require_matplotlib("a map of answers")
        if column is None:
            column = next((name for name in _SHOWN if name in self.table), "estimate")
        shapes = self._drawn(column)
        values = shapes[column]
        if values.dtype.kind == "f":
            values = values.where(np.isfinite(values))
        elif values.dtype.kind == "O":  # names, for a key
            values = values.map(lambda name: picture_text(str(name)), na_action="ignore")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(7, 5.5), layout="compressed")
        from psd.export._maps import OPACITY, opacities

        opacity = opacities(shapes, column)
        faint = {} if opacity is None else {"alpha": opacity}
        drawn: Axes = shapes.plot(column=values, ax=ax, cmap=cmap, legend=True, **faint)
        if opacity is not None and (poor := opacity == OPACITY[-1]).any():
            stripes = {"facecolor": "none", "edgecolor": "#7a7a7a", "linewidth": 0}
            shapes[poor].plot(ax=ax, hatch="/////", **stripes)
        title = "\n".join([column.replace("_", " "), *textwrap.wrap(self.guarantee, 60)])
        drawn.set_title(picture_text(title))
        drawn.title.set_fontsize(10)
        return drawn

    def explore(
        self,
        column: str = "estimate",
        *,
        tiles: Any = None,
    ) -> folium.Map:
        """Make an interactive map of the areas for a notebook, with folium.

        Parameters
        ----------
        column : str
            What the colours show: ``estimate``, ``relative_error``, ``reliable``, ``quality`` or a
            mean, such as ``mean_fare``, which is fainter by its quality.
        tiles : str or folium.TileLayer, optional
            Background, such as ``"OpenStreetMap"``; none by default. The browser fetches it, and
            folium's own scripts, from servers on the internet; this library fetches nothing.

        Returns
        -------
        folium.Map

        Raises
        ------
        ParameterError
            If there is no such column, or several windows were answered.
        MissingExtraError
            If folium is not installed.
        """
        from psd.export._views import explore_release

        [index, *_] = self.time.slices.values()
        return explore_release(index.record, self._drawn(column), column, tiles=tiles)

    def _repr_html_(self) -> str:
        """The table and the guarantee, in notebooks."""
        from html import escape

        shown: Any = self.table
        said = (f"{len(self):,} answers, {self.guarantee}", *(f"Note: {x}." for x in self.notes))
        return f"{shown._repr_html_()}{''.join(f'<p>{escape(each)}</p>' for each in said)}"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Stream `table` to libraries that read Arrow; geometries are WKB (GeoArrow)."""
        import geopandas as gpd
        import pyarrow as pa

        if isinstance(self.table, gpd.GeoDataFrame):
            shapes = self.table.to_arrow(index=False, geometry_encoding="WKB")
            return shapes.__arrow_c_stream__(requested_schema)
        table = pa.Table.from_pandas(self.table, preserve_index=False)
        return table.__arrow_c_stream__(requested_schema)

    @property
    def _domain(self) -> Domain:
        """Domain of every slice."""
        return next(iter(self.time.slices.values())).record.domain

    def _check_counts(self, what: str) -> None:
        """Refuse statistics."""
        if self.statistic:
            raise ParameterError(
                f"{self.statistic} must be left out for {what}, which are of counts",
                name=self.statistic,
            )

    def _one_window(self, what: str) -> QueryIndex | CubeWindow:
        """The release, or the only slice or window of a cube, that was answered."""
        self._check_counts(what)
        cube, number = self.time.cube, len(self.time.windows)
        if cube is not None and number == 1:
            return CubeWindow(index=cube, window=self.time.windows[0])
        if cube is not None:
            raise ParameterError(f"when must be one window for {what}, got {number:,}", name="when")
        if len(self.time.windows) > 1 or len(self.time.slices) > 1:
            raise ParameterError(
                f"when must be one time slice for {what}, such as {next(iter(self.time.slices))}, "
                f"got {time_text(self.time)}",
                name="when",
            )
        return next(iter(self.time.slices.values()))

    def _drawn(self, column: str) -> geopandas.GeoDataFrame:
        """Areas with one row each, and the column."""
        if len(self.blocks) > 1:
            name = "each" if "slice" in self.time.labels[0] else "when"
            rule = "left out" if name == "each" else "one window"
            raise ParameterError(
                f"{name} must be {rule} for a map, which shows one answer for each area, got "
                f"{time_text(self.time)}",
                name=name,
            )
        shapes = self.to_geopandas()
        if column not in shapes.columns:
            raise ParameterError(
                f"column must be one of the answers, such as estimate, got {str(column)[:80]!r}"
            )
        return shapes


def time_text(time: AskedTime) -> str:
    """How many windows, or slices together, were asked about."""
    if len(time.windows) > 1:
        return f"{len(time.windows):,} windows"
    return f"{len(time.slices):,} together"
