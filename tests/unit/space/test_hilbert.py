"""The Hilbert code by hand; `tests/oracle/test_hilbert_twin.py` has its laws."""

import numpy as np
import pytest

from psd.space.hilbert import MAX_ORDER, encode, lattice_codes, square_lines


def test_codes_of_the_second_order_are_those_of_the_drawing():
    from_the_south = [[0, 1, 14, 15], [3, 2, 13, 12], [4, 7, 8, 11], [5, 6, 9, 10]]
    rows, columns = np.divmod(np.arange(16), 4)
    assert encode(columns, rows, 2).reshape(4, 4).tolist() == from_the_south


def test_a_square_of_one_cell_has_the_code_0():
    assert encode(np.array([0]), np.array([0]), 0).tolist() == [0]
    assert encode(np.array([], np.int64), np.array([], np.int64), 3).tolist() == []


def test_the_curve_begins_and_ends_in_the_south():
    last = 2**MAX_ORDER - 1
    codes = encode(np.array([0, last]), np.array([0, 0]), MAX_ORDER)
    assert codes.tolist() == [0, 4**MAX_ORDER - 1]


def test_cells_of_a_finer_lattice_share_the_code_of_their_square():
    columns, rows = np.array([0, 1, 2, 3]), np.array([0, 1, 0, 3])
    assert lattice_codes(columns, rows, (4, 4), 1).tolist() == [0, 0, 3, 2]


def test_a_coarser_lattice_is_spread_over_the_curve():
    codes = lattice_codes(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), (2, 2), 2)
    assert len(set(codes.tolist())) == 4
    assert (codes >> 2).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("cells", "order"), [(3, 2), (5, 3), (8, 3), (9, 2), (1, 4)])
def test_a_line_is_the_first_whose_cells_lie_at_or_beyond_a_position(cells, order):
    positions = np.arange(2**order + 1)
    scaled = (np.arange(cells) << order) // cells
    expected = [int((scaled < position).sum()) for position in positions]
    assert square_lines(positions, cells, order).tolist() == expected
