"""Tallies of codes, against the cells that the codes stand for."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from psd.ingest.quadrant_codes import QuadrantCodes, QuadrantOrder
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
