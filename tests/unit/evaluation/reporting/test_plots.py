"""Plots of evaluations: their marks, and the extra they need."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import MissingExtraError, ParameterError
from psd.evaluation.evaluate import evaluate
from psd.evaluation.reporting.plots import plot_evaluation

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")


BOXES = np.array([(0.0, 0, 10, 10), (1, 1, 4, 7), (3.3, 2.1, 3.9, 9.5), (9, 9, 9.5, 9.5)])


def points(size=3_000, users=40):
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "lon": random.beta(2, 5, size) * 10,
            "lat": random.beta(5, 2, size) * 10,
            "user_id": random.zipf(1.6, size) % users,
        }
    )


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot_is_written_and_marked(tmp_path, suffix):
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    path = tmp_path / f"plot{suffix}"
    plot_evaluation(evaluate(release, table), path)
    assert path.stat().st_size > 5_000


def test_plot_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    found = evaluate(release, table, boxes=BOXES)
    with pytest.raises(MissingExtraError, match=r"psd-publisher\[plot\]"):
        plot_evaluation(found, tmp_path / "plot.png")
    with pytest.raises(ParameterError, match=r"plot must end in \.png or \.svg, got plot\.pdf"):
        plot_evaluation(found, tmp_path / "plot.pdf")
