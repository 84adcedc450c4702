"""Charges of nodes: siblings beside each other, paths in sum, refusals that change nothing."""

import numpy as np
import pytest

from psd.curator.path_charges import PathCharges
from psd.errors import ParameterError
from psd.space.growing_tree import GrowingTree


def charges_of(lattice=(8, 6), x=4, **lines):
    growing = GrowingTree(lattice)
    charges = PathCharges(growing)
    growing.cut(growing.root(), x=[x], **lines)
    return charges, growing


def charged(charges, nodes, nano, limit=10**12):
    return charges.charge(np.array(nodes), np.array(nano), limit)


def test_siblings_cost_once_and_paths_add_up():
    charges, growing = charges_of(y=[3])
    growing.cut(growing.cells(np.array([2])), x=[6])
    assert charged(charges, [1, 2, 3, 4], [5, 7, 5, 5])
    assert charges.total == 7
    assert charged(charges, [5, 6], [2, 3])
    assert charges.total == 10
    # An ancestor after its descendants.
    assert charged(charges, [0], [100])
    assert charges.total == 110
    # An ancestor and its descendants in one question.
    charges, _ = charges_of()
    assert charged(charges, np.empty(0, int), np.empty(0, int), 0)  # no question costs nothing
    assert charges.total == 0
    assert charged(charges, [1, 0, 2], [1, 10, 2])
    assert charges.total == 12
    # A node stands once in a question.
    charges, _ = charges_of()
    charged(charges, [1], [5])
    with pytest.raises(ParameterError, match="got one twice"):
        charged(charges, [2, 2], [1, 1])
    assert charges.of_nodes.tolist() == [0, 5, 0]
    assert charged(charges, [2, 1], [1, 3])
    assert charges.total == 8


def test_a_charge_beyond_the_limit_changes_nothing(subtests):
    for name, nano, limit in (
        ("one too many", 6, 10),
        ("far too many", 2**62, 10),
        # Added to the 5 of the root it would wrap round to a negative cost.
        ("overflow of 64 bits", 2**63 - 1, 10),
        ("overflow under the largest limit", 2**63 - 1, 10**12),
    ):
        charges, _ = charges_of()
        with subtests.test(name):
            assert charged(charges, [0], [5], limit)
            before = charges.of_nodes
            assert not charged(charges, [1, 2], [1, nano], limit)
            assert charges.total == 5
            assert np.array_equal(charges.of_nodes, before)
            # What was refused is still free to be asked for less, exactly up to the limit.
            assert charged(charges, [1, 2], [1, limit - 5], limit)
            assert charges.total == limit


def test_charges_stay_whole_numbers_while_the_tree_grows():
    charges, growing = charges_of((4, 4), x=1)
    assert charges.of_nodes.dtype == np.int64
    assert charges.of_nodes.tolist() == [0, 0, 0]
    assert charged(charges, [2], [3])
    growing.cut(growing.cells(np.array([2])), y=[1])
    assert charges.of_nodes.tolist() == [0, 0, 3, 0, 0]
    assert charges.of_nodes.dtype == np.int64
    assert charged(charges, [4], [4])
    assert charges.total == 7
    assert charges.total == 7
