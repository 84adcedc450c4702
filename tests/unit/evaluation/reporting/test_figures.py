"""Figures of reports: kinds of classes and intervals of shares."""

import pandas as pd
import pytest

from psd.evaluation.reporting.figures import group_classes, wilson_interval


def test_group_classes_classes():
    names = ["uniform 1 %", "uniform 10 %", "on data 1 %"]
    assert group_classes(pd.DataFrame({"class": names * 2})) == {
        "uniform": names[:2],
        "on data": names[2:],
    }
    assert group_classes(pd.DataFrame({"class": ["given"]})) == {"": ["given"]}


def test_wilson_intervals_have_their_ends():
    low, high = wilson_interval([0, 5, 10], [10, 10, 10])
    assert low == pytest.approx([0, 0.2366, 0.7225], abs=1e-4)
    assert high == pytest.approx([0.2775, 0.7634, 1], abs=1e-4)
