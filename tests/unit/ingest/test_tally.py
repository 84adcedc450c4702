"""Tallies that are added up: one count for each slice and cell."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np

from psd.ingest.tally import Batch, Tally, add_tallies
from psd.space.domain import Blocks


def tally(*cells, slices=True):
    """Tally of (slice, row, column, count)."""
    columns = np.array(cells, np.int64).reshape(-1, 4).T
    return Tally(
        columns=columns[2], rows=columns[1], counts=columns[3], slice=columns[0] if slices else None
    )


def listed(added):
    slices = np.zeros(len(added.counts), np.int64) if added.slice is None else added.slice
    values = (slices, added.rows, added.columns, added.counts)
    return list(zip(*(column.tolist() for column in values), strict=True))


def test_random_tallies_are_added_by_slice_row_and_column(subtests):
    for seed, slices in product(range(10), (True, False)):
        random = np.random.default_rng(seed)
        parts, expected = [], Counter()
        for _ in range(int(random.integers(1, 4))):
            cells = random.integers(0, 3, (random.integers(0, 30), 4)) * [slices, 1, 1, 1]
            cells[:, 3] += 1
            parts.append(tally(*cells.tolist(), slices=slices))
            for *cell, count in cells.tolist():
                expected[tuple(cell)] += count
        with subtests.test(seed=seed, slices=slices):
            added = add_tallies(parts)
            assert listed(added) == [(*cell, count) for cell, count in sorted(expected.items())]
            assert (added.slice is not None) == slices
            assert {added.columns.dtype, added.rows.dtype} == {np.dtype(np.int32)}
            assert added.counts.dtype == np.int64


def test_cells_are_sorted_apart_by_region_and_not_printed():
    one = tally((0, 2, 0, 1), (0, 1, 1, 1), (0, 1, 1, 4), slices=False)
    assert listed(add_tallies([one])) == [(0, 1, 1, 5), (0, 2, 0, 1)]
    assert one.counts.tolist() == [1, 1, 4]
    west = replace(tally((0, 1, 2, 3), slices=False), region=np.array([5]))
    both = replace(tally((0, 1, 2, 3), (0, 1, 2, 4), slices=False), region=np.array([5, 0]))
    added = add_tallies([west, both])
    assert listed(added) == [(0, 1, 2, 4), (0, 1, 2, 6)]
    assert (added.region.tolist(), added.region.dtype) == ([0, 5], np.int32)
    assert add_tallies([tally((0, 1, 2, 3))]).region is None
    assert repr(tally((0, 1, 2, 3))) == "<Tally: private>"
    assert repr(Batch(x=np.array([1.5]), y=np.array([2.5]))) == "<Batch: private>"


def test_slices_have_numbers_below_a_bound():
    of_days = tally((0, 1, 1, 1), (4, 1, 1, 1)), tally((0, 1, 1, 1)), tally()
    assert [each.slices_below for each in of_days] == [5, 1, 1]
    assert tally((0, 1, 1, 1), slices=False).slices_below is None


def test_parts_of_a_block_in_two_regions_stay_apart():
    """The last block of an axis has the lines that are left over."""
    cells = tally((0, 9, 3, 1), (0, 4, 11, 2), (0, 1, 4, 3), slices=False)
    report = {"read": 6}
    counted = replace(cells, region=np.array([1, 0, 1]), contributions=2, report=report)
    in_blocks = counted.in_blocks(Blocks(lattice=(12, 11), step=(4, 2)))
    assert (in_blocks.columns.tolist(), in_blocks.rows.tolist()) == ([0, 2, 1], [4, 2, 0])
    assert (in_blocks.counts.tolist(), in_blocks.region.tolist()) == ([1, 2, 3], [1, 0, 1])
    assert (in_blocks.contributions, in_blocks.report) == (2, report)


def test_sums_of_values_are_added_with_their_counts():
    one = tally((0, 2, 0, 1), (0, 1, 1, 2), (0, 1, 1, 4), slices=False)
    one = replace(one, values=np.array([[1, 9], [2, 7], [3, 5]]), record_weight=12)
    added = add_tallies([one, one])
    assert listed(added) == [(0, 1, 1, 12), (0, 2, 0, 2)]
    assert added.values.tolist() == [[10, 24], [2, 18]]
    assert added.record_weight == 12
    none = replace(tally(slices=False), values=np.empty((0, 2), np.int64))
    assert add_tallies([none]).values.shape == (0, 2)
    assert add_tallies([tally((0, 1, 2, 3))]).values is None
    # The same of cells that are counted together, whose report and bound stay.
    cells = tally((0, 2, 5, 1), (0, 5, 6, 2), (0, 4, 7, 4), slices=False)
    counted = replace(
        cells, values=one.values, record_weight=12, contributions=2, report={"read": 7}
    )
    in_blocks = counted.in_blocks(Blocks(lattice=(12, 11), step=(4, 2)))
    assert (in_blocks.columns.tolist(), in_blocks.rows.tolist()) == ([1, 1], [1, 2])
    assert (in_blocks.counts.tolist(), in_blocks.values.tolist()) == ([1, 6], [[1, 9], [5, 12]])
    assert (in_blocks.contributions, in_blocks.report) == (2, {"read": 7})
    assert in_blocks.record_weight == 12
