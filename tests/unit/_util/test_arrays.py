"""Ranges, sums by group and distinct values."""

import resource

import numpy as np

from psd._util.arrays import (
    distinct_values,
    from_arrow,
    keep_freed_memory,
    morton_codes,
    morton_numbers,
    nulls_as_zeros,
    ranges,
    sum_by,
    to_arrow,
)


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


def test_morton_codes_are_the_order_of_a_quadtree():
    columns, rows = np.array([0, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 0])
    codes = morton_codes(columns, rows)
    assert codes.tolist() == [0, 1, 2, 3, 4]
    assert [part.tolist() for part in morton_numbers(codes)] == [columns.tolist(), rows.tolist()]


def test_arrow_arrays_share_their_numbers_and_have_nulls_beside_them():
    values = np.array([1, 2])
    assert from_arrow(to_arrow(values)).tolist() == [1, 2]
    numbers, is_null = nulls_as_zeros(to_arrow(values, np.array([False, True])))
    assert numbers.tolist() == [0, 2]
    assert is_null.tolist() == [True, False]
