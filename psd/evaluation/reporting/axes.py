"""Colours, markers and axes that all plots share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psd.evaluation.compare import Comparison

__all__ = [
    "KINDS",
    "LINES",
    "MARKERS",
    "PARTS",
    "PART_COLOURS",
    "PRIVATE",
    "finish_axes",
    "method_styles",
    "private_figure",
]

PARTS = ("perturbation", "nonuniformity", "bounding")
PART_COLOURS = {"perturbation": "#3b6fb6", "nonuniformity": "#e08a2e", "bounding": "#8a8a8a"}
PRIVATE = "#b00020"
"""Colour of marks of private plots."""

KINDS = {"uniform": "Uniform centres", "on data": "Centred on data"}
"""Titles of the kinds of queries."""

# Methods differ by colour and by marker; the pair repeats after 70 methods. From the eleventh
# method on, lines are dashed too.
LINES = (
    "#3b6fb6", "#d1495b", "#2a9d6f", "#e08a2e", "#7b5ea7", "#8c6d31", "#17a2b8", "#c2579a",
    "#5b6770", "#9aa61a",
)  # fmt: skip
MARKERS = "osD^vPX"

# An axis of errors spans at least this factor, so that some of 1, 2, 5, 10, ... are on it.
_MIN_SPAN = 6


def private_figure(title: str, size: tuple[float, float] = (5.4, 4.0)) -> tuple[Figure, Axes]:
    """Return an empty figure that is marked PRIVATE."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10.5, loc="left")
    figure.text(0.995, 0.995, "PRIVATE", color=PRIVATE, fontsize=8, ha="right", va="top")
    return figure, axes


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
