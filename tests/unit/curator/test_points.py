"""Points of nodes, in any order of cuts: against sums over the cells of their boxes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import psd
from psd.curator import points as module
from psd.curator.points import Points
from psd.ingest.quadrant_codes import QuadrantCodes, QuadrantOrder
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit
from psd.space.axes import TimeAxis
from psd.space.grids import cut_grids
from psd.space.growing_tree import Cells, GrowingTree
from psd.space.region_tree import region_frame
from psd.space.time_slices import TimeSlices
from support.small_regions import SHAPES

SIDE = 8
ORDER = QuadrantOrder((SIDE, SIDE))


def by_boxes(tree, counts):
    """Records of the nodes of a tree, one by one, by their boxes and spans of regions."""
    found = []
    for node, (west, south, east, north) in enumerate(tree.boxes.tolist()):
        inside = (west <= counts.columns) & (counts.columns < east)
        inside &= (south <= counts.rows) & (counts.rows < north)
        if counts.region is not None:
            first, stop = tree.spans[node]
            inside &= (first <= counts.region) & (counts.region < stop)
        found.append(int(counts.counts[inside].sum()))
    return found


def counted(points, tree):
    return points.count(np.arange(len(tree.boxes))).tolist()


def arrays(tally):
    return [values.tolist() for values in (tally.columns, tally.rows, tally.counts)]


def tally_of(counts):
    rows, columns = (axis.astype(np.int32) for axis in np.nonzero(counts))
    return Tally(columns=columns, rows=rows, counts=counts[rows, columns])


def raster(seed, density=0.4):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 9, (SIDE, SIDE)) * (rng.random((SIDE, SIDE)) < density)


def cut_anywhere(points, tree, cells, random):
    """The parts of cells that are cut at random lines."""
    x, y = (random.integers(cells.boxes[:, i], cells.boxes[:, i + 2] + 1) for i in (0, 1))
    cut = tree.cut(cells, x=x, y=y)
    points.cut(cut)
    return cut.cells


def grown(tally, seed=0):
    """Points of a tree whose cells are cut three times at random lines, and the tree."""
    random = np.random.default_rng(seed)
    tree, points = GrowingTree((SIDE, SIDE)), Points(tally, ORDER)
    cells = tree.root()
    for _ in range(3):
        cells = cut_anywhere(points, tree, cells, random)
    return points, tree


def test_each_node_counts_the_records_of_its_box(subtests):
    for seed in range(20):
        tally = tally_of(raster(seed))
        before = arrays(tally)
        points, tree = grown(tally, seed)
        with subtests.test(seed=seed):
            expected = by_boxes(tree, tally)
            assert counted(points, tree) == expected
            again = np.array([len(expected) - 1, 0, 0])
            assert points.count(again).tolist() == [expected[-1], expected[0], expected[0]]
            assert arrays(tally) == before
    points, tree = grown(tally_of(np.zeros((SIDE, SIDE), np.int64)))
    assert not any(counted(points, tree))


def scores_of_lines(points, tree, axis, p=1, q=3):
    nodes = np.arange(len(tree.boxes))
    ends = tree.boxes[:, [axis, axis + 2]]
    return points.rank_scores(nodes, ends, axis, np.full(len(nodes), p), np.full(len(nodes), q))


@pytest.mark.parametrize("axis", [0, 1])
def test_each_line_has_its_score_once(axis):
    counts = raster(7)
    points, tree = grown(tally_of(counts), 7)
    candidates = scores_of_lines(points, tree, axis)
    scores = [{} for _ in tree.boxes]
    for node, first, length, score in zip(
        *(candidates.group, candidates.first, candidates.length, candidates.score), strict=True
    ):
        lines = range(first, first + length)
        assert scores[node].keys().isdisjoint(lines)
        scores[node].update(dict.fromkeys(map(int, lines), int(score)))

    def records(west, south, east, north):
        return int(counts[south:north, west:east].sum())

    for node, box in enumerate(tree.boxes):
        low, high = int(box[axis]), int(box[axis + 2])
        expected = {}
        for line in range(low + 1, high) if high > low + 1 else [low]:
            part = box.copy()
            part[axis + 2] = line
            expected[line] = -abs(3 * records(*part) - records(*box))
        assert scores[node] == expected


# Points in quadrant order

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


def halved(tally, lattice, levels, seed):
    """Points and a tree of random cells that are cut in the middle; some stay, or get one child."""
    tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
    random, cells = np.random.default_rng(seed), tree.root()
    for _ in range(levels):
        cells = cells[random.permutation(len(cells))[: 1 + 3 * len(cells) // 4]]
        stays = random.random(len(cells)) < 0.2
        lines = [np.where(stays, cells.boxes[:, axis], cells.middle(axis)) for axis in (0, 1)]
        cut = tree.cut(cells, x=lines[0], y=lines[1])
        points.cut(cut)
        cells = cut.cells
    return points, tree, cells


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_halved_nodes_count_the_records_of_their_boxes_and_other_cuts_may_follow(lattice):
    for number, tally in enumerate([*tallies(lattice), *tallies(lattice, size=0)]):
        points, tree, _ = halved(tally, lattice, 6, number)
        assert counted(points, tree) == by_boxes(tree, tally)
        points, tree, cells = halved(tally, lattice, 3, number)
        cut_anywhere(points, tree, cells, np.random.default_rng(number))
        assert counted(points, tree) == by_boxes(tree, tally)


def test_questions_about_lines_do_not_depend_on_the_form_of_a_tally():
    answers = []
    for tally in tallies((2**16, 2**16)):
        points, tree, _ = halved(tally, (2**16, 2**16), 3, 0)
        scores = scores_of_lines(points, tree, 0)
        values = (scores.group, scores.first, scores.length, scores.score)
        answers.append([array.tolist() for array in values])
    assert all(answer == answers[0] for answer in answers)


# Grids, which several cuts make


def cut_waits(points, tree):
    """Cuts cells for `cut_grids`; afterwards the method changes what it gave and was given."""

    def cut(cells, *, x, y):
        made = tree.cut(cells, x=x, y=y)
        points.cut(made)
        given = made.cells
        own = Cells(layer=given.layer, nodes=given.nodes.copy(), boxes=given.boxes.copy())
        cells.nodes[:], given.nodes[:], given.boxes[:] = 0, 0, 0
        return own

    return cut


@pytest.mark.parametrize("chunk", [7, 2**15])
@pytest.mark.parametrize("lattice", [(60, 45), (1201, 1001), (2**20, 2**20)], ids=str)
def test_cells_of_even_grids_get_their_records_without_the_levels_between(
    lattice, chunk, monkeypatch
):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    monkeypatch.setattr(module, "_Quadrants", None)  # of a single cut
    for number, tally in enumerate([*tallies(lattice), *tallies(lattice, size=0)]):
        tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
        cut, rng = cut_waits(points, tree), np.random.default_rng(number)
        cells = cut_grids(cut, tree.root(), np.array([[6, 5]]))
        assert counted(points, tree) == by_boxes(tree, tally)
        cut_grids(cut, cells[::2], rng.integers(2, 9, (15, 2)))
        assert counted(points, tree) == by_boxes(tree, tally)


def test_few_cells_below_many_nodes_are_counted_too():
    """A quadrant that is empty has no number; fewer children than nodes before showed that."""
    for tally in tallies((60, 45)):
        tree, points = GrowingTree((60, 45)), Points(tally, QuadrantOrder((60, 45)))
        cut = cut_waits(points, tree)
        cells = cut_grids(cut, tree.root(), np.array([[16, 12]]))
        assert counted(points, tree) == by_boxes(tree, tally)
        cut_grids(cut, cells[:2], np.array([[3, 3], [3, 3]]))
        assert counted(points, tree) == by_boxes(tree, tally)


def test_several_cuts_that_make_no_even_grid_are_counted_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 7)
    for tally in tallies((60, 45)):
        for x in (20, 29, 40, 59):
            tree, points = GrowingTree((60, 45)), Points(tally, QuadrantOrder((60, 45)))
            points.cut(tree.cut(tree.root(), x=[x], y=[22]))
            for _ in range(2):  # the first two nodes are cut near their edges, some are not
                open_ = tree.cells(np.flatnonzero(~tree.is_cut(np.arange(len(tree.parent))))[:2])
                points.cut(tree.cut(open_, x=open_.boxes[:, 0] + [x // 8, 0], y=open_.middle(1)))
            assert counted(points, tree) == by_boxes(tree, tally)


def test_a_question_about_lines_may_follow_a_grid():
    for tally in tallies((1201, 1001)):
        tree, points = GrowingTree((1201, 1001)), Points(tally, QuadrantOrder((1201, 1001)))
        cut_grids(cut_waits(points, tree), tree.root(), np.array([[3, 5]]))
        expected = by_boxes(tree, tally)
        for ask in (counted, lambda *made: scores_of_lines(*made, 1)):
            ask(points, tree)
            assert counted(points, tree) == expected


# Entries of regions


def entries_of(regions, seed, number):
    rng = np.random.default_rng(seed)
    region = np.sort(rng.integers(0, regions.size, number)).astype(np.int32)
    low, high = regions.boxes[region, :2], regions.boxes[region, 2:]
    cells = low + (rng.random((number, 2)) * (high - low)).astype(np.int64)
    columns, rows = cells.astype(np.int32).T.copy()
    return Tally(columns=columns, rows=rows, counts=rng.integers(1, 9, number), region=region)


def grown_in_regions(tally, regions, seed):
    """Cut half of the open cells of a region tree, again and again."""
    lattice, rng = (4, 4), np.random.default_rng(seed)
    tree, points = GrowingTree(lattice), Points(tally, QuadrantOrder(lattice))
    frame = region_frame(regions, lattice)
    tree.cut_regions(regions, frame)
    points.cut_regions(frame)
    for _ in range(6):
        cells = tree.cells(np.flatnonzero(~tree.is_cut(np.arange(len(tree.parent)))))
        cells = cells[rng.permutation(len(cells))[: max(len(cells) // 2, 1)]]
        points.cut(tree.cut(cells, x=cells.middle(0), y=cells.middle(1)))
    return points, tree


@pytest.mark.parametrize("chunk", [7, 2**15])
def test_counts_of_entries_are_those_of_the_boxes(chunk, monkeypatch, subtests):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    for shape, regions in SHAPES.items():
        for number in (0, 1, 40):
            tally = entries_of(regions, number, number)
            points, tree = grown_in_regions(tally, regions, 5)
            with subtests.test(shape, number=number):
                assert counted(points, tree) == by_boxes(tree, tally)


def test_a_question_about_lines_finds_the_entries_of_its_nodes(subtests):
    for shape, regions in SHAPES.items():
        tally = entries_of(regions, 3, 30)
        before = arrays(tally)
        points, tree = grown_in_regions(tally, regions, 6)
        nodes = np.flatnonzero(~tree.is_cut(np.arange(len(tree.parent))))
        one = np.ones(len(nodes), np.int64)
        scores = points.rank_scores(nodes, tree.boxes[nodes][:, [0, 2]], 0, one, 2 * one)
        with subtests.test(shape):
            assert (scores.length >= 0).all()
            assert counted(points, tree) == by_boxes(tree, tally)
            assert arrays(tally) == before


# Codes with time slices

HOURS = TimeSlices.parse("hour", "2024-01-01T00..2024-01-01T10")


def sliced(lattice, size, seed):
    """The same records by code, by distinct code, and by cell with their slices."""
    random, order = np.random.default_rng(seed), QuadrantOrder(lattice)
    columns, rows = (random.integers(0, cells, size) // 3 % cells for cells in lattice)
    slices = random.integers(0, len(HOURS), size)
    codes = np.sort(order.codes(columns, rows) + (slices << 2 * order.levels))
    records = QuadrantCodes.of_ascending(order, codes, None)
    for each in (records, records.distinct()):
        codes = replace(each, slices=len(HOURS))
        yield Tally.of_codes(codes, contributions=1, report={})


def cut_in_time(points, tree, cells, random):
    """Halve some cells and divide the time of others; some stay."""
    kind = random.integers(0, 3, len(cells))
    lines = [np.where(kind == 1, cells.middle(axis), cells.boxes[:, axis]) for axis in (0, 1)]
    first, stop = cells.spans.T
    line = np.where(kind == 2, random.integers(first, stop), first)
    cut = tree.cut(cells, {"time": line}, x=lines[0], y=lines[1])
    points.cut(cut)
    return cut.cells


def by_spans(tree, counts):
    """Records of the nodes of a tree over time, one by one."""
    found = []
    for (west, south, east, north), (first, stop) in zip(tree.boxes, tree.spans, strict=True):
        inside = (west <= counts.columns) & (counts.columns < east) & (counts.rows >= south)
        inside &= (counts.rows < north) & (first <= counts.slice) & (counts.slice < stop)
        found.append(int(counts.counts[inside].sum()))
    return found


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
@pytest.mark.parametrize("size", [0, 300])
def test_nodes_of_slices_count_their_records_and_other_cuts_may_follow(lattice, size):
    for seed, tally in enumerate(sliced(lattice, size, 3)):
        order, random = QuadrantOrder(lattice), np.random.default_rng(seed)
        tree = GrowingTree(lattice, axes=(TimeAxis(HOURS),))
        points = Points(tally, order, codes=tally.sliced_codes(order))
        cells = tree.root()
        for _ in range(7):
            cells = cut_in_time(points, tree, cells, random)
            cells = cells[random.permutation(len(cells))[: 1 + 2 * len(cells) // 3]]
        assert points._sliced is not None
        assert counted(points, tree) == by_spans(tree, tally)
        x = random.integers(cells.boxes[:, 0], cells.boxes[:, 2] + 1)
        cut = tree.cut(cells, {"time": cells.spans.mean(axis=1).astype(int)}, x=x)
        points.cut(cut)
        assert counted(points, tree) == by_spans(tree, tally)


# Lattices, numbers of slices (0 for none) and the type of codes: those that fill 32 bits, or the 62
# that codes of slices may have, and those one slice or one column less and more. The last ones have
# too many codes for quadrant order, and fill 62 bits otherwise.
LIMITS = [
    ((2**14, 2**14), 15, np.uint32),
    ((2**14, 2**14), 16, np.uint32),
    ((2**14, 2**14), 17, np.int64),
    ((2**16, 2**16), 1, np.uint32),
    ((2**16, 2**16), 2, np.int64),
    ((2**16 - 1, 2**16), 0, np.uint32),
    ((2**16, 2**16), 0, np.uint32),
    ((2**16 + 1, 2**16), 0, np.int64),
    ((2**28, 2**28), 63, np.int64),
    ((2**28, 2**28), 64, np.int64),
    ((2**30, 2**30), 4, np.int64),
    ((2**30 - 1, 2**30), 4, np.int64),
    ((2**30, 2**30), 0, np.int64),
    ((2**30, 2**29), 7, None),
    ((2**30, 2**29), 8, None),
]


def days_from_january(number):
    last = np.datetime64("2024-01-01") + np.timedelta64(number - 1, "D")
    return TimeSlices.parse("day", f"2024-01-01..{last}") if number else None


def test_the_last_slice_ends_with_the_records(subtests):
    """Codes of 32 bits have no number for the end of 16 slices of 4^14 cells."""
    for lattice, slices, kind in LIMITS:
        days = days_from_january(slices)
        domain = psd.Domain(bounds=(0, 0, *lattice), crs="EPSG:3857", lattice=lattice)
        step = domain.cell_step
        builder = TallyBuilder(domain, unit=PrivacyUnit(), slices=days, step=step, is_cube=True)
        # Records at the ends and in the middle of each axis, another number in each cell.
        ends = [sorted({0, size // 2, size - 1}) for size in (*lattice, max(slices, 1))]
        cells = np.array([*product(*ends)])
        number = np.arange(1, len(cells) + 1)
        x, y, day = np.repeat(cells, number, axis=0).T
        time = np.datetime64("2024-01-01", "us") + day * np.timedelta64(1, "D") if days else None
        builder.add_batch(Batch(x=x + 0.5, y=y + 0.5, user=None, time=time))
        order = QuadrantOrder(lattice)
        records = builder.build(bytes(16)).in_blocks(domain.blocks)
        tallies = [records]
        if kind is not None:
            assert (records._codes.codes.dtype, domain.blocks.coarse_lattice) == (kind, lattice)
            distinct = records._codes.distinct()
            tallies.append(Tally.of_codes(distinct, contributions=1, report={}))
        for tally in tallies:
            with subtests.test(lattice=lattice, slices=slices, form=tally is records):
                found = (tally.columns, tally.rows, tally.slice if days else 0 * tally.columns)
                found = zip(*(values.tolist() for values in (*found, tally.counts)), strict=True)
                expected = np.column_stack([cells, number]).tolist()
                assert sorted(map(list, found)) == expected
                check_halves(tally, order, days, codes=kind is not None)


def check_halves(tally, order, days, *, codes):
    """Halve what is last, first in time until one slice is left, then four times in the plane."""
    plane = GrowingTree(order.lattice), Points(tally, order)
    trees = [(*plane, by_boxes)]
    if days:
        sliced, others = (tally.sliced_codes(order), ()) if codes else (None, (tally.slice,))
        over_time = GrowingTree(order.lattice, axes=(TimeAxis(days),))
        trees.append((over_time, Points(tally, order, others, codes=sliced), by_spans))
    for tree, points, expected in trees:
        first, plane = 0, 4
        while plane:
            cells = tree.cells(np.array([len(tree.parent) - 1]))
            if expected is by_spans and first + 1 < len(days):
                first = (first + len(days)) // 2
                points.cut(tree.cut(cells, {"time": np.array([first])}))
            else:
                points.cut(tree.cut(cells, x=cells.middle(0), y=cells.middle(1)))
                plane -= 1
        assert counted(points, tree) == expected(tree, tally)


def test_questions_about_lines_of_slices_do_not_depend_on_the_form_of_a_tally():
    lattice, answers = (2**16, 2**16), []
    order = QuadrantOrder(lattice)
    for tally in sliced(lattice, 300, 3):
        for codes, others in ((tally.sliced_codes(order), ()), (None, (tally.slice,))):
            tree = GrowingTree(lattice, axes=(TimeAxis(HOURS),))
            points, random = Points(tally, order, others, codes=codes), np.random.default_rng(0)
            cells = tree.root()
            for _ in range(6):
                cells = cut_in_time(points, tree, cells, random)
            one = np.ones(len(cells), np.int64)
            scores = points.rank_scores(cells.nodes, cells.boxes[:, [0, 2]], 0, one, 3 * one)
            found = {}
            parts = zip(scores.group, scores.first, scores.length, scores.score, strict=True)
            for node, first, length, score in parts:  # intervals without lines say nothing
                found |= {(node, first + line): score for line in range(min(length, 5))}
            answers.append(found)
    assert all(answer == answers[0] for answer in answers)
