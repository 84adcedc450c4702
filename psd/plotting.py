"""Pictures of evaluations. Private, like what they show; matplotlib is an extra."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psd.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from psd.evaluation import Evaluation

__all__ = ["check_plot", "plot_evaluation"]

_PARTS = ("perturbation", "nonuniformity", "bounding")
_COLOURS = {"perturbation": "#3b6fb6", "nonuniformity": "#e08a2e", "bounding": "#8a8a8a"}


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before any work is done.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the ending is neither ``.png`` nor ``.svg``.
    """
    if path.suffix.lower() not in (".png", ".svg"):
        raise ParameterError(f"plot {path.name} ends neither in .png nor in .svg")
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
    shown = [p for p in _PARTS if summary[f"true_relative_{p}_error"].any()]
    for number, part in enumerate(shown):
        width = 0.7 / len(shown)
        values = 100 * summary[f"true_relative_{part}_error"]
        left = place - 0.35 + (number + 0.5) * width
        axes.bar(left, values, width, label=part, color=_COLOURS[part])
    total = 100 * summary["true_relative_error"]
    axes.plot(place, total, "k_", markersize=28, markeredgewidth=2, label="whole error")
    axes.set_xticks(place, summary["class"], rotation=20, ha="right")
    axes.set_yscale("log")
    axes.set_ylabel("mean true relative error (%)")
    axes.set_title("PRIVATE: true errors of a release, not for publication", color="#b00020")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, metadata=None)
