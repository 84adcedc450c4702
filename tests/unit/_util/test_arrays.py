"""Ranges and sums by group."""

import numpy as np

from psd._util.arrays import ranges, sum_by


def test_ranges_and_sums_by_group():
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]
    assert ranges(np.empty(0, int), np.empty(0, int)).tolist() == []
    assert sum_by(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist() == [2, 0, 4, 0]
    assert sum_by(np.empty(0, int), np.empty(0), 2).dtype == float
