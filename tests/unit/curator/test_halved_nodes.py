"""Points in quadrant order, against points that are sorted cell by cell."""

import numpy as np
import pytest

from psd.curator.points import Points
from psd.ingest.quadrant_codes import QuadrantCodes
from psd.ingest.tally import Tally
from psd.space.growing_tree import GrowingTree
from psd.space.quadrant_order import QuadrantOrder

LATTICES = [(16, 16), (16, 5), (7, 9), (1, 6), (1, 1), (2**20, 2**20), (2**16, 2**16), (1201, 1001)]


def tallies(lattice, size=200, seed=0):
    """The same records by code, by distinct code, and by cell."""
    random, order = np.random.default_rng(seed), QuadrantOrder(lattice)
    # Many records in few cells, among them the corners.
    columns, rows = (random.integers(0, cells, size) // 3 % cells for cells in lattice)
    columns[:9], rows[:5], rows[5:9] = lattice[0] - 1, lattice[1] - 1, 0
    for kind in (np.uint32, np.int64):
        if 4**order.levels > 2**32 and kind is np.uint32:
            continue
        codes = np.sort(order.codes(columns, rows)).astype(kind)
        records = QuadrantCodes.of_ascending(order, codes, None)
        yield Tally.of_codes(records, contributions=1, report={})
        yield Tally.of_codes(records.distinct(), contributions=1, report={})
    last = Tally.of_codes(records, contributions=1, report={})
    yield Tally(columns=last.columns, rows=last.rows, counts=last.counts)


def halved(points, tree, levels, seed):
    """Cut random cells in their middle; others get one child, or stay."""
    random, cells = np.random.default_rng(seed), tree.root()
    for _ in range(levels):
        cells = cells[random.permutation(len(cells))[: 1 + 3 * len(cells) // 4]]
        stays = random.random(len(cells)) < 0.2
        lines = [np.where(stays, cells.boxes[:, axis], cells.middle(axis)) for axis in (0, 1)]
        cut = tree.cut(cells, x=lines[0], y=lines[1])
        points.cut(cut)
        cells = cut.cells
    return cells


def counts(tally, boxes):
    """Records of boxes, one by one."""
    return [
        int(
            tally.counts[
                (tally.columns >= west)
                & (tally.columns < east)
                & (tally.rows >= south)
                & (tally.rows < north)
            ].sum()
        )
        for west, south, east, north in boxes.tolist()
    ]


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_nodes_count_the_records_of_their_boxes(lattice):
    for number, tally in enumerate(tallies(lattice)):
        tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
        halved(points, tree, 6, number)
        assert points.count(np.arange(len(tree.boxes))).tolist() == counts(tally, tree.boxes)


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_other_cuts_and_questions_may_follow(lattice):
    for number, tally in enumerate(tallies(lattice)):
        random = np.random.default_rng(number)
        tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
        cells = halved(points, tree, 3, number)
        x, y = (random.integers(cells.boxes[:, i], cells.boxes[:, i + 2] + 1) for i in (0, 1))
        cut = tree.cut(cells, x=x, y=y)
        points.cut(cut)
        nodes = np.arange(len(tree.boxes))
        assert points.count(nodes).tolist() == counts(tally, tree.boxes)


def test_questions_about_lines_do_not_depend_on_the_form_of_a_tally():
    lattice = (2**16, 2**16)
    answers = []
    for tally in tallies(lattice):
        tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
        halved(points, tree, 3, 0)
        nodes = np.arange(len(tree.boxes))
        p, q = np.full(len(nodes), 1), np.full(len(nodes), 3)
        scores = points.rank_scores(nodes, tree.boxes[:, [0, 2]], 0, p, q)
        values = (scores.group, scores.first, scores.length, scores.score)
        answers.append([array.tolist() for array in values])
    assert all(answer == answers[0] for answer in answers)


def test_an_empty_tally_has_no_records_anywhere():
    order, lattice = QuadrantOrder((2**20, 2**20)), (2**20, 2**20)
    codes = QuadrantCodes.of_ascending(order, np.empty(0, np.int64), None)
    tally = Tally.of_codes(codes, contributions=1, report={})
    tree, points = GrowingTree(lattice), Points(tally, order)
    halved(points, tree, 4, 0)
    assert not points.count(np.arange(len(tree.boxes))).any()
    assert len(tally.columns) == len(tally.rows) == len(tally.counts) == 0
