"""Quadrant order, against cells that are halved one by one."""

from functools import partial

import numpy as np
import pytest

from psd.ingest.quadrant_codes import QuadrantOrder
from psd.space.growing_tree import GrowingTree

SIDES = [*range(1, 40), 61, 100, 127, 129, 1201]
LARGE = [2**20, 10**6, 11_000_001, 2**29 + 1, 999_999_937, 2**30 - 1, 2**30]


def path(cell, cells, levels):
    """Path of a cell of an axis."""
    low, high, bits = 0, cells, 0
    for _ in range(levels):
        middle = (low + high) // 2 if high - low > 1 else high
        is_high = cell >= middle
        low, high = (middle, high) if is_high else (low, middle)
        bits = 2 * bits + is_high
    return bits


def test_the_codes_of_lines_and_of_large_lattices_are_their_paths(subtests):
    for cells in SIDES:
        order, column = QuadrantOrder((cells, 1)), np.arange(cells)
        paths = [path(cell, cells, order.levels) for cell in range(cells)]
        spread = [sum((bits >> i & 1) << 2 * i for i in range(order.levels)) for bits in paths]
        with subtests.test(cells=cells):
            assert order.codes(column, 0 * column).tolist() == spread
            upright = QuadrantOrder((1, cells)).codes(0 * column, column)
            assert upright.tolist() == [2 * code for code in spread]
    for cells in LARGE:
        random = np.random.default_rng(cells)
        last = [0, 1, cells // 2, cells - 2, cells - 1]
        column = np.append(random.integers(0, cells, 200), last)
        row = random.permutation(column)
        order = QuadrantOrder((cells, cells))
        codes = order.codes(column.astype(np.int32), row.astype(np.int32))
        paths = partial(path, cells=cells, levels=order.levels)
        x, y = (list(map(paths, axis.tolist())) for axis in (column, row))
        expected = [
            sum(((a >> i & 1) + 2 * (b >> i & 1)) << 2 * i for i in range(order.levels))
            for a, b in zip(x, y, strict=True)
        ]
        with subtests.test(cells=cells):
            assert codes.dtype == np.int64
            assert codes.tolist() == expected
            found = np.array(order.cells(codes))
            assert found.dtype == np.int64
            assert np.array_equal(found, [column, row])


def test_codes_are_the_same_in_blocks(monkeypatch):
    order, column = QuadrantOrder((1201, 900)), np.arange(0, 900, 9)
    at_once = order.codes(column, column[::-1])
    monkeypatch.setattr("psd.ingest.quadrant_codes._AT_ONCE", 16)
    np.testing.assert_array_equal(order.codes(column, column[::-1]), at_once)


@pytest.mark.parametrize("lattice", [(8, 8), (5, 7), (1, 1), (16, 3), (1, 9), (13, 64), (100, 37)])
def test_each_node_of_repeated_halves_is_a_range(lattice):
    order, tree = QuadrantOrder(lattice), GrowingTree(lattice)
    rows, columns = np.divmod(np.arange(lattice[0] * lattice[1]), lattice[0])
    codes = order.codes(columns, rows)
    assert len(set(codes.tolist())) == len(codes)
    assert codes.max() < 4**order.levels
    cells = tree.root()
    for level in range(order.levels + 1):
        for west, south, east, north in cells.boxes.tolist():
            inside = (columns >= west) & (columns < east) & (rows >= south) & (rows < north)
            corner = codes[(columns == west) & (rows == south)][0]
            size = order.size(np.array([level]))[0]
            assert (inside == ((codes >= corner) & (codes < corner + size))).all()
        cells = tree.cut(cells, x=cells.middle(0), y=cells.middle(1)).cells
