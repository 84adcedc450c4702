"""Entries of regions: counts of nodes after cuts in any order, against boxes; and lines after."""

import numpy as np
import pytest

from psd.curator import entry_nodes
from psd.curator.points import Points
from psd.ingest.tally import Tally
from psd.space.growing_tree import GrowingTree
from psd.space.quadrant_order import QuadrantOrder
from psd.space.region_frame import region_frame
from support.small_regions import SHAPES

LATTICE = (4, 4)


def tally(regions, rng, entries):
    """Counts of cells and regions, by region."""
    region = np.sort(rng.integers(0, regions.size, entries)).astype(np.int32)
    low, high = regions.boxes[region, :2], regions.boxes[region, 2:]
    cells = low + (rng.random((entries, 2)) * (high - low)).astype(np.int64)
    columns, rows = cells.astype(np.int32).T.copy()
    counts = rng.integers(1, 9, entries)
    return Tally(columns=columns, rows=rows, counts=counts, region=region)


def by_boxes(growing, counts):
    """Count the entries of nodes by their spans of regions and their boxes."""
    found = []
    for (first, stop), (west, south, east, north) in zip(growing.spans, growing.boxes, strict=True):
        inside = (first <= counts.region) & (counts.region < stop)
        inside &= (west <= counts.columns) & (counts.columns < east)
        inside &= (south <= counts.rows) & (counts.rows < north)
        found.append(int(counts.counts[inside].sum()))
    return found


def grown(shape, seed, points, growing, regions):
    """Cut half of the open cells of a region tree, again and again."""
    rng = np.random.default_rng(seed)
    frame = region_frame(regions, LATTICE)
    growing.cut_regions(regions, frame)
    points.cut_regions(frame)
    for _ in range(6):
        cells = growing.cells(np.flatnonzero(~growing.is_cut(np.arange(len(growing.parent)))))
        cells = cells[rng.permutation(len(cells))[: max(len(cells) // 2, 1)]]
        points.cut(growing.cut(cells, x=cells.middle(0), y=cells.middle(1)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("entries", [0, 1, 40])
@pytest.mark.parametrize("chunk", [7, 2**15])
def test_counts_are_those_of_the_boxes(shape, entries, chunk, monkeypatch):
    monkeypatch.setattr(entry_nodes, "_CHUNK", chunk)
    regions, growing = SHAPES[shape], GrowingTree(LATTICE)
    counts = tally(regions, np.random.default_rng(entries), entries)
    points = Points(counts, QuadrantOrder(LATTICE))
    grown(shape, 5, points, growing, regions)
    nodes = np.arange(len(growing.parent))
    assert points.count(nodes).tolist() == by_boxes(growing, counts)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_question_about_lines_finds_the_entries_of_its_nodes(shape):
    regions, growing = SHAPES[shape], GrowingTree(LATTICE)
    counts = tally(regions, np.random.default_rng(3), 30)
    before = [values.copy() for values in (counts.columns, counts.rows, counts.counts)]
    points = Points(counts, QuadrantOrder(LATTICE))
    grown(shape, 6, points, growing, regions)
    nodes = np.flatnonzero(~growing.is_cut(np.arange(len(growing.parent))))
    ends = growing.boxes[nodes][:, [0, 2]]
    one = np.ones(len(nodes), np.int64)
    scores = points.rank_scores(nodes, ends, 0, one, 2 * one)
    assert (scores.length >= 0).all()
    assert points.count(np.arange(len(growing.parent))).tolist() == by_boxes(growing, counts)
    for values, kept in zip((counts.columns, counts.rows, counts.counts), before, strict=True):
        assert values.tolist() == kept.tolist()
