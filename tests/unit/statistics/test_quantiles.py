"""Weighted quantiles and class breaks: exact cases and refusals."""

from functools import partial

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.statistics.top_cells import weighted_quantiles
from support.tables import refuses
from support.trees import SOUTH_UP, grid_release


def test_weighted_quantiles_by_hand():
    values, weights = np.array([5.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    shares = np.array([0.25, 0.5, 0.51, 0.75, 0.76])
    assert weighted_quantiles(values, weights, shares).tolist() == [1, 1, 3, 3, 5]
    assert weighted_quantiles(values, np.zeros(3), np.array([0.5])).tolist() == [3]


def test_breaks_of_known_densities():
    release = grid_release(SOUTH_UP * 10)
    table = release.query(quantiles=True, classes=3, size=(3, 3)).table
    assert table.share.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert table.density.tolist() == pytest.approx([300e6, 600e6], rel=0.01)
    assert (table.lower < table.density).all()
    assert (table.density < table.upper).all()
    # Half of the people live at 700 per cell or below.
    people = release.query(quantiles=True, classes=2, size=(3, 3), weight="people").table
    assert people.density.tolist() == pytest.approx([700e6], rel=0.01)


def test_quantiles_refuse(subtests):
    rows = [
        *(({"classes": number}, "classes") for number in (1, 101)),
        ({"weight": "money"}, "weight"),
        ({"confidence": 1}, "confidence"),
        ({"draws": 0}, "draws"),
        ({"size": (0, 1)}, "raster"),
    ]
    ask = partial(grid_release(SOUTH_UP).query, quantiles=True)
    refuses(subtests, ask, rows, ParameterError)
