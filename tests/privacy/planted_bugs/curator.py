"""Planted bugs of the curator, and methods that peek past it.

Methods peek at the curator's private members, which the linter forbids in the package.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from privacy.planted_bugs.bug import planted, replaced
from psd.curator.curator import Curator
from psd.curator.points import Points
from psd.decompositions import adaptive_grid
from psd.decompositions.adaptive_grid import AdaptiveGrid, first_size, second_sizes
from psd.decompositions.cascade import Cascade
from psd.decompositions.grid import Grid, guideline_size
from psd.decompositions.kd_standard import KDStandard
from psd.decompositions.quadtree import Quadtree
from psd.privacy.epsilon import NANO
from psd.space.covariate import Covariate
from psd.space.grids import cut_grid, cut_grids
from support.hilbert_oracle import walk

REPLAY = "tests/privacy/test_replay.py::test_no_answer_tells_more_than_epsilon"
QUADTREE = REPLAY + "[3x3-record-quadtree,height=2]"
KD_TREE = REPLAY + "[3x3-record-kd-standard,height=2]"
CASCADE = "tests/privacy/test_replay.py::test_tiers_of_a_cascade_follow_from_answers"

EXACT = "the exact number of records outside of a question"
OVERLAP = "overlapping halves"


def true_counts(curator, cells):
    return curator._layers[cells.layer].points.count(cells.nodes)


def occupied_cells(points):
    """Columns, rows and counts of the cells that the curator has."""
    points._unpack_codes()
    return points._columns, points._rows, points._counts


def quarters(curator, cells):
    return curator.cut(cells, x=cells.middle(0), y=cells.middle(1))


@planted(test=QUADTREE, like="pruning on true counts")
def prunes_on_true_counts():
    """Empty nodes are not divided, so that the shape shows where no record is."""

    def build(self, curator):
        cells = curator.root()
        curator.count(cells, curator.epsilon // 2)
        cells = quarters(curator, cells)
        curator.count(cells, curator.epsilon // 4)
        cells = quarters(curator, cells[true_counts(curator, cells) > 0])
        curator.count(cells, curator.epsilon // 4)
        return curator.tree()

    return replaced(Quadtree, "build", build)


@planted(test=QUADTREE, like="sparse histograms, and joins that drop empty groups")
def omits_empty_cells():
    """Only occupied cells are published, so that each of them betrays a record."""

    def build(self, curator):
        cells = quarters(curator, curator.root())
        curator.count(cells[true_counts(curator, cells) > 0], curator.epsilon)
        return curator.tree()

    return replaced(Quadtree, "build", build)


@planted(test=KD_TREE, like="bounds from the data")
def cuts_at_the_data():
    """A cut line is the westernmost record."""

    def build(self, curator):
        last = curator.domain.lattice[0] - 1
        west = int(curator._tally.columns.min(initial=last))
        curator.count(curator.cut(curator.root(), x=np.array([west])), curator.epsilon)
        return curator.tree()

    return replaced(KDStandard, "build", build)


@planted(test=REPLAY + "[3x3-record-grid]", like=EXACT)
def size_of_the_exact_total():
    """The size of a grid follows from the exact N."""

    def build(self, curator):
        root = curator.root()
        size = guideline_size(40 * int(true_counts(curator, root)[0]) * curator.epsilon / NANO)
        curator.count(
            cut_grid(curator.cut, root, curator.domain.lattice, (size, size)), curator.epsilon
        )
        return curator.tree()

    return replaced(Grid, "build", build)


@planted(test=REPLAY + "[3x3-record-adaptive-grid]", like=EXACT)
@contextmanager
def first_grid_of_the_exact_total():
    """The first of two grids has the size that suits the exact N."""
    original = AdaptiveGrid.build

    def build(self, curator):
        size = first_size(200 * int(curator._tally.counts.sum()) * curator.epsilon / NANO)
        return original(AdaptiveGrid(size=size), curator)

    # Without the lower limit of a first grid, its size shows on a small lattice.
    with (
        replaced(AdaptiveGrid, "build", build),
        replaced(adaptive_grid, "FIRST_GRID_MIN_SIZE", 1),
    ):
        yield


@planted(test=REPLAY + "[3x3-record-adaptive-grid]", like=EXACT)
def second_grids_of_exact_counts():
    """The cells of a counted grid are cut as their exact counts deserve."""

    def build(self, curator):
        half = curator.epsilon // 2
        cells = cut_grid(curator.cut, curator.root(), curator.domain.lattice, (2, 2))
        curator.count(cells, half)
        signal = 40 * true_counts(curator, cells) * half / NANO
        sizes = second_sizes(signal, np.full(len(cells), 2))
        curator.count(cut_grids(curator.cut, cells, sizes[:, None]), half)
        return curator.tree()

    return replaced(AdaptiveGrid, "build", build)


@planted(test=CASCADE, like=EXACT)
def tiers_of_exact_counts():
    """The tiers of a cascade go as deep as the exact counts pay for."""
    original = Cascade.build

    def build(self, curator):
        class Peeking:
            def __getattr__(_, name):
                return getattr(curator, name)

            def count(_, cells, epsilon):
                curator.count(cells, epsilon)
                return 40 * true_counts(curator, cells)

        return original(self, Peeking())

    return replaced(Cascade, "build", build)


@planted(test=REPLAY + "[3x3-record-auto]", like=EXACT)
def picks_by_the_exact_total():
    """What a method picks and states in the release follows from the exact total."""
    original = Curator.declare

    def declare(self, name, value):
        total = int(self._tally.counts.sum())
        return original(self, name, value + total if isinstance(value, int) else value)

    return replaced(Curator, "declare", declare)


@planted(test=CASCADE, like="public knowledge that was taken from the data")
def covariate_of_the_data():
    """A cascade is steered by a covariate that is made from the records."""
    original = Cascade.build

    def build(self, curator):
        tally = curator._tally
        raster = np.zeros((curator.domain.lattice[1], curator.domain.lattice[0]), np.uint16)
        raster[tally.rows, tally.columns] = 1
        if raster.any():
            curator.covariate = Covariate(domain=curator.domain, raster=raster)
        return original(self, curator)

    return replaced(Cascade, "build", build)


def sensitivity_forgets_k():
    original = Curator.__init__

    def init(self, tally, domain, **options):
        original(self, tally, domain, **options)
        self.contributions = 1
        self.noise = self.noise.for_contributions(1)

    return replaced(Curator, "__init__", init)


@planted(test=REPLAY + "[3x3-two-rows-quadtree,height=2]", like="sensitivity 1 for k = 2")
def counts_forget_k():
    """Counts have the noise of one row where a user has k = 2."""
    return sensitivity_forgets_k()


@planted(test=REPLAY + "[3x3-two-rows-kd-standard,height=2]", like="sensitivity 1 for k = 2")
def medians_forget_k():
    """Medians have the sensitivity of one row where a user has k = 2."""
    return sensitivity_forgets_k()


@contextmanager
def with_boxes(count):
    """Let the private points know the tree of the nodes, then replace their count."""
    original = Curator._charge

    def charge(self, kind, cells, nano):
        layer = self._layers[cells.layer]
        layer.points.growing = layer.growing
        return original(self, kind, cells, nano)

    with replaced(Curator, "_charge", charge), replaced(Points, "count", count):
        yield


def halves_overlap():
    def count(self, nodes):
        boxes = self.growing.boxes[nodes]
        columns, rows, counts = occupied_cells(self)
        inside = (
            (columns >= boxes[:, :1])
            & (columns <= boxes[:, 2:3])
            & (rows >= boxes[:, 1:2])
            & (rows <= boxes[:, 3:])
        )
        return (inside * counts).sum(axis=1)

    return with_boxes(count)


@planted(test=REPLAY + "[3x3-record-grid,size=2]", like=OVERLAP)
def cells_overlap():
    """Cells are closed on both sides (<= and >=), so that a point on a border is in two."""
    return halves_overlap()


@planted(test=KD_TREE, like=OVERLAP)
def halves_of_a_kd_tree_overlap():
    """The halves of a kd-tree both hold the points on the cut."""
    return halves_overlap()


@planted(test=QUADTREE, like="a question that reads more than its own cell")
def cells_read_the_total():
    """A question about a cell mixes in the number of all records."""

    original = Points.count

    def count(self, nodes):
        return original(self, nodes) + original(self, np.array([0])) // 2

    return replaced(Points, "count", count)


@planted(
    test=REPLAY + "[3x3-record-hilbert-rtree,order=1]",
    like="bounding boxes of intervals, which overlap",
)
def intervals_in_bounding_boxes():
    """An interval of the Hilbert curve counts the points in the box around it."""
    original = Points.count

    def count(self, nodes):
        if not self.growing.curve:
            return original(self, nodes)
        cells = np.array(walk(self.growing.curve))
        columns, _, records = occupied_cells(self)
        at, counts = cells[columns], []
        for first, _, last, _ in self.growing.boxes[nodes]:
            box = cells[first:last]
            inside = ((at >= box.min(axis=0)) & (at <= box.max(axis=0))).all(axis=1)
            counts.append(int((inside * records).sum()))
        return np.array(counts)

    return with_boxes(count)
