"""Plots of evaluations and comparisons as files. Private; matplotlib is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.extras import require_matplotlib
from psd.apps.evaluation.reporting.axes import (
    KINDS,
    PART_COLOURS,
    PARTS,
    PRIVATE,
    add_legend,
    finish_axes,
    method_styles,
)
from psd.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

    from psd.apps.evaluation.comparison import Comparison
    from psd.apps.evaluation.true_errors import Evaluation

__all__ = ["check_plot", "check_report", "plot_comparison", "plot_evaluation"]

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
    _draw_scores(parts[0], comparison)
    _draw_errors(parts[1], comparison, epsilons)
    figure.savefig(path, dpi=120, metadata=None)


def _draw_scores(figure: SubFigure, comparison: Comparison) -> None:
    """Score of each method with its standard error, and the legend of all panels."""
    axes = figure.subplots()
    for name, style in method_styles(comparison).items():
        rows = comparison.table[comparison.table["method"] == name]
        epsilon = rows["epsilon"].astype(float)
        order = np.argsort(epsilon.to_numpy())
        axes.errorbar(
            epsilon.to_numpy()[order],
            rows["score"].to_numpy()[order],
            rows["score_error"].fillna(0).to_numpy()[order],
            label=name,
            capsize=3,
            **style,
        )
    epsilons = comparison.table["epsilon"].drop_duplicates()
    axes.set_xscale("log")
    rotation = 45 if len(epsilons) > _UPRIGHT_LABELS else 0
    axes.set_xticks(epsilons.astype(float), epsilons, rotation=rotation)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.1)
    finish_axes(axes, "epsilon", "score (bars: standard error)")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_errors(figure: SubFigure, comparison: Comparison, epsilons: list[str]) -> None:
    """Mean relative error by size: uniform centres left, centred on data right."""
    panels = figure.subplots(len(epsilons), 2, sharey="row", squeeze=False)
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
