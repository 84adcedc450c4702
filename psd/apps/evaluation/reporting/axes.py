"""Colours, markers and axes that all plots share; the colours are those of maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.colours import LINES, SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psd.apps.evaluation.comparison import Comparison

__all__ = [
    "KINDS",
    "LINES",
    "MARKERS",
    "PARTS",
    "PART_COLOURS",
    "PRIVATE",
    "add_legend",
    "finish_axes",
    "frequency_colours",
    "method_styles",
    "private_figure",
]

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
