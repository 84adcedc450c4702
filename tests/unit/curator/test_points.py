"""Points of nodes, against sums over all cells of a small lattice."""

import numpy as np
import pytest

from psd.curator.points import Points
from psd.ingest.tally import Tally
from psd.space.growing_tree import GrowingTree
from psd.space.quadrant_order import QuadrantOrder

SIDE = 8
ORDER = QuadrantOrder((SIDE, SIDE))


def tally_of(counts):
    """Tally of a raster, shape (rows, columns)."""
    rows, columns = np.nonzero(counts)
    return Tally(
        columns=columns.astype(np.int32), rows=rows.astype(np.int32), counts=counts[rows, columns]
    )


def raster(seed, density=0.4):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 9, (SIDE, SIDE)) * (rng.random((SIDE, SIDE)) < density)


def records(counts, box):
    """Records of a box."""
    west, south, east, north = box
    return int(counts[south:north, west:east].sum())


def grown(counts, seed=0):
    """Points of a tree whose cells are cut three times at random lines, and the tree."""
    random = np.random.default_rng(seed)
    tree, points = GrowingTree((SIDE, SIDE)), Points(tally_of(counts), ORDER)
    cells = tree.root()
    for _ in range(3):
        x, y = (random.integers(cells.boxes[:, i], cells.boxes[:, i + 2] + 1) for i in (0, 1))
        cut = tree.cut(cells, x=x, y=y)
        points.cut(cut)
        cells = cut.cells
    return points, tree


@pytest.mark.parametrize("seed", range(20))
def test_each_node_counts_the_records_of_its_box(seed):
    counts = raster(seed)
    points, tree = grown(counts, seed)
    expected = [records(counts, box) for box in tree.boxes]
    assert points.count(np.arange(len(tree.boxes))).tolist() == expected
    again = np.array([len(expected) - 1, 0, 0])
    assert points.count(again).tolist() == [expected[-1], expected[0], expected[0]]


def test_nodes_without_records_count_nothing():
    points, tree = grown(np.zeros((SIDE, SIDE), np.int64))
    assert not points.count(np.arange(len(tree.boxes))).any()


def test_cutting_some_nodes_leaves_the_others_as_they_are():
    counts = raster(5)
    points, tree = grown(counts, 5)
    before = points.count(np.arange(len(tree.boxes)))
    leaves = ~tree.is_cut(np.arange(len(tree.boxes)))
    large = (tree.boxes[:, 2:] - tree.boxes[:, :2]).min(axis=1) > 1
    cells = tree.cells(np.flatnonzero(leaves & large)[::-2])
    points.cut(tree.cut(cells, x=cells.middle(0), y=cells.middle(1)))
    assert (points.count(np.arange(len(before))) == before).all()
    expected = [records(counts, box) for box in tree.boxes]
    assert points.count(np.arange(len(tree.boxes))).tolist() == expected


@pytest.mark.parametrize("axis", [0, 1])
def test_each_line_has_its_score_once(axis):
    counts = raster(7)
    points, tree = grown(counts, 7)
    nodes = np.arange(len(tree.boxes))
    p, q = np.full(len(nodes), 1), np.full(len(nodes), 3)
    candidates = points.rank_scores(nodes, tree.boxes[:, [axis, axis + 2]], axis, p, q)
    scores = [{} for _ in nodes]
    for node, first, length, score in zip(
        *(candidates.group, candidates.first, candidates.length, candidates.score), strict=True
    ):
        lines = range(first, first + length)
        assert scores[node].keys().isdisjoint(lines)
        scores[node].update(dict.fromkeys(map(int, lines), int(score)))
    for node, box in enumerate(tree.boxes):
        low, high = int(box[axis]), int(box[axis + 2])
        expected = {}
        for line in range(low + 1, high) if high > low + 1 else [low]:
            part = box.copy()
            part[axis + 2] = line
            expected[line] = -abs(3 * records(counts, part) - records(counts, box))
        assert scores[node] == expected


def test_points_of_a_curve_lie_on_one_line_of_codes():
    tally = tally_of(raster(2))
    codes = np.random.default_rng(2).permutation(64)[: len(tally.counts)]
    points, tree = Points(tally, codes), GrowingTree((64, 1), curve=3)
    cut = tree.cut(tree.root(), x=np.array([20]))
    points.cut(cut)
    first = int(tally.counts[codes < 20].sum())
    total = int(tally.counts.sum())
    assert points.count(np.arange(3)).tolist() == [total, first, total - first]
    assert tally.rows.any(), "the rows of the tally are not those of the line"


def test_the_tally_stays_as_it_is():
    tally = tally_of(raster(4))
    before = [values.copy() for values in (tally.columns, tally.rows, tally.counts)]
    points, tree = Points(tally, ORDER), GrowingTree((SIDE, SIDE))
    points.cut(tree.cut(tree.root(), x=np.array([3]), y=np.array([5])))
    after = (tally.columns, tally.rows, tally.counts)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
