"""Pictures of evaluations. Private, like what they show; matplotlib is an extra."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from psd.evaluation.compare import Comparison
    from psd.evaluation.evaluate import Evaluation

__all__ = [
    "COLOURS",
    "LINES",
    "MARKERS",
    "PARTS",
    "PRIVATE",
    "check_plot",
    "finish",
    "method_styles",
    "plot_comparison",
    "plot_evaluation",
]

PARTS = ("perturbation", "nonuniformity", "bounding")
COLOURS = {"perturbation": "#3b6fb6", "nonuniformity": "#e08a2e", "bounding": "#8a8a8a"}
PRIVATE = "#b00020"

# Lines are told apart by colour and by marker, whose cycles meet again after 70 methods; from
# the eleventh on they are dashed too.
LINES = (
    "#3b6fb6", "#d1495b", "#2a9d6f", "#e08a2e", "#7b5ea7", "#8c6d31", "#17a2b8", "#c2579a",
    "#5b6770", "#9aa61a",
)  # fmt: skip
MARKERS = "osD^vPX"

# More labels than this stand aslant, and an axis of errors spans at least this factor, so that
# some of 1, 2, 5, 10, ... are on it.
_UPRIGHT = 8
_LEAST_SPAN = 6


def check_plot(path: Path, endings: tuple[str, ...] = (".png", ".svg")) -> None:
    """Refuse a picture that could not be written, before any work is done.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the name has none of the endings.
    """
    if path.suffix.lower() not in endings:
        first, *others = endings
        told = (
            f"neither in {first} nor in {' nor in '.join(others)}" if others else f"not in {first}"
        )
        raise ParameterError(f"plot {path.name} ends {told}")
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it with pip install 'psd-publisher[plot]'"
        ) from None


def plot_evaluation(found: Evaluation, path: Path) -> None:
    """Write the mean relative error of each class and the size of its parts.

    Parameters
    ----------
    found : Evaluation
        What is shown. Private.
    path : Path
        Ends in ``.png`` or ``.svg``.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the ending is another one.
    """
    check_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes, summary = figure.subplots(), found.summary
    place = np.arange(len(summary))
    shown = [p for p in PARTS if summary[f"true_relative_{p}_error"].any()]
    for number, part in enumerate(shown):
        width = 0.7 / len(shown)
        values = 100 * summary[f"true_relative_{part}_error"]
        left = place - 0.35 + (number + 0.5) * width
        axes.bar(left, values, width, label=part, color=COLOURS[part])
    total = 100 * summary["true_relative_error"]
    axes.plot(place, total, "k_", markersize=28, markeredgewidth=2, label="whole error")
    axes.set_xticks(place, summary["class"], rotation=20, ha="right")
    axes.set_yscale("log")
    axes.set_ylabel("mean true relative error (%)")
    axes.set_title("PRIVATE: true errors of a release, not for publication", color=PRIVATE)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, metadata=None)


def plot_comparison(found: Comparison, path: Path) -> None:
    """Write errors against epsilon, and for each epsilon against the size of a query.

    Parameters
    ----------
    found : Comparison
        What is shown. Private.
    path : Path
        Ends in ``.png`` or ``.svg``.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the ending is another one.
    """
    check_plot(path)
    from matplotlib.figure import Figure

    epsilons = found.table["epsilon"].unique().tolist()
    figure = Figure(figsize=(9, 4 + 3 * len(epsilons)), layout="constrained")
    figure.suptitle("PRIVATE: true errors of several methods, not for publication", color=PRIVATE)
    parts: Any = figure.subfigures(2, 1, height_ratios=[3.6, 3 * len(epsilons)])
    _against_epsilon(parts[0], found)
    _against_size(parts[1], found, epsilons)
    figure.savefig(path, dpi=120, metadata=None)


def method_styles(found: Comparison) -> dict[str, dict[str, Any]]:
    """Colour, marker and dashes of each method."""
    names = found.table["method"].unique().tolist()
    return {
        name: {
            "color": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": "-" if i < len(LINES) else "--",
        }
        for i, name in enumerate(names)
    }


def _against_epsilon(figure: SubFigure, found: Comparison) -> None:
    """Score of each method with its standard error; the legend beside it is for all panels."""
    axes = figure.subplots()
    for name, style in method_styles(found).items():
        rows = found.table[found.table["method"] == name]
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
    epsilons = found.table["epsilon"].drop_duplicates()
    axes.set_xscale("log")
    turned = 45 if len(epsilons) > _UPRIGHT else 0
    axes.set_xticks(epsilons.astype(float), epsilons, rotation=turned)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.1)
    finish(axes, "epsilon", "score (bars: standard error)")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _against_size(figure: SubFigure, found: Comparison, epsilons: list[str]) -> None:
    """Mean relative error of the classes: uniform ones left, those on data right."""
    kinds = {"uniform": "U: uniform centres", "on data": "D: centres on data"}
    panels = figure.subplots(len(epsilons), 2, sharey="row", squeeze=False)
    for row, epsilon in zip(panels, epsilons, strict=True):
        table = found.table[found.table["epsilon"] == epsilon].set_index("method")
        for axes, (kind, title) in zip(row, kinds.items(), strict=True):
            classes = [name for name in found.classes if name.startswith(kind)]
            for name, style in method_styles(found).items():
                axes.plot(table.loc[name, classes].to_numpy(float), markersize=5, **style)
            axes.set_xticks(range(len(classes)), [name[len(kind) :].strip() for name in classes])
            axes.set_title(f"{title}, epsilon {epsilon}", fontsize=10)
        # Only now: the panels of a row share their axis, and all lines have to be on it.
        for axes, label in zip(row, ("mean relative error", ""), strict=True):
            finish(axes, "area of the query", label)


def finish(axes: Axes, x: str, y: str) -> None:
    """Labels, a logarithmic scale for errors with plain numbers, and a grid to read them by."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < _LEAST_SPAN * low:
        middle, half = np.sqrt(low * high), np.sqrt(_LEAST_SPAN)
        axes.set_ylim(middle / half, middle * half)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=30))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
