"""Ranges, sums by group and distinct values."""

import resource

import numpy as np

from psd._util.arrays import distinct_values, keep_freed_memory, ranges, sum_by


def test_ranges_sums_by_group_and_distinct_values():
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]
    assert ranges(np.empty(0, int), np.empty(0, int)).tolist() == []
    assert sum_by(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist() == [2, 0, 4, 0]
    assert sum_by(np.empty(0, int), np.empty(0), 2).dtype == float
    for values in ([], [3], [5, 3, 5, -1], [0.5, -0.0, 0.0, 0.5]):
        array = np.array(values, dtype=None if values else np.int64)
        first, number = distinct_values(array)
        distinct, which = np.unique(array, return_inverse=True)
        assert array[first].tolist() == distinct.tolist()
        assert number.tolist() == which.tolist()


def test_kept_memory_takes_none():
    """An array that is never written to has no pages."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keep_freed_memory()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_000
