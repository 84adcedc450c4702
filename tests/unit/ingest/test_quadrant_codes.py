"""Tallies of codes, against the cells that the codes stand for, and counters of codes."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from psd.errors import ResourceError
from psd.ingest.quadrant_codes import (
    CodeRanks,
    QuadrantCodes,
    QuadrantOrder,
    cell_counter,
    is_dense,
)
from psd.ingest.tally import Tally
from psd.space.domain import Blocks


def listed(tally):
    return list(zip(*(v.tolist() for v in (tally.rows, tally.columns, tally.counts)), strict=True))


def counted(columns, rows):
    cells = Counter(zip(rows.tolist(), columns.tolist(), strict=True))
    return sorted((*cell, count) for cell, count in cells.items())


def test_a_tally_of_codes_is_like_a_tally_of_cells(subtests):
    lattices = (2**16, 2**16), (2**20, 2**20), (1201, 900), (1, 7)
    for lattice, distinct, size in product(lattices, (False, True), (0, 1, 500)):
        random, order = np.random.default_rng(1), QuadrantOrder(lattice)
        columns, rows = (random.integers(0, cells, size) // 9 for cells in lattice)
        columns[: size // 2], rows[: size // 2] = lattice[0] - 1, lattice[1] - 1
        codes = QuadrantCodes.of_ascending(order, np.sort(order.codes(columns, rows)), None)
        codes = codes.distinct() if distinct else codes
        tally = Tally.of_codes(codes, contributions=3, report={"read": size})
        with subtests.test(lattice=lattice, distinct=distinct, size=size):
            assert listed(tally) == counted(columns, rows)
            assert tally.columns.dtype == tally.rows.dtype == np.int32
            assert tally.counts.dtype == np.int64
            assert (tally.contributions, tally.report, tally.slice) == (3, {"read": size}, None)
            assert (tally.region, tally.values, tally.record_weight) == (None, None, 1)
            assert tally.quadrant_codes(QuadrantOrder(lattice)) is codes


def test_a_changed_tally_forgets_its_codes_and_shows_nothing():
    order = QuadrantOrder((4, 4))
    codes = QuadrantCodes.of_ascending(order, np.array([0, 3, 3]), None)
    tally = Tally.of_codes(codes, contributions=1, report={})
    again = replace(tally, counts=7 * tally.counts)
    assert again.quadrant_codes(order).counts.tolist() == [7, 14]
    other = QuadrantOrder((8, 8))
    assert tally.quadrant_codes(other).order is other
    with pytest.raises(AttributeError):
        _ = tally.other
    codes = QuadrantCodes.of_ascending(QuadrantOrder((4, 4)), np.array([3]), None)
    tally = Tally.of_codes(codes, contributions=1, report={})
    assert f"{codes!r} {tally!r} {tally}" == "<QuadrantCodes: private>" + 2 * " <Tally: private>"


@pytest.mark.parametrize(("levels", "kind"), [(16, np.uint32), (17, np.int64), (30, np.int64)])
def test_codes_without_their_slices_take_the_least_room(levels, kind):
    size = 4**levels
    cells, slices = np.array([3, size - 1, 3, size - 2, size - 1]), np.array([0, 0, 1, 1, 2])
    entries = CodeRanks(cells + slices * size, levels, is_sorted=True)
    order = QuadrantOrder((2**levels, 2**levels))
    records = QuadrantCodes(order=order, entries=entries, counts=None, step=(2, 1), slices=3)
    plane = records.of_the_plane()
    assert plane.codes.dtype == kind
    assert (plane.codes.tolist(), plane.counts) == (sorted(cells.tolist()), None)
    counted = replace(records, counts=np.array([1, 2, 3, 4, 5])).of_the_plane()
    assert counted.codes.tolist() == [3, size - 2, size - 1]
    assert counted.counts.tolist() == [4, 4, 7]
    for found in (plane, counted):
        assert (found.order, found.step, found.slices) == (order, (2, 1), None)


LATTICES = [((2**20, 2**20), (8, 4)), ((1201, 900), (4, 4)), ((64, 96), (1, 32)), ((5, 3), (8, 8))]


@pytest.mark.parametrize(("lattice", "step"), LATTICES, ids=str)
def test_blocks_have_the_records_of_their_cells(lattice, step):
    random, blocks = np.random.default_rng(2), Blocks(lattice=lattice, step=step)
    columns, rows = (random.integers(0, cells, 300) // 5 * 5 for cells in lattice)
    expected = counted(blocks.to_blocks(columns, 0), blocks.to_blocks(rows, 1))
    order, coarse = QuadrantOrder(lattice), QuadrantOrder(blocks.coarse_lattice)
    of_cells = QuadrantCodes.of_ascending(order, np.sort(order.codes(columns, rows)), None)
    of_blocks = of_cells.in_blocks(blocks)
    assert of_blocks.order.lattice == blocks.coarse_lattice
    corners = replace(of_blocks, step=step)  # as they are counted where blocks divide the lattice
    facts = {"contributions": 2, "report": {"read": 300}}
    forms = [Tally.of_codes(codes, **facts) for codes in (of_cells, of_cells.distinct(), corners)]
    plain = {name: getattr(forms[0], name) for name in ("columns", "rows", "counts")}
    for form in (*forms, Tally(**plain, **facts)):
        tally = form.in_blocks(blocks)
        assert sorted(listed(tally)) == expected
        codes = tally.quadrant_codes(coarse).distinct()
        assert codes.codes.tolist() == of_blocks.distinct().codes.tolist()
        assert codes.counts.tolist() == of_blocks.distinct().counts.tolist()
        assert (tally.contributions, tally.report) == (2, {"read": 300})
    assert {cell[:2] for cell in listed(forms[2])} == {
        (row * step[1], column * step[0]) for row, column, _ in expected
    }
    assert forms[2].quadrant_codes(order).counts.sum() == 300


# --- counters ---------------------------------------------------------------------------------

DENSE = 2**24  # cells that are counted in an array without a limit of memory


def test_an_array_of_all_cells_takes_an_eighth_of_the_memory():
    assert is_dense(DENSE)
    assert not is_dense(DENSE + 1)
    assert not is_dense(DENSE + 1, 2**40)
    for cells in (1, 2**20):
        assert is_dense(cells, 64 * cells)
        assert not is_dense(cells, 64 * cells - 1)
    few = cell_counter(4, 64 * 4), cell_counter(4, 64 * 4 - 1)
    for counter, kind in zip(few, ("_Dense", "_Sparse"), strict=True):
        assert type(counter).__name__ == kind


def test_codes_of_records_take_little_until_they_are_sorted(monkeypatch):
    monkeypatch.setattr("psd.ingest.quadrant_codes._FIRST_BUFFER", 1)
    for cells, kind in ((2**32, np.uint32), (2**32 + 1, np.int64)):
        counter = cell_counter(cells, 64_000)  # 500 codes wait
        for start, size in ((0, 3), (3, 297), (300, 200)):
            counter.add(np.arange(start, start + size)[::-1] // 2)
        codes, counts = counter.entries()
        assert codes.dtype == kind
        assert sorted(codes.tolist()) == [code // 2 for code in range(500)]
        assert counts is None
        counter.add(np.array([249]))
        codes, counts = counter.entries()
        assert codes.dtype == counts.dtype == np.int64
        assert codes.tolist() == list(range(250))
        assert counts.tolist() == [2] * 249 + [3]


def test_sorted_codes_stay_when_more_are_added():
    for codes in ([5, 7, 9], [5, 7, 7]):
        for limit, cells in product((1, 2, 10), (2**32, 2**40)):
            counter = cell_counter(cells, 10**6)
            counter._limit = limit
            counter.add(np.array(codes))
            counter.add(np.array([3]))
            found = counter.counts()
            assert [values.dtype for values in found] == [np.int64] * 2
            assert dict(zip(*map(np.ndarray.tolist, found), strict=True)) == Counter([*codes, 3])


def test_weighted_records_wait_no_longer_than_others():
    counter = cell_counter(2**40, 1_280)  # ten codes wait
    for wait in (6, 0, 6):
        counter.add(np.arange(6), np.full(6, 2))
        assert sum(len(codes) for codes, _ in counter._weighted) == wait
    counter.add(np.arange(3))
    assert counter.counts()[1].tolist() == [7] * 3 + [6] * 3


def test_occupied_cells_fill_the_memory_and_no_more():
    for weights, number in product((None, np.ones), (100, 101)):
        counter = cell_counter(2**40, 6_400)
        codes = np.arange(number)
        if number == 101:
            with pytest.raises(ResourceError, match="raise memory="):
                counter.add(codes, weights and weights(number, np.int64))
        else:
            counter.add(codes, weights and weights(number, np.int64))
            assert len(counter.counts()[0]) == number


@pytest.mark.parametrize("largest", [1, 7, 15, 2**40])
def test_counts_of_slices_stay_with_their_codes(largest):
    """A code and its count are sorted as one word where both fit into it, and apart else."""
    rng, size = np.random.default_rng(largest % 1000), 2**30
    columns, rows = rng.integers(0, size, (2, 200)).astype(np.int32)
    columns[100:], rows[100:] = columns[:100], rows[:100]  # in two slices
    counts = rng.integers(1, largest + 1, 200)
    tally = Tally(columns=columns, rows=rows, counts=counts, slice=np.repeat([0, 1], 100))
    codes = tally.quadrant_codes(QuadrantOrder((size, size)))
    expected = sorted(zip(codes.order.codes(columns, rows).tolist(), counts.tolist(), strict=True))
    assert (np.diff(codes.codes) >= 0).all()
    assert sorted(zip(codes.codes.tolist(), codes.counts.tolist(), strict=True)) == expected
    none = Tally(columns=columns[:0], rows=rows[:0], counts=counts[:0])
    assert len(none.quadrant_codes(QuadrantOrder((size, size))).codes) == 0
