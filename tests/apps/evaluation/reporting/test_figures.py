"""Figures of reports: kinds of classes, intervals of shares, and keys that cover nothing."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import psd
from psd.apps.evaluation import figures
from psd.apps.evaluation.comparison import compare
from psd.apps.evaluation.figures import draw_error_by_size, draw_score_by_epsilon
from psd.apps.evaluation.true_errors import evaluate
from support.evaluations import DOMAIN, built

mpl.use("agg")


pytestmark = pytest.mark.deep


def test_no_key_covers_a_panel_and_classes_are_grouped():
    random = np.random.default_rng(5)
    rows = pd.DataFrame({"lon": 10 * random.random(500), "lat": 10 * random.random(500)})
    methods = [psd.decompositions.Grid(size=4), psd.decompositions.Quadtree(height=2)]
    found = evaluate(built(rows, methods[0]), rows)
    comparison = compare(rows, domain=DOMAIN, methods=methods, epsilon=["1"], runs=1, jobs=1)
    names = ("error_by_class", "predicted_against_true", "normalised_errors", "coverage")
    drawn = [
        *(getattr(figures, f"draw_{name}")(found.answers) for name in names),
        figures.draw_error_parts(found.summary),
        draw_score_by_epsilon(comparison),
        draw_error_by_size(comparison, "1", "uniform"),
    ]
    for figure in drawn:
        figure.draw_without_rendering()
        [key] = figure.legends
        assert all(axes.get_legend() is None for axes in figure.axes)
        area = key.get_window_extent()
        assert figure.bbox.x0 <= area.x0 < area.x1 <= figure.bbox.x1 + 1
        for axes in figure.axes:
            assert not axes.get_tightbbox().shrunk(0.99, 0.99).overlaps(area)
    names = ["uniform 1 %", "uniform 10 %", "on data 1 %"]
    groups = {"uniform": names[:2], "on data": names[2:]}
    assert figures.group_classes(pd.DataFrame({"class": names * 2})) == groups
    assert figures.group_classes(pd.DataFrame({"class": ["given"]})) == {"": ["given"]}
    low, high = figures.wilson_interval([0, 5, 10], [10, 10, 10])
    assert low == pytest.approx([0, 0.2366, 0.7225], abs=1e-4)
    assert high == pytest.approx([0.2775, 0.7634, 1], abs=1e-4)
