"""Figures of true errors, each marked PRIVATE as it may be copied alone; matplotlib is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats
from psd._util.colours import LINES, SEQUENTIAL
from psd._util.extras import picture_text, require_matplotlib
from psd.apps.evaluation._constants import CONFIDENCE
from psd.errors import ParameterError
from psd.query.answer_table import relative_text
from psd.space.crs import axis_labels
from psd.space.ground_areas import east_west_scale

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from psd.apps.evaluation.comparison import Comparison
    from psd.apps.evaluation.true_errors import Evaluation
    from psd.space.domain import Domain

__all__ = ["LINES", "MARKERS", "add_legend", "check_plot", "finish_axes"]


PARTS = ("perturbation", "nonuniformity", "bounding")
PART_COLOURS = {"perturbation": LINES[0], "nonuniformity": LINES[4], "bounding": LINES[6]}
PRIVATE = "#b00020"
"""Colour of marks of private plots."""

KINDS = {"uniform": "Uniform centres", "on data": "Centred on data"}
"""Titles of the kinds of queries."""

# Methods differ by colour and by marker; the pair repeats after 70 methods. From the eleventh
# method on, lines are dashed too.
MARKERS = "osD^vPX"

# An axis of errors spans at least this factor, so that some of 1, 2, 5, 10, ... are on it.
_MIN_SPAN = 6


def private_figure(title: str, size: tuple[float, float] = (5.4, 4.0)) -> tuple[Figure, Axes]:
    """Return an empty figure that is marked PRIVATE."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10, loc="left")
    figure.text(0.995, 0.995, "PRIVATE", color=PRIVATE, fontsize=8, ha="right", va="top")
    return figure, axes


def add_legend(figure: Figure, handles: list[Any], columns: int = 3) -> None:
    """Explain lines and colours below the panels of a figure, where no data is."""
    figure.set_figheight(figure.get_figheight() + 0.25 * -(-len(handles) // columns))
    figure.legend(
        handles=handles, ncols=columns, loc="outside lower center", frameon=False, fontsize=9
    )


def frequency_colours() -> Any:
    """Colours from few to many, as maps have them."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("psd", SEQUENTIAL)


def method_styles(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """Choose colour, marker and dashes of each method."""
    names = comparison.table["method"].unique().tolist()
    return {
        name: {
            "color": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": "-" if i < len(LINES) else "--",
        }
        for i, name in enumerate(names)
    }


def finish_axes(axes: Axes, x: str, y: str) -> None:
    """Set labels, a grid, and a logarithmic scale of errors with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < _MIN_SPAN * low:
        middle, half = np.sqrt(low * high), np.sqrt(_MIN_SPAN)
        axes.set_ylim(middle / half, middle * half)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=30))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)


_UNIFORM, _ON_DATA, _NEUTRAL = LINES[0], LINES[1], LINES[6]
_BOX_WIDTH = 0.34

# Errors below the largest one / _SPAN, or below _MIN_RECORDS, are drawn at the lower edge.
_SPAN = 2_000
_MIN_RECORDS = 0.1

# Larger normalised errors are drawn at the edge.
_MAX_NORMALISED = 6


def group_classes(answers: pandas.DataFrame) -> dict[str, list[str]]:
    """Group classes by the kind of their centres, in order; the kind of other classes is empty."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(answers["class"]):
        kind = next((k for k in ("uniform", "on data") if name.startswith(k)), "")
        groups.setdefault(kind, []).append(name)
    return groups


def _kind_colour(kind: str) -> str:
    return {"uniform": _UNIFORM, "on data": _ON_DATA}.get(kind, _NEUTRAL)


def _class_positions(answers: pandas.DataFrame) -> tuple[list[tuple[str, str, float]], list[str]]:
    """Kind, name and position of each class, grouped by size; and the sizes."""
    kinds = group_classes(answers)
    sizes = list(dict.fromkeys(n.removeprefix(k).strip() for k, ns in kinds.items() for n in ns))
    shift = {kind: (i - (len(kinds) - 1) / 2) * 0.4 for i, kind in enumerate(kinds)}
    positions = [
        (kind, name, sizes.index(name.removeprefix(kind).strip()) + shift[kind])
        for kind, names in kinds.items()
        for name in names
    ]
    return positions, sizes


def _add_legend(figure: Figure, kinds: list[str]) -> None:
    from matplotlib.patches import Patch

    patches: Any = [Patch(color=_kind_colour(kind), label=KINDS[kind]) for kind in kinds if kind]
    if patches:
        add_legend(figure, patches)


def _largest_error(errors: pandas.Series[float]) -> float:
    """Largest error, or 1 if all are 0."""
    return float(errors.max()) or 1.0


def draw_error_by_class(answers: pandas.DataFrame) -> Figure:
    """Draw quantiles of the relative error by size of query: 10, 25, 50, 75 and 90 %."""
    figure, axes = private_figure("True relative error by size of query")
    positions, sizes = _class_positions(answers)
    top = _largest_error(100 * answers["true_relative_error"])
    for kind, name, position in positions:
        errors = 100 * answers.loc[answers["class"] == name, "true_relative_error"]
        errors = errors.clip(lower=top / _SPAN)
        low, first, middle, third, high = np.quantile(errors, [0.1, 0.25, 0.5, 0.75, 0.9])
        box = {"med": middle, "q1": first, "q3": third, "whislo": low, "whishi": high}
        axes.bxp(
            [{**box, "mean": errors.mean()}],
            positions=[position],
            widths=_BOX_WIDTH,
            showfliers=False,
            showmeans=True,
            patch_artist=True,
            boxprops={"facecolor": _kind_colour(kind), "alpha": 0.55},
            medianprops={"color": "black"},
            meanprops={"marker": "D", "markersize": 4, "markerfacecolor": "white"}
            | {"markeredgecolor": "black"},
            manage_ticks=False,
        )
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, top / _SPAN), high)
    finish_axes(axes, "area of the query", "relative error (%)")
    _add_legend(figure, list(group_classes(answers)))
    return figure


def draw_predicted_against_true(answers: pandas.DataFrame) -> Figure:
    """Draw true absolute errors over predicted standard deviations, coloured by frequency."""
    from matplotlib.ticker import StrMethodFormatter

    figure, axes = private_figure("True error against predicted error")
    predicted = answers["error"].to_numpy()
    true = answers["true_error"].abs().to_numpy()
    least = _MIN_RECORDS
    predicted, true = np.maximum(predicted, least), np.maximum(true, least)
    # Queries without an error stand in one corner, unless there are no others.
    is_drawn = (predicted > least) | (true > least) | ~(max(predicted.max(), true.max()) > least)
    hexagons = axes.hexbin(
        predicted[is_drawn],
        true[is_drawn],
        xscale="log",
        yscale="log",
        gridsize=34,
        mincnt=1,
        bins="log",
        cmap=frequency_colours(),
    )
    ends = np.array([least, 1.3 * max(predicted.max(), true.max())])
    axes.plot(ends, ends, color=PRIVATE, linewidth=1.2, label="true = predicted")
    axes.plot(
        ends, 1.96 * ends, color=PRIVATE, linewidth=1, linestyle=":", label="1.96 x predicted"
    )
    axes.set_xlim(least / 1.2, float(predicted.max()) * 1.3)
    axes.set_ylim(least / 1.2, float(ends[1]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel("predicted standard deviation (records)")
    axes.set_ylabel("|estimate - true| (records)")
    add_legend(figure, axes.get_legend_handles_labels()[0])
    figure.colorbar(hexagons, ax=axes, label="queries")
    return figure


def draw_normalised_errors(answers: pandas.DataFrame) -> Figure:
    """Draw a histogram of true errors over predicted errors, with the normal density."""
    figure, axes = private_figure("Error over its predicted standard deviation")
    bins = np.linspace(-_MAX_NORMALISED, _MAX_NORMALISED, 49)
    for kind, names in group_classes(answers).items():
        # Queries with a predicted error below one record are almost empty.
        rows = answers[answers["class"].isin(names) & (answers["error"] >= 1)]
        ratio = np.clip(rows["true_error"] / rows["error"], -_MAX_NORMALISED, _MAX_NORMALISED)
        if len(ratio):
            axes.hist(ratio, bins.tolist(), density=True, color=_kind_colour(kind), alpha=0.5)
    x = np.linspace(-_MAX_NORMALISED, _MAX_NORMALISED, 241)
    axes.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), "k-", linewidth=1.2)
    axes.set_xlabel(f"(estimate - true) / predicted; values beyond {_MAX_NORMALISED} at the edge")
    axes.set_ylabel("density (line: normal)")
    axes.grid(alpha=0.3)
    _add_legend(figure, list(group_classes(answers)))
    return figure


def wilson_interval(hits: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the Wilson interval of a binomial proportion, of 95 % (Wilson, JASA 22, 1927)."""
    z, hits, trials = 1.96, np.asarray(hits, float), np.asarray(trials, float)
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    half = z * spread / (1 + z**2 / trials)
    return middle - half, middle + half


def draw_coverage(answers: pandas.DataFrame) -> Figure:
    """Draw the share of intervals that contain the true count, by size of query."""
    figure, axes = private_figure(f"Coverage of the {CONFIDENCE:.0%} intervals")
    positions, sizes = _class_positions(answers)
    for kind, name, position in positions:
        covers = answers.loc[answers["class"] == name, "covers"]
        low, high = wilson_interval(covers.sum(), len(covers))
        mean = 100 * covers.mean()
        bars = [[max(mean - 100 * float(low), 0)], [max(100 * float(high) - mean, 0)]]
        marker = "o" if kind != "on data" else "s"
        axes.errorbar([position], [mean], bars, color=_kind_colour(kind), marker=marker, capsize=4)
    axes.axhline(100 * CONFIDENCE, color=PRIVATE, linestyle="--", linewidth=1)
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_xlim(-0.6, len(sizes) - 0.4)
    axes.set_ylim(top=100.5)
    axes.set_xlabel("area of the query")
    axes.set_ylabel("intervals that contain the true count (%)")
    axes.grid(alpha=0.3)
    _add_legend(figure, list(group_classes(answers)))
    return figure


def draw_error_parts(summary: pandas.DataFrame) -> Figure:
    """Draw the mean size of each part of the error, by class."""
    figure, axes = private_figure("Parts of the error", (5.4, 4.4))
    position = np.arange(len(summary))
    drawn = [part for part in PARTS if summary[f"true_relative_{part}_error"].any()]
    width = 0.75 / max(len(drawn), 1)
    # A logarithmic axis has no 0: smaller errors are drawn at this one.
    floor = _largest_error(100 * summary["true_relative_error"]) / _SPAN
    for number, part in enumerate(drawn):
        # Bars of the parts stand side by side, around the place of their class.
        left = position + (number - (len(drawn) - 1) / 2) * width
        values = (100 * summary[f"true_relative_{part}_error"]).clip(lower=floor)
        axes.bar(
            left, values, width, label=part.replace("nonuni", "non-uni"), color=PART_COLOURS[part]
        )
    total = (100 * summary["true_relative_error"]).clip(lower=floor)
    axes.plot(position, total, "k_", markersize=20, markeredgewidth=2, label="total error")
    axes.set_yscale("log")
    finish_axes(axes, "", "mean relative error (%)")
    axes.set_xticks(position, summary["class"], rotation=40, ha="right")
    add_legend(figure, axes.get_legend_handles_labels()[0], columns=2)
    return figure


def draw_score_by_epsilon(comparison: Comparison) -> Figure:
    """Draw the score of each method by epsilon, with its standard error."""
    figure, axes = private_figure("Score by epsilon")
    _add_scores(axes, comparison)
    finish_axes(axes, "epsilon", "score")
    add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def _add_scores(axes: Axes, comparison: Comparison, rotation: int = 0) -> None:
    """Score of each method by epsilon, with its standard error."""
    for name, style in method_styles(comparison).items():
        rows = comparison.table[comparison.table["method"] == name]
        rows = rows.assign(epsilon=rows["epsilon"].astype(float)).sort_values("epsilon")
        spread = rows["score_error"].fillna(0)
        axes.errorbar(rows["epsilon"], rows["score"], spread, label=name, capsize=3, **style)
    ticks = comparison.table["epsilon"].drop_duplicates()
    axes.set_xscale("log")
    axes.set_xticks(ticks.astype(float), ticks, rotation=rotation)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.1)


def draw_error_by_size(comparison: Comparison, epsilon: str, kind: str) -> Figure:
    """Draw the error of each method by size of query, at one epsilon, for one kind of centres."""
    figure, axes = private_figure(f"{KINDS[kind]}, epsilon {epsilon}")
    table = comparison.table[comparison.table["epsilon"] == epsilon].set_index("method")
    classes = [name for name in comparison.classes if name.startswith(kind)]
    for name, style in method_styles(comparison).items():
        axes.plot(100 * table.loc[name, classes].to_numpy(float), label=name, **style)
    axes.set_xticks(range(len(classes)), [name.removeprefix(kind).strip() for name in classes])
    finish_axes(axes, "area of the query", "mean relative error (%)")
    add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def draw_map(
    values: Floats, domain: Domain, title: str, *, label: str, limit: float, signed: bool = False
) -> Figure:
    """Draw a raster, (rows, columns) float64, over the domain; the first row is in the south."""
    west, south, east, north = domain.bounds
    # Length of a unit of y over that of a unit of x, at the middle of the domain.
    aspect = 1 / max(float(east_west_scale(domain, sum(domain.bounds[1::2]) / 2)), 0.05)
    height = float(np.clip(aspect * (north - south) / (east - west), 0.45, 1.6))
    figure, axes = private_figure(title, (5.4, 0.9 + 4.0 * height))
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    # Colours are logarithmic; linear for small signed values.
    scale: Normalize = LogNorm(limit / 1_000, limit, clip=True)
    if signed and limit < 10:
        scale = Normalize(-limit, limit, clip=True)
    elif signed:
        scale = SymLogNorm(limit / 100, vmin=-limit, vmax=limit, clip=True)
    image = axes.imshow(
        values if signed else np.maximum(values, limit / 1_000),
        origin="lower",
        extent=(west, east, south, north),
        aspect=aspect,
        cmap="PuOr_r" if signed else frequency_colours(),
        norm=scale,
        interpolation="nearest",
    )
    xlabel, ylabel = map(picture_text, axis_labels(domain.crs))
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.locator_params(nbins=5)
    figure.colorbar(image, ax=axes, label=label, shrink=0.8)
    return figure


def percent_text(share: float) -> str:
    """Write a share in percent with three digits; see `psd.query.answer_table.relative_text`.

    >>> percent_text(0.12345), percent_text(369714453.7)
    ('12.3 %', 'above 1,000 %')
    """
    return relative_text(share).replace("%", " %")


def number_or_dash(value: float, form: str) -> str:
    """Write a number, or a dash for NaN."""
    return "-" if value != value else form.format(value)


# More labels than this are rotated.
_UPRIGHT_LABELS = 8


def check_plot(
    path: Path, endings: tuple[str, ...] = (".png", ".svg"), argument: str = "plot"
) -> None:
    """Check that a plot can be written, before any work is done."""
    if path.suffix.lower() not in endings:
        *others, last = endings
        rule = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"{argument} must end in {rule}, got {path.name}")
    require_matplotlib("a plot")


def check_report(path: Path) -> None:
    """Check that a report can be written, before any work is done."""
    check_plot(path, (".html",), "report")


def plot_evaluation(evaluation: Evaluation, path: Path) -> None:
    """Write a plot, PNG or SVG, of the mean relative error of each class and its parts. Private."""
    check_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes, summary = figure.subplots(), evaluation.summary
    position = np.arange(len(summary))
    shown = [p for p in PARTS if summary[f"true_relative_{p}_error"].any()]
    for number, part in enumerate(shown):
        width = 0.7 / len(shown)
        values = 100 * summary[f"true_relative_{part}_error"]
        left = position - 0.35 + (number + 0.5) * width
        axes.bar(left, values, width, label=part, color=PART_COLOURS[part])
    total = 100 * summary["true_relative_error"]
    axes.plot(position, total, "k_", markersize=28, markeredgewidth=2, label="total error")
    axes.set_xticks(position, summary["class"], rotation=20, ha="right")
    finish_axes(axes, "", "mean true relative error (%)")
    axes.set_title("PRIVATE: true errors of a release; do not publish", color=PRIVATE, fontsize=10)
    add_legend(figure, axes.get_legend_handles_labels()[0], columns=4)
    figure.savefig(path, dpi=120, metadata=None)


def plot_comparison(comparison: Comparison, path: Path) -> None:
    """Write a plot of scores by epsilon, and of errors by size of query at each. Private."""
    check_plot(path)
    from matplotlib.figure import Figure

    epsilons = comparison.table["epsilon"].unique().tolist()
    figure = Figure(figsize=(9, 4 + 3 * len(epsilons)), layout="constrained")
    figure.suptitle("PRIVATE: true errors of several methods; do not publish", color=PRIVATE)
    parts: Any = figure.subfigures(2, 1, height_ratios=[3.6, 3 * len(epsilons)])
    # Score of each method with its standard error, and the legend of all panels.
    scores = parts[0].subplots()
    _add_scores(scores, comparison, rotation=45 if len(epsilons) > _UPRIGHT_LABELS else 0)
    finish_axes(scores, "epsilon", "score (bars: standard error)")
    scores.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    # Mean relative error by size: uniform centres left, centred on data right.
    panels = parts[1].subplots(len(epsilons), 2, sharey="row", squeeze=False)
    for row, epsilon in zip(panels, epsilons, strict=True):
        table = comparison.table[comparison.table["epsilon"] == epsilon].set_index("method")
        for axes, (kind, title) in zip(row, KINDS.items(), strict=True):
            classes = [name for name in comparison.classes if name.startswith(kind)]
            for name, style in method_styles(comparison).items():
                errors = 100 * table.loc[name, classes].to_numpy(float)
                axes.plot(errors, markersize=5, **style)
            axes.set_xticks(range(len(classes)), [name[len(kind) :].strip() for name in classes])
            axes.set_title(f"{title}, epsilon {epsilon}", fontsize=10)
        # Panels of a row share their axis, so its limits are set after all lines are drawn.
        for axes, label in zip(row, ("mean relative error (%)", ""), strict=True):
            finish_axes(axes, "area of the query", label)
    figure.savefig(path, dpi=120, metadata=None)
