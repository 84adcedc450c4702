"""Plots of evaluations: their marks, and the extra they need."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import psd
from psd.apps.evaluation.comparison import compare
from psd.apps.evaluation.figures import plot_comparison, plot_evaluation
from psd.apps.evaluation.true_errors import evaluate
from psd.errors import MissingExtraError, ParameterError
from support.evaluations import BOXES, DOMAIN, built, points

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def found():
    return evaluate(built(points()), points(), boxes=BOXES)


def compared(**options):
    methods = [psd.decompositions.Quadtree(height=3), psd.decompositions.Grid(size=8)]
    how = {"epsilon": [".1", 1], "methods": methods, "runs": 2, "jobs": 1, **options}
    return compare(points(1_000, 30, 7), domain=DOMAIN, **how)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots_are_written(tmp_path, found, suffix):
    for name, plot, shown, size in [
        ("evaluation", plot_evaluation, found, 5_000),
        ("comparison", plot_comparison, compared(), 20_000),
        ("one build", plot_comparison, compared(runs=1, epsilon=["1"]), 10_000),
    ]:
        path = tmp_path / f"{name}{suffix}"
        plot(shown, path)
        assert path.stat().st_size > size


def test_all_lines_lie_on_their_panels_and_matplotlib_is_an_extra(monkeypatch, tmp_path, found):
    """Panels of a row share their axis, which has to hold the lines of both."""
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: figures.append(self))
    plot_comparison(compared(), tmp_path / "plot.png")
    panels = [axes for part in figures[0].subfigs for axes in part.axes]
    assert len(panels) == 1 + 2 * 2
    for axes in panels:
        low, high = axes.get_ylim()
        values = np.concatenate([line.get_ydata() for line in axes.lines])
        assert low <= values.min() <= values.max() <= high
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]'"):
        plot_evaluation(found, tmp_path / "plot.png")
    with pytest.raises(ParameterError, match=r"plot must end in \.png or \.svg, got plot\.pdf"):
        plot_evaluation(found, tmp_path / "plot.pdf")
