"""The vectorised Hilbert code against the curve drawn by recursion, and the laws it rests on."""

import numpy as np
import pytest

from psd.space.grids import MAX_ORDER, encode, lattice_codes, square_lines
from support.hilbert_oracle import codes, walk


def test_codes_are_those_of_the_walk_one_to_one_and_neighbours_share_an_edge():
    for order in range(7):
        x, y = np.array(walk(order)).T
        assert encode(x, y, order).tolist() == list(range(4**order))
        x, y = (v.ravel() for v in np.meshgrid(np.arange(2**order), np.arange(2**order)))
        code = encode(x, y, order)
        along = np.argsort(code)
        assert code[along].tolist() == list(range(4**order))
        assert (np.abs(np.diff(x[along])) + np.abs(np.diff(y[along])) == 1).all()


@pytest.mark.parametrize("order", [6, MAX_ORDER])
def test_dyadic_squares_are_intervals_of_codes(order):
    random = np.random.default_rng(order)
    x, y = random.integers(0, 2**order, (2, 2_000))
    code = encode(x, y, order)
    assert code.max() < 4**order
    for bits in range(order + 1):
        assert (code >> 2 * bits == encode(x >> bits, y >> bits, order - bits)).all()


def test_steps_of_the_finest_curve_share_an_edge():
    """Neighbours of the walk, found from random cells: one of the four has the next code."""
    random = np.random.default_rng(5)
    x, y = random.integers(1, 2**MAX_ORDER - 1, (2, 2_000))
    around = [encode(x + a, y + b, MAX_ORDER) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    assert (np.stack(around) == encode(x, y, MAX_ORDER) + 1).any(axis=0).all()


@pytest.mark.parametrize(("lattice", "order"), [((3, 3), 2), ((5, 3), 3), ((1, 9), 4), ((7, 7), 2)])
def test_lattices_are_scaled(lattice, order):
    x, y = np.meshgrid(np.arange(lattice[0]), np.arange(lattice[1]), indexing="ij")
    found = lattice_codes(x.ravel(), y.ravel(), lattice, order)
    places = np.arange(2**order + 1)
    for axis, cell in enumerate((x.ravel(), y.ravel())):
        first = square_lines(places, lattice[axis], order)
        # A lattice cell lies at or beyond a place if and only if it is not before its line.
        beyond = (cell[:, None] << order) // lattice[axis] >= places
        assert (beyond == (cell[:, None] >= first)).all()
    if lattice[0] == lattice[1]:
        assert found.tolist() == codes(lattice[0], order).ravel().tolist()


def test_the_largest_lattice_does_not_overflow():
    last = np.array([2**30 - 1], np.int32)
    assert lattice_codes(last, last * 0, (2**30, 2**30), 18).tolist() == [4**18 - 1]
