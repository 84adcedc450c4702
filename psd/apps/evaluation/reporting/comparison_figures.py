"""Figures of the report of a comparison. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.apps.evaluation.reporting.axes import (
    KINDS,
    add_legend,
    finish_axes,
    method_styles,
    private_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from psd.apps.evaluation.comparison import Comparison

__all__ = ["draw_error_by_size", "draw_score_by_epsilon"]


def draw_score_by_epsilon(comparison: Comparison) -> Figure:
    """Draw the score of each method by epsilon, with its standard error."""
    figure, axes = private_figure("Score by epsilon")
    for name, style in method_styles(comparison).items():
        rows = comparison.table[comparison.table["method"] == name]
        rows = rows.assign(epsilon=rows["epsilon"].astype(float)).sort_values("epsilon")
        spread = rows["score_error"].fillna(0)
        axes.errorbar(rows["epsilon"], rows["score"], spread, label=name, capsize=3, **style)
    ticks = comparison.table["epsilon"].drop_duplicates()
    axes.set_xscale("log")
    axes.set_xticks(ticks.astype(float), ticks)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.1)
    finish_axes(axes, "epsilon", "score")
    add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure


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
