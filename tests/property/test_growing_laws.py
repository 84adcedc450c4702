"""However a tree was grown and charged: its order, and its cost at the dearest lattice point."""

import numpy as np
import pytest

from psd.curator.path_charges import PathCharges
from psd.space.box_tree import check_tree
from psd.space.growing_tree import GrowingTree


def grown(rng, lattice, cuts):
    """A growing tree after random cuts of random open cells, several at a time."""
    growing = GrowingTree(lattice)
    for _ in range(cuts):
        leaves = np.setdiff1d(np.arange(len(growing.parent)), growing.parent)
        chosen = rng.permutation(leaves)[: rng.integers(1, 4)]
        cells = growing.cells(chosen)
        x, y = (rng.integers(cells.boxes[:, axis], cells.boxes[:, axis + 2] + 1) for axis in (0, 1))
        axes = rng.integers(1, 4)
        growing.cut(cells, x=x if axes & 1 else None, y=y if axes & 2 else None)
    return growing


def dearest_point(lattice, boxes, charges):
    """Largest sum of charges over lattice points: a two-dimensional difference array."""
    steps = np.zeros((lattice[0] + 1, lattice[1] + 1), np.int64)
    for (x0, y0, x1, y1), nano in zip(boxes.tolist(), charges.tolist(), strict=True):
        steps[x0, y0] += nano
        steps[x1, y0] -= nano
        steps[x0, y1] -= nano
        steps[x1, y1] += nano
    return int(steps.cumsum(axis=0).cumsum(axis=1).max())


@pytest.mark.parametrize("seed", range(60))
def test_cost_is_the_largest_sum_of_charges_over_lattice_points(seed):
    rng, lattice = np.random.default_rng(seed), (24, 18)
    growing = grown(rng, lattice, 12)
    paths = PathCharges(growing)
    waiting = rng.permutation(len(growing.parent))  # ancestors after descendants and before
    while len(waiting):
        size = rng.integers(1, 6)
        nodes, waiting = waiting[:size], waiting[size:]
        nano = rng.integers(1, 1000, len(nodes))
        before = (paths.total, paths.of_nodes)
        limit = int(rng.integers(500, 4000))
        charges = paths.of_nodes
        charges[nodes] += nano
        cost = dearest_point(lattice, growing.boxes, charges)
        assert paths.charge(nodes, nano, limit) == (cost <= limit)
        if cost <= limit:
            assert paths.total == cost
            assert np.array_equal(paths.of_nodes, charges)
        else:
            assert paths.total == before[0]
            assert np.array_equal(paths.of_nodes, before[1])


@pytest.mark.parametrize("seed", range(60))
def test_charges_between_cuts_cost_the_same(seed):
    rng, lattice = np.random.default_rng(seed), (24, 18)
    growing = grown(rng, lattice, 3)
    paths = PathCharges(growing)
    for _ in range(8):
        nodes = rng.permutation(len(growing.parent))[: rng.integers(0, 5)]
        assert paths.charge(nodes, rng.integers(1, 1000, len(nodes)), 10**12)
        assert paths.total == dearest_point(lattice, growing.boxes, paths.of_nodes)
        leaves = np.setdiff1d(np.arange(len(growing.parent)), growing.parent)
        cells = growing.cells(rng.permutation(leaves)[:2])
        growing.cut(cells, x=cells.middle(0), y=cells.middle(1))
        assert paths.total == dearest_point(lattice, growing.boxes, paths.of_nodes)
    growing.measure(np.arange(len(growing.parent)), 0 * paths.of_nodes, paths.of_nodes)
    assert growing.tree().max_path_epsilon == paths.total


@pytest.mark.parametrize("seed", range(60))
def test_the_finished_tree_is_sound_and_holds_every_node(seed):
    rng, lattice = np.random.default_rng(seed), (24, 18)
    growing = grown(rng, lattice, 15)
    size = len(growing.parent)
    growing.measure(np.arange(size), rng.integers(-9, 99, size), rng.integers(1, 99, size))
    tree = growing.tree()
    check_tree(tree, lattice)  # level order, contiguous families, children that tile
    rows = np.column_stack([growing.boxes, growing.level, growing.count, growing.epsilon])
    same = np.column_stack([tree.boxes, tree.level, tree.count, tree.epsilon])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, same.tolist()))
    up = rows[growing.parent[1:]], same[tree.parent[1:]]
    pairs = [np.column_stack([a[1:], b]) for a, b in zip((rows, same), up, strict=True)]
    assert sorted(map(tuple, pairs[0].tolist())) == sorted(map(tuple, pairs[1].tolist()))
