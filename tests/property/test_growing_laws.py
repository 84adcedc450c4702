"""However a tree was grown and charged: its order, and its cost at the dearest lattice point."""

import numpy as np

from psd.curator.path_charges import PathCharges
from psd.space.box_tree import check_tree
from psd.space.growing_tree import GrowingTree
from support.seeds import for_seeds

LATTICE = (24, 18)


def grown(rng, cuts):
    """A growing tree after random cuts of random open cells, several at a time."""
    growing = GrowingTree(LATTICE)
    for _ in range(cuts):
        leaves = np.setdiff1d(np.arange(len(growing.parent)), growing.parent)
        chosen = rng.permutation(leaves)[: rng.integers(1, 4)]
        cells = growing.cells(chosen)
        x, y = (rng.integers(cells.boxes[:, axis], cells.boxes[:, axis + 2] + 1) for axis in (0, 1))
        axes = rng.integers(1, 4)
        growing.cut(cells, x=x if axes & 1 else None, y=y if axes & 2 else None)
    return growing


def dearest_point(boxes, charges):
    """Largest sum of charges over lattice points: a two-dimensional difference array."""
    steps = np.zeros((LATTICE[0] + 1, LATTICE[1] + 1), np.int64)
    for (x0, y0, x1, y1), nano in zip(boxes.tolist(), charges.tolist(), strict=True):
        for x, y, sign in ((x0, y0, 1), (x1, y0, -1), (x0, y1, -1), (x1, y1, 1)):
            steps[x, y] += sign * nano
    return int(steps.cumsum(axis=0).cumsum(axis=1).max())


@for_seeds(60)
def test_cost_is_the_largest_sum_of_charges_over_lattice_points(rng):
    growing = grown(rng, 12)
    paths = PathCharges(growing)
    waiting = rng.permutation(len(growing.parent))  # ancestors after descendants and before
    while len(waiting):
        size = rng.integers(1, 6)
        nodes, waiting = waiting[:size], waiting[size:]
        nano = rng.integers(1, 1000, len(nodes))
        limit, before = int(rng.integers(500, 4000)), (paths.total, paths.of_nodes)
        charges = paths.of_nodes
        charges[nodes] += nano
        cost = dearest_point(growing.boxes, charges)
        assert paths.charge(nodes, nano, limit) == (cost <= limit)
        total, of_nodes = (cost, charges) if cost <= limit else before
        assert paths.total == total
        assert np.array_equal(paths.of_nodes, of_nodes)


@for_seeds(60)
def test_charges_between_cuts_cost_the_same(rng):
    growing = grown(rng, 3)
    paths = PathCharges(growing)
    for _ in range(8):
        nodes = rng.permutation(len(growing.parent))[: rng.integers(0, 5)]
        assert paths.charge(nodes, rng.integers(1, 1000, len(nodes)), 10**12)
        assert paths.total == dearest_point(growing.boxes, paths.of_nodes)
        leaves = np.setdiff1d(np.arange(len(growing.parent)), growing.parent)
        cells = growing.cells(rng.permutation(leaves)[:2])
        growing.cut(cells, x=cells.middle(0), y=cells.middle(1))
        assert paths.total == dearest_point(growing.boxes, paths.of_nodes)
    growing.measure(np.arange(len(growing.parent)), 0 * paths.of_nodes, paths.of_nodes)
    assert growing.tree().max_path_loss == paths.total


@for_seeds(60)
def test_the_finished_tree_is_sound_and_holds_every_node(rng):
    growing = grown(rng, 15)
    size = len(growing.parent)
    growing.measure(np.arange(size), rng.integers(-9, 99, size), rng.integers(1, 99, size))
    tree = growing.tree()
    check_tree(tree, LATTICE)  # level order, contiguous families, children that tile
    nodes = []
    for made in (growing, tree):
        rows = np.column_stack([made.boxes, made.level, made.count, made.loss])
        pairs = np.column_stack([rows[1:], rows[made.parent[1:]]])
        nodes.append((sorted(rows.tolist()), sorted(pairs.tolist())))
    assert nodes[0] == nodes[1]
