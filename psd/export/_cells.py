"""Tables of a release, which every format writes: its cells and its named regions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import shapely
from geopandas.plotting import GeoplotAccessor

from psd._util.declared_parameters import choice
from psd._util.extras import require_matplotlib
from psd.errors import ParameterError
from psd.export._formats import (
    density_unit,
    find_format,
    is_database,
    is_raster,
    write_answers,
)
from psd.export._maps import classes_of
from psd.query.answer_table import (
    Limits,
    Reliability,
    Threshold,
    answer_columns,
    answer_intervals,
    judge_estimates,
    relative_to,
    reliability_limits,
    two_sided_quantile,
)
from psd.query.areas import read_areas
from psd.query.index import QueryIndex
from psd.query.means import ValueFit, fit_values, node_columns
from psd.query.totals import WindowFit, node_totals
from psd.query.windows import answer_areas
from psd.space.ground_areas import ground_areas, ground_densities, shape_ground_areas
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import folium
    import geopandas

    from psd._util.arrays import Integers
    from psd.estimation.fit import Fit
    from psd.release.record import ReleaseRecord
    from psd.space.box_tree import Tree
    from psd.statistics.raster import Raster


class CellTable(gpd.GeoDataFrame):  # type: ignore[misc]
    """A GeoDataFrame of cells.

    `plot` without the name of a column shows the density in classes, with a legend, and `explore`
    a map of classes that can be moved.
    """

    _metadata = [*gpd.GeoDataFrame._metadata, "_record"]  # noqa: RUF012, SLF001

    @classmethod
    def of(cls, cells: gpd.GeoDataFrame, record: ReleaseRecord) -> CellTable:
        """Make a table of the cells of a release."""
        table = cls(cells)
        table.attrs = dict(cells.attrs)
        object.__setattr__(table, "_record", record)
        return table

    def plot(self, column: str | None = None, **options: Any) -> Any:
        """Draw the cells; see `geopandas.GeoDataFrame.plot` for a column or a colour."""
        require_matplotlib("a map")
        if column is None and "color" not in options:
            areas = shapely.area(self.geometry.to_numpy())
            classes = classes_of(self._record, "density", self["density"], areas)
            colours, norm = classes.colour_map()
            legend = {"label": classes.label, "shrink": 0.8, "spacing": "uniform"}
            defaults = {"cmap": colours, "norm": norm, "legend": True, "legend_kwds": legend}
            column, options = (
                "density",
                defaults | {"edgecolor": "face", "linewidth": 0.2} | options,
            )
        return GeoplotAccessor(self)(column=column, **options)

    def explore(self, column: str = "density", *, tiles: Any = None) -> folium.Map:
        """Make an interactive map for a notebook, with folium.

        Parameters
        ----------
        column : str
            What the colours show: ``density``, ``estimate``, ``relative_error``, ``reliable``,
            ``quality`` or a mean, such as ``mean_fare``, which is fainter by its quality.
        tiles : str or folium.TileLayer, optional
            Background, such as ``"OpenStreetMap"``; none by default. The browser fetches it, and
            folium's own scripts, from servers on the internet; this library fetches nothing.

        Raises
        ------
        ParameterError
            If there is no such column.
        MissingExtraError
            If folium is not installed.
        """
        from psd.export._views import explore_release

        return explore_release(self._record, gpd.GeoDataFrame(self), column, tiles=tiles)


CONFIDENCE = 0.95
"""Confidence of the intervals of tables and rasters that have none."""

TREATMENTS = ("keep", "mark", "drop")

FLAG = "u"
"""Mark of an unreliable estimate: low reliability, in the list of flags of Eurostat and SDMX."""


def check_treatment(treatment: str, threshold: Threshold) -> Limits:
    """Check that a treatment exists; return the limits of a threshold."""
    choice(*TREATMENTS)("unreliable", treatment)
    return reliability_limits(threshold)


def judge_raster(raster: Raster, limits: Limits) -> Reliability:
    """Classify the counts of a raster; their intervals are those of their errors alone."""
    reach = two_sided_quantile(CONFIDENCE)
    relative = relative_to(raster.count, raster.error)
    return judge_estimates(relative, raster.count - reach * raster.error, limits)


def treat_unreliable(table: Any, treatment: str, threshold: Threshold) -> Any:
    """Keep, mark or leave out the rows of a table whose column ``reliable`` is false.

    ``keep`` changes nothing; ``mark`` adds the column ``flag``, which is ``u`` in such rows and
    otherwise empty; ``drop`` leaves them out. Marked and shortened tables state the limit of
    reliable estimates in the column ``threshold``.
    """
    if treatment == "keep":
        return table
    stated = {"threshold": reliability_limits(threshold).reliable}
    for name in ("threshold", *(("flag",) if treatment == "mark" else ())):
        if name in table:
            raise ParameterError(
                f"regions must not have a column {name}, which unreliable={treatment!r} adds; "
                "rename it"
            )
    if treatment == "mark":
        marks = np.where(table["reliable"].to_numpy(bool), "", FLAG)
        return table.assign(flag=marks, **stated)
    return table[table["reliable"].to_numpy(bool)].assign(**stated)


# Rows of a table at a time, about 40 MB with their polygons.
_ROWS = 2**13


def cells_table(
    fit: Fit,
    cells: str = "leaves",
    *,
    level: int | str | None = None,
    threshold: Threshold = 0.3,
) -> geopandas.GeoDataFrame:
    """Cells with estimates and boxes as geometry; see `Release.to_geopandas`."""
    which = select_cells(fit.tree, cells, level)
    # Densities are per area on the ground, the unit of rankings, class breaks and rasters. A column
    # ``release_source`` tells counts that are not of the curator.
    return _table_of(fit, fit_values(fit), which, threshold)


def cell_tables(
    fit: Fit, cells: str, *, level: int | str | None, threshold: Threshold
) -> Iterator[geopandas.GeoDataFrame]:
    """Tables of some cells each, one after the other those of `cells_table`; at least one."""
    which, values = select_cells(fit.tree, cells, level), fit_values(fit)
    for start in range(0, max(len(which), 1), _ROWS):
        yield _table_of(fit, values, which[start : start + _ROWS], threshold)


def _table_of(
    fit: Fit, values: list[ValueFit], which: Integers, threshold: Threshold
) -> geopandas.GeoDataFrame:
    """Table of some cells."""
    tree, estimates = fit.tree, fit.estimates
    count, error = estimates.count[which], np.sqrt(fit.noise_covariance.variance[which])
    relative, uneven = relative_to(count, error), dict[str, Any]()
    if isinstance(fit, WindowFit):  # records of cells may lie in other slices, and elsewhere
        certainty: dict[str, Any] = {"confidence": CONFIDENCE, "threshold": threshold}
        answers: dict[str, Any] = answer_columns(fit.cells[which], fit.record, **certainty)
        count, relative = answers["estimate"], answers["relative_error"]
        uneven = {name: answers[name] for name in ("nonuniformity_error", "error")}
    # Classify the estimates of nodes as answers to queries of them are, at 95 % confidence.
    lower, _ = answer_intervals(node_totals(fit, which), CONFIDENCE)
    reliability = judge_estimates(relative, lower, reliability_limits(threshold))
    source = fit.record.source
    stated = {} if source == "curator" else {"release_source": [source] * len(which)}
    west, south, east, north = fit.domain.from_lattice(tree.boxes[which]).T
    areas = ground_areas(fit.domain, tree.boxes[which].astype(np.float64))
    return gpd.GeoDataFrame(
        {
            "cell": which,
            "level": tree.level[which],
            "estimate": count,
            "perturbation_error": error,
            **uneven,
            "density": ground_densities(count, areas),
            "relative_error": relative,
            "reliable": reliability.reliable,
            "quality": reliability.quality,
            **node_columns(values, which, CONFIDENCE, threshold),
            **stated,
        },
        geometry=shapely.box(west, south, east, north),
        crs=fit.domain.crs,
    )


def select_cells(tree: Tree, cells: str, level: int | str | None) -> Integers:
    """Nodes of a table: the leaves, all of them, or those that tile the domain at a level."""
    choice("leaves", "all")("cells", cells)
    if level is None:
        return np.flatnonzero(tree.is_leaf) if cells == "leaves" else np.arange(len(tree))
    deepest = int(tree.level.max())
    if cells != "leaves":
        raise ParameterError(f"level must be left out with cells={cells!r}, got {level}")
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= deepest:
        raise ParameterError(
            f"level must be an integer from 0, the domain, to {deepest}, the finest cells, got "
            f"{level}"
        )
    return np.flatnonzero((tree.level == level) | (tree.is_leaf & (tree.level < level)))


def named_regions_table(
    index: QueryIndex,
    level: int | str | None,
    *,
    confidence: float,
    threshold: Threshold,
) -> geopandas.GeoDataFrame:
    """Regions of a level with estimates and polygons; see `Release.to_geopandas`."""
    domain, source = index.record.domain, index.record.source
    regions = read_areas(None, domain, index.record.tree, level=level)
    numbers = range(len(index.record.values))
    both = [(kind, number) for number in numbers for kind in ("mean", "sum")]
    answers = regions.table(
        answer_areas(index, regions, confidence=confidence, threshold=threshold, values=both)
    )
    shapes = regions.shapes(domain)
    areas = shape_ground_areas(domain, shapes)
    answers.insert(2, "density", ground_densities(answers["estimate"].to_numpy(), areas))
    if source != "curator":
        answers["release_source"] = source
    return gpd.GeoDataFrame(answers, geometry=shapes, crs=domain.crs)


def export_regions(
    record: ReleaseRecord,
    regions: geopandas.GeoDataFrame,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str],
    crs: Any,
    unreliable: str,
    threshold: Threshold,
    overwrite: bool,
) -> int:
    """Write the table of a level; number of rows left out; see `Release.export`."""
    limits = check_treatment(unreliable, threshold)
    writer = find_format(path)
    if is_raster(writer) or is_database(writer):
        raise ParameterError(
            f"output must be a file of a table for a release with regions, got {path}; such as "
            ".gpkg, .parquet or .csv"
        )
    table = treat_unreliable(regions, unreliable, threshold)
    if crs is not None:
        table = transform_table(table, crs)
    stated = {
        **metadata,
        **limits.texts,
        "unreliable": unreliable,
        "density_unit": density_unit(record),
    }
    write_answers(
        table,
        path,
        suffix=writer.SUFFIX,
        content="regions",
        metadata=stated,
        overwrite=overwrite,
    )
    return len(regions) - len(table)
