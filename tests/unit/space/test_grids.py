"""Grids under virtual nodes: the right cells, at most four children, nothing measured."""

from itertools import pairwise

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from psd.space.box_tree import check_tree
from psd.space.grids import cut_grid, cut_grids, grid_tree
from psd.space.growing_tree import GrowingTree
from support.tables import refused
from support.trees import domain_of


def test_a_grid_has_its_cells_and_no_wide_family(subtests):
    for lattice, size, cells in (
        ((8, 8), 8, (8, 8)),
        ((64, 64), 4, (4, 4)),
        ((9, 9), 3, (3, 3)),
        ((100, 100), 7, (7, 7)),  # does not divide the lattice
        ((64, 64), (13, 1), (13, 1)),
        ((64, 64), (1, 5), (1, 5)),
        ((64, 64), (3, 50), (3, 50)),
        ((3, 64), 8, (3, 8)),  # fewer columns
        ((3, 2), 100, (3, 2)),
        ((2**20, 2**20), 3, (3, 3)),
        ((64, 64), 1, (1, 1)),
        ((1, 1), 5, (1, 1)),
    ):
        tree = grid_tree(domain_of(lattice), size)
        leaves = tree.boxes[tree.is_leaf]
        with subtests.test(lattice=lattice, size=size):
            check_tree(tree, lattice)
            assert len(leaves) == cells[0] * cells[1]
            assert tree.children.max() <= 4
            assert not tree.loss.any()
            # The lines are those of an even division, rounded down to the lattice.
            for axis, m in enumerate(cells):
                lines = [i * lattice[axis] // m for i in range(m + 1)]
                assert sorted({*leaves[:, axis].tolist(), *leaves[:, axis + 2].tolist()}) == lines


def cutting(lattice):
    """A growing tree, and a cut of its cells that gives cells."""
    growing = GrowingTree(lattice)
    return growing, lambda cells, **lines: growing.cut(cells, **lines).cells


@pytest.mark.parametrize(("lattice", "size"), [((8, 8), (1, 1)), ((1, 1), (5, 5))])
def test_a_grid_of_one_cell_is_not_the_root_itself(lattice, size):
    growing, cut = cutting(lattice)
    # The root may carry a total already, and a cell is counted once.
    assert cut_grid(cut, growing.root(), lattice, size).nodes.tolist() == [1]


def test_many_cells_are_cut_into_grids_of_their_own_sizes(subtests):
    (growing, cut), rng = cutting((60, 45)), np.random.default_rng(5)
    cells = cut_grid(cut, growing.root(), (60, 45), (6, 5))
    sizes = rng.integers(-1, 12, (len(cells), 2))
    sizes[:4] = [(1, 1), (1, 7), (7, 1), (100, 100)]
    parts = cut_grids(cut, cells, sizes)
    expected = []
    for (x0, y0, x1, y1), size in zip(cells.boxes.tolist(), sizes.tolist(), strict=True):
        m, n = min(max(size[0], 1), x1 - x0), min(max(size[1], 1), y1 - y0)
        x = [x0 + i * (x1 - x0) // m for i in range(m + 1)]
        y = [y0 + i * (y1 - y0) // n for i in range(n + 1)]
        expected += [(a, c, b, d) for c, d in pairwise(y) for a, b in pairwise(x)]
    assert sorted(map(tuple, parts.boxes.tolist())) == sorted(expected)
    # None of them was there before, so all can be counted; nothing is left undivided.
    assert parts.nodes.min() > cells.nodes.max()
    tree = growing.tree()
    check_tree(tree, (60, 45))
    assert tree.is_leaf.sum() == len(parts) == len(set(parts.nodes.tolist()))
    growing, cut = cutting((8, 4))
    halves = cut(growing.root(), x=[4])
    parts = cut_grids(cut, halves, np.array([[1], [4]]))
    assert len(parts) == 1 + 16
    tree = grid_tree(domain_of((2**20, 2**20)), 100)
    assert tree.level.max() == 7
    assert len(tree) < 1.5 * 100 * 100
    table = [("at least 1", 0, -3, (0, 4), (4, -1))]
    refused(subtests, ParameterError, table, lambda size: grid_tree(domain_of((8, 8)), size))
    domain = domain_of((4, 4))
    tree = grid_tree(domain, 4)
    morton = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [3, 0], [2, 1], [3, 1]]
    assert tree.boxes[tree.is_leaf][:8, :2].tolist() == morton
    release = psd.Release.from_counts(tree, np.arange(16), 1, domain=domain)
    assert release.total == pytest.approx(120)
