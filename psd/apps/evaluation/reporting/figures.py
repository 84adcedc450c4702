"""Figures of the report of an evaluation. Private.

Each figure is separate, so that a page can arrange them, and each is marked PRIVATE, so that a copy
of one figure is marked too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats
from psd.apps.evaluation._constants import CONFIDENCE
from psd.apps.evaluation.reporting.axes import (
    KINDS,
    LINES,
    PART_COLOURS,
    PARTS,
    PRIVATE,
    add_legend,
    finish_axes,
    frequency_colours,
    private_figure,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = [
    "draw_coverage",
    "draw_error_by_class",
    "draw_error_parts",
    "draw_normalised_errors",
    "draw_predicted_against_true",
    "group_classes",
    "wilson_interval",
]

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
    """Colour of a kind of centres."""
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
    """Legend of the colours of the kinds."""
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
    visible = (predicted > least) | (true > least) | ~(max(predicted.max(), true.max()) > least)
    hexagons = axes.hexbin(
        predicted[visible],
        true[visible],
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


def wilson_interval(hits: ArrayLike, trials: ArrayLike, z: float = 1.96) -> tuple[Floats, Floats]:
    """Compute the Wilson interval of a binomial proportion.

    References
    ----------
    .. [1] Wilson. "Probable Inference, the Law of Succession, and Statistical Inference." JASA 22,
       1927. https://doi.org/10.1080/01621459.1927.10502953
    """
    hits, trials = np.asarray(hits, float), np.asarray(trials, float)
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
    floor = _largest_error(100 * summary["true_relative_error"]) / _SPAN
    for number, part in enumerate(drawn):
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
