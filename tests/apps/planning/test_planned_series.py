"""Slices, bounds and delta of a plan."""

from fractions import Fraction

import pytest

from psd.apps.planning.simulation import PlannedSeries
from psd.apps.planning.text import plan_sentences, plan_setting, range_columns
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from support.plans import quick


def test_bounds_of_a_series():
    for arguments, *expected in [
        ({}, 1, None, None),
        ({"max_contributions": 4}, 1, None, 4),
        ({"slices": 12}, 12, 1, 12),
        ({"slices": 12, "max_per_slice": 4}, 12, 4, 48),
        ({"slices": 12, "max_per_slice": 4, "max_contributions": 20}, 12, 4, 20),
    ]:
        series, bound = PlannedSeries.of(**arguments)
        assert [series.slices, series.max_per_slice, bound] == expected
    for arguments, told in [
        ({"slices": 0}, "slices must be between 1 and"),
        ({"slices": 10_001}, "slices must be between 1 and"),
        ({"max_per_slice": 1}, "slices must be given"),
        ({"slices": 2, "max_per_slice": 0}, "max_per_slice must be between 1 and"),
        ({"max_contributions": 0}, "max_contributions must be between 1 and"),
        ({"delta": "1e-2"}, "delta must be above 0 and below 0.001"),
    ]:
        with pytest.raises(ParameterError, match=told):
            PlannedSeries.of(**arguments)
    with pytest.raises(ParameterError, match="max_per_slice must be at most"):
        small(slices=12, max_per_slice=4, max_contributions=2)


def test_each_law_has_its_loss_and_stands_beside_the_other():
    series, k = PlannedSeries.of(slices=52, delta="1e-6")
    assert series.laws == ("laplace", "gaussian")
    assert series.loss(10**9, "laplace").delta is None
    assert series.loss(10**9, "gaussian").rho == 24_355_970_359
    assert series.loss(10**9, "gaussian").delta == Fraction(1, 10**6)
    assert series.chosen(Quadtree(), 10**9, k) == "gaussian"
    assert PlannedSeries().laws == ("laplace",)
    expected = small(slices=4)
    assert "noise" not in expected.table
    assert expected.chosen == {}
    assert expected.max_contributions == 4
    assert "noise" not in range_columns(small())
    expected = small(slices=52, delta="1e-6")
    assert expected.table["noise"].tolist() == ["laplace"] * 2 + ["gaussian"] * 2
    assert expected.chosen == {("1", "quadtree"): "gaussian"}
    columns = range_columns(expected)
    assert columns["noise"] == ["laplace", "gaussian"]
    assert plan_setting(expected) == (
        "500 records in 100 km2 in each of 52 time slices; all records of a user are protected "
        "(at most 52 each, at most 1 in a slice)"
    )
    told = " ".join(plan_sentences(expected))
    assert "quadtree with Laplace noise" in told
    assert "by itself a build chooses Gaussian noise at epsilon 1 with quadtree" in told
    assert "a build of more than 8 slices that names no method makes a cube" in told
    assert "delta 1e-6: with a probability of at most 1e-6 it may reveal more" in told


def small(**arguments):
    return quick(500, methods=[Quadtree(height=3)], sizes=[0.1], **arguments)
