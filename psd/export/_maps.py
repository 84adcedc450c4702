"""Maps of a release, drawn by matplotlib: density, estimates, and their errors."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np
import shapely
from numpy.typing import NDArray

from psd._util.colours import (
    RELIABILITY,
    RELIABILITY_LEVELS,
    class_breaks,
    class_colours,
    even_breaks,
)
from psd._util.declared_parameters import choice
from psd._util.extras import picture_text, require_matplotlib
from psd.errors import ParameterError
from psd.export._formats import counted_unit, density_unit
from psd.query.answer_table import QUALITIES, Limits, Threshold, reliability_limits
from psd.release.cube import WindowRecord
from psd.space.crs import axis_labels
from psd.space.ground_areas import east_west_scale, ground_width
from psd.space.region_tree import ELSEWHERE
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas
    from matplotlib.axes import Axes
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure

    from psd._util.arrays import Floats
    from psd.release.record import ReleaseRecord
    from psd.space.domain import Domain


KINDS = ("density", "estimate", "relative_error", "reliable", "quality")

OPACITY = (1.0, 0.66, 0.3)
"""Opacity of a mean by its quality; poor ones are hatched too."""

# What says that a map of means shows their reliability.
_FAINT = "faint: use with care; hatched: poor"

# Points between a map and its scale bar, under the labels of the axis.
_BELOW_LABELS = 34

# Rim around the named regions, in their larger side.
_RIM = 0.03

# A part of a domain has none of its steps.
_NO_STEPS: dict[str, Any] = {"coordinate_resolution": None, "min_cell": None}

# Letters of a line of the title.
_LINE = 70

_UNRELIABLE = ("#bdbdbd", "#2c7bb6")
_QUALITIES = ("#2c7bb6", "#fdae61", "#bdbdbd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Classes of a column: their edges, colours and heading."""

    edges: tuple[float, ...]  # limits of the classes, one more than there are classes
    colours: tuple[str, ...]  # a colour of each class
    label: str  # what the numbers are, with their unit

    def colour_map(self) -> tuple[ListedColormap, BoundaryNorm]:
        """Colours and limits as matplotlib takes them."""
        from matplotlib.colors import BoundaryNorm, ListedColormap

        return ListedColormap(list(self.colours)), BoundaryNorm(self.edges, len(self.colours))

    def recoloured(self, cmap: Any) -> Classes:
        """The same classes in colours of a colour map of matplotlib, if one is given."""
        if cmap is None:
            return self
        from matplotlib import colormaps, colors

        if isinstance(cmap, str) and cmap not in colormaps:
            raise ParameterError(
                f"cmap must be a colour map of matplotlib, such as viridis, got {cmap[:80]!r}"
            )
        chosen, number = colormaps.get_cmap(cmap), len(self.colours)
        colours = tuple(colors.to_hex(chosen((at + 0.5) / number)) for at in range(number))
        return replace(self, colours=colours)


def check_kind(record: ReleaseRecord, kind: str) -> None:
    """Check that a map shows a column: one of `KINDS`, or the mean of a value."""
    choice(*KINDS, *(f"mean_{value.name}" for value in record.values))("kind", kind)


def classes_of(
    record: ReleaseRecord, kind: str, values: Any, areas: Any = None, quality: Any = None
) -> Classes:
    """Classes of a column of cells, whose areas on the map are the same if they are not given.

    quality: names of the classes of means; poor ones do not decide what the classes are.
    """
    if kind == "reliable":
        return Classes(edges=(-0.5, 0.5, 1.5), colours=_UNRELIABLE, label="reliable")
    if kind == "quality":
        return Classes(edges=(-0.5, 0.5, 1.5, 2.5), colours=_QUALITIES, label="quality")
    values = np.asarray(values, np.float64)
    if kind not in KINDS:
        value = record.values[record.value_named(kind.removeprefix("mean_"))]
        exact = np.asarray(quality) != QUALITIES[-1]
        exact = exact if exact.any() else ~exact
        breaks = even_breaks(values[exact], np.asarray(areas)[exact])
        colours = class_colours(len(breaks) + 1)
        edges = (value.lower, *breaks, value.upper)
        return Classes(edges=edges, colours=tuple(colours), label=f"mean of {value.name}")
    if kind == "relative_error":
        # Breaks of the published levels of reliability, and the largest error as the end.
        finite = values[np.isfinite(values)]
        top = max(float(finite.max(initial=0.0)), 2 * RELIABILITY_LEVELS[-1])
        edges = (0.0, *RELIABILITY_LEVELS, top)
        return Classes(edges=edges, colours=RELIABILITY, label="relative error")
    label = density_unit(record).replace("km2", "km²")
    if kind != "density":
        label = counted_unit(record.counted_text)
    breaks = class_breaks(values, None if areas is None else np.asarray(areas))
    low = min(0.0, float(np.nanmin(values, initial=0.0)))
    # Twice the last break at least, so that the colour bar shows the last class.
    top = max([float(np.nanmax(values, initial=0.0)), 1.0, *(2 * each for each in breaks[-1:])])
    colours = class_colours(len(breaks) + 1)
    return Classes(edges=(low, *breaks, top), colours=tuple(colours), label=label)


def shown_values(cells: Any, kind: str) -> Floats:
    """Numbers of a column that a map shows."""
    if kind == "quality":
        return np.array([QUALITIES.index(name) for name in cells[kind]], np.float64)
    values: Floats = cells[kind].to_numpy(np.float64)
    return values


def opacities(cells: Any, kind: str) -> Floats | None:
    """Opacity of each mean by its quality, (n,) float64; None for what is not a mean."""
    if f"{kind}_quality" not in cells:
        return None
    ranks = [QUALITIES.index(name) for name in cells[f"{kind}_quality"]]
    return np.array(OPACITY)[np.array(ranks, np.int64)]


def draw_release(
    record: ReleaseRecord,
    cells: geopandas.GeoDataFrame,
    kind: str,
    *,
    outline: Any,
    threshold: Threshold,
    axes: Axes | None,
    cmap: Any = None,
) -> Axes:
    """Draw a table of cells, or of named regions; see `Release.plot`."""
    require_matplotlib("a map")
    check_kind(record, kind)
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(7, 5.5), layout="compressed")
    named = cells[named_rows(cells)]
    areas = shapely.area(named.geometry.to_numpy())
    values, quality = shown_values(named, kind), named.get(f"{kind}_quality")
    classes = classes_of(record, kind, values, areas, quality).recoloured(cmap)
    shown = fill_cells(axes, named, kind, classes)
    add_key(axes.figure, axes, shown, classes, kind, reliability_limits(threshold))
    view = view_of(record.domain, named, cells)
    frame_map(axes, view, outline)
    xlabel, ylabel = map(picture_text, axis_labels(record.domain.crs))
    axes.set(
        xlabel=xlabel,
        ylabel=ylabel,
        title=title_of(record, kind, record.guarantee_text),
    )
    axes.title.set_fontsize(10)
    axes.locator_params(nbins=5)
    axes.ticklabel_format(useOffset=False, style="plain")
    draw_scale_bar(axes, view, below=_BELOW_LABELS)
    return axes


def named_rows(table: Any) -> NDArray[np.bool_]:
    """Rows shown in classes: all but the rest's region, whose area would take most classes."""
    if "cell" in table or "id" not in table:
        return np.ones(len(table), bool)
    named: NDArray[np.bool_] = (table["id"] != ELSEWHERE).to_numpy(bool)
    return named if named.any() else ~named


def view_of(domain: Domain, named: Any, every: Any) -> Domain:
    """Part of a domain that a map shows first: all of it, or what `named_rows` fill, with a rim."""
    if len(named) == len(every):
        return domain
    sides = np.array(named.total_bounds)
    rim = _RIM * (sides[2:] - sides[:2]).max()
    low = np.maximum(sides[:2] - rim, domain.bounds[:2])
    high = np.minimum(sides[2:] + rim, domain.bounds[2:])
    return replace(domain, bounds=(*low.tolist(), *high.tolist()), **_NO_STEPS)


def frame_map(axes: Axes, domain: Domain, outline: Any) -> None:
    """Show the domain, as wide as it is on the ground, and the outlines of polygons."""
    if outline is not None:
        shapes = transform_table(outline.geometry.to_frame("geometry"), domain.crs, "outline")
        shapes.boundary.plot(ax=axes, color="#333333", linewidth=0.7, aspect=None)
    west, south, east, north = domain.bounds
    axes.set(
        xlim=(west, east),
        ylim=(south, north),
        aspect=1 / float(east_west_scale(domain, (south + north) / 2)),
    )


def title_of(record: ReleaseRecord, kind: str, guarantee: str, common: Sequence[str] = ()) -> str:
    """Title of the release, what the map shows, and the guarantee; common: names all maps show."""
    subject = {
        "density": "Estimated density",
        "estimate": "Estimated counts",
        "relative_error": "Relative error of the estimates",
        "reliable": "Reliable estimates",
        "quality": "Quality of the estimates",
    }.get(kind, f"Estimated mean of {kind.removeprefix('mean_')} ({_FAINT})")
    shown = record.shown.values() if isinstance(record, WindowRecord) else common
    subject = ", ".join([subject, *shown])
    about = record.about
    lines = [] if about is None or about.title is None else textwrap.wrap(about.title, _LINE)
    title = "\n".join([*lines[:2], subject, guarantee])
    return picture_text(title)


def fill_cells(axes: Axes, cells: Any, kind: str, classes: Classes) -> Any:
    """Draw polygons in the colours of their classes; return what `add_key` explains."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.path import Path

    colours, norm = classes.colour_map()
    # A relative error may be infinite.
    values = np.minimum(shown_values(cells, kind), classes.edges[-1])
    if "cell" in cells:
        west, south, east, north = cells.geometry.bounds.to_numpy().T
        corners = np.stack([[west, south], [east, south], [east, north], [west, north]])
        # In the colour of the fill: without it, gaps between cells shine through.
        rim: dict[str, Any] = {"edgecolors": "face", "linewidths": 0.2}
        shown: Any = PolyCollection(list(corners.transpose(2, 0, 1)), **rim)
    else:  # regions, with their holes
        paths = []
        for shape in cells.geometry:
            parts = getattr(shape, "geoms", [shape])
            polygons = [part for part in parts if part.geom_type == "Polygon"]
            rings = [ring for part in polygons for ring in (part.exterior, *part.interiors)]
            vertices = [np.asarray(ring.coords)[:, :2] for ring in rings]
            paths.append(Path.make_compound_path(*(Path(xy, closed=True) for xy in vertices)))
        shown = PathCollection(paths, edgecolors="#5a5a5a", linewidths=0.4)
    shown.set(array=values, cmap=colours, norm=norm)
    axes.add_collection(shown)
    opacity = opacities(cells, kind)
    if opacity is None:
        return shown
    # Mixed with white: colours that let others shine through would show the rims of cells.
    mixed = 1 - opacity[:, None] * (1 - colours(norm(values))[:, :3])
    shown.set(array=None, facecolors=mixed)
    poor = [shown.get_paths()[at] for at in np.flatnonzero(opacity == OPACITY[-1])]
    stripes: dict[str, Any] = {"facecolors": "none", "edgecolors": "#7a7a7a", "linewidths": 0}
    axes.add_collection(PathCollection(poor, hatch="/////", **stripes))
    return ScalarMappable(norm, colours)


def add_key(
    figure: Any, axes: Any, shown: Any, classes: Classes, kind: str, limits: Limits
) -> None:
    """Explain the colours beside the map, or beside several maps: a colour bar or a legend."""
    if kind in ("reliable", "quality"):
        _add_legend(figure, axes, classes, kind, limits)
        return
    label = picture_text(classes.label)
    bar = figure.colorbar(shown, ax=axes, shrink=0.8, spacing="uniform", label=label)
    ticks = classes.edges if len(classes.edges) > 2 else (classes.edges[0], classes.edges[-1])
    percent = kind == "relative_error"
    texts = [
        f"{each:.0%}" if percent else f"{each:,.0f}" if each >= 1e6 else f"{each:,.6g}"
        for each in ticks[:-1]
    ]
    bar.set_ticks(ticks, labels=[*texts, "" if kind in KINDS else f"{ticks[-1]:,.6g}"])


def _add_legend(figure: Any, axes: Any, classes: Classes, kind: str, limits: Limits) -> None:
    """Say what the colours mean, where no map is."""
    from matplotlib.patches import Patch

    good, limit = f"{100 * limits.good:g}%", f"{100 * limits.reliable:g}%"
    words: tuple[str, ...] = (f"relative error above {limit}", f"at most {limit}")
    if kind == "quality":
        words = (f"good: relative error at most {good}", f"use with care: at most {limit}", "poor")
    patches = [
        Patch(color=colour, label=text) for colour, text in zip(classes.colours, words, strict=True)
    ]
    if kind == "reliable":
        patches = patches[::-1]
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "borderaxespad": 0}
    # Of several maps, beside the one at the top right.
    last = np.atleast_2d(np.asarray(axes, object))[0, -1]
    last.legend(handles=patches, fontsize="small", frameon=False, **beside)


def draw_scale_bar(axes: Axes, domain: Domain, *, below: float) -> None:
    """Draw a scale of round kilometres on the ground there, `below` points under a map."""
    from matplotlib.transforms import ScaledTranslation

    west, south, east, north = domain.bounds
    width = ground_width(domain, south + 0.05 * (north - south)) / 1000
    if not width > 0:
        return
    length = _round_length(width / 4)
    end = west + length / width * (east - west)
    lowered = axes.transData + ScaledTranslation(0, -below / 72, axes.figure.dpi_scale_trans)
    line: dict[str, Any] = {"color": "black", "linewidth": 2.5, "solid_capstyle": "butt"}
    axes.plot([west, end], [south, south], transform=lowered, clip_on=False, **line)
    axes.annotate(
        f"{length:g} km" if length >= 1 else f"{1000 * length:g} m",
        (end, south),
        xycoords=lowered,
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        annotation_clip=False,
    )


def _round_length(longest: float) -> float:
    """Largest of 1, 2 and 5 times a power of ten that is not longer."""
    power = 10.0 ** np.floor(np.log10(longest))
    factor = max(step for step in (1, 2, 5) if step * power <= longest)
    return float(f"{factor * power:.3g}")


MOST_MAPS = 48
"""Most maps of a figure; more are too small to be read."""

# Inches of a map, and of the title and the key.
_SIZE, _ROOM = 2.3, 1.4

# Letters of a line above a map, and lines; Chinese, Japanese and Korean letters are twice as wide.
_LETTERS, _LINES = 26, 3

_BELOW = 8


def draw_series(
    record: ReleaseRecord,
    cells: Mapping[str, geopandas.GeoDataFrame],
    kind: str,
    *,
    common: Sequence[str] = (),
    columns: int = 0,
    guarantee: str,
    outline: Any,
    threshold: Threshold,
    cmap: Any = None,
) -> Figure:
    """Draw tables of cells, or of named regions, by slice, as `Release.plot`."""
    require_matplotlib("a map")
    check_kind(record, kind)
    if not 0 < len(cells) <= MOST_MAPS:
        raise ParameterError(
            f"slices must give 1 to {MOST_MAPS} maps in one picture, got {len(cells):,}; name some"
        )
    from matplotlib import pyplot

    # For pairs, the columns are as many as second names.
    # Rows from half to twice the columns; otherwise a grid 1.4 times as wide as high.
    if not 4 * columns**2 >= 2 * len(cells) >= columns**2:
        columns = min(len(cells), ceil(sqrt(1.4 * len(cells))))
    rows = ceil(len(cells) / columns)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(max(_SIZE * columns + _ROOM, 6), _SIZE * rows + _ROOM),
        layout="compressed",
        squeeze=False,
    )
    tables = [table[named_rows(table)] for table in cells.values()]
    view = view_of(record.domain, tables[0], next(iter(cells.values())))
    # One classification of all slices, so that a colour means the same on each map.
    values = np.concatenate([shown_values(table, kind) for table in tables])
    areas = np.concatenate([shapely.area(table.geometry.to_numpy()) for table in tables])
    quality = [list(table.get(f"{kind}_quality", ())) for table in tables]
    classes = classes_of(record, kind, values, areas, np.concatenate(quality)).recoloured(cmap)
    for axes, name, table in zip(grid.flat, cells, tables, strict=False):
        shown = fill_cells(axes, table, kind, classes)
        frame_map(axes, view, outline)
        # Name of a small map in lines that are not wider than it.
        wide = any(east_asian_width(letter) in "WF" for letter in name)
        width = _LETTERS // (1 + wide)
        lines = textwrap.wrap(name, width, max_lines=_LINES, placeholder=" …")
        axes.set_title(picture_text("\n".join(lines)), fontsize=9)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    for axes in grid.flat[len(cells) :]:
        axes.set_axis_off()
    draw_scale_bar(grid[-1, 0], view, below=_BELOW)
    add_key(figure, grid, shown, classes, kind, reliability_limits(threshold))
    figure.suptitle(title_of(record, kind, guarantee, common), fontsize=10)
    return figure


# Families of fonts of the usual systems, which have letters that those of matplotlib have not.
_FAMILIES = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "NanumGothic",
)


def more_fonts() -> AbstractContextManager[None]:
    """Draw letters that the chosen fonts have not in fonts of the system."""
    require_matplotlib("a map")
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager

    known = set(fontManager.get_font_names())
    more = [family for family in _FAMILIES if family in known]
    return mpl.rc_context({"font.family": [*mpl.rcParams["font.family"], *more]})
