"""Planted bugs of the curator, and methods that peek past it.

Methods peek at the curator's private members, which the linter forbids in the package.
"""

from dataclasses import replace
from functools import wraps

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.decompositions.adaptive_grid import AdaptiveGrid, first_size, second_sizes
from psd.decompositions.grid import guideline_size
from psd.privacy.loss import NANO
from psd.space.covariate import Covariate
from psd.space.grids import cut_grid, cut_grids
from support.hilbert_oracle import walk

REPLAY = "tests/privacy/test_replay.py::test_no_answer_of_a_few_pairs_tells_more_than_epsilon"
QUADTREE = REPLAY + "[record-quadtree,height=2]"
KD_TREE = REPLAY + "[record-kd-standard,height=2]"
CASCADE = "tests/privacy/test_replay.py::test_tiers_of_a_cascade_follow_from_answers[few]"

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
@instead("psd.decompositions.quadtree.Quadtree.build")
def prunes_on_true_counts(self, curator):
    """Empty nodes are not divided, so that the shape shows where no record is."""
    cells = curator.root()
    curator.count(cells, curator.loss // 2)
    cells = quarters(curator, cells)
    curator.count(cells, curator.loss // 4)
    cells = quarters(curator, cells[true_counts(curator, cells) > 0])
    curator.count(cells, curator.loss // 4)
    return curator.tree()


@planted(test=QUADTREE, like="sparse histograms, and joins that drop empty groups")
@instead("psd.decompositions.quadtree.Quadtree.build")
def omits_empty_cells(self, curator):
    """Only occupied cells are published, so that each of them betrays a record."""
    cells = quarters(curator, curator.root())
    curator.count(cells[true_counts(curator, cells) > 0], curator.loss)
    return curator.tree()


@planted(test=KD_TREE, like="bounds from the data")
@instead("psd.decompositions.kd_standard.KDStandard.build")
def cuts_at_the_data(self, curator):
    """A cut line is the westernmost record."""
    last = curator.domain.lattice[0] - 1
    west = int(curator._tally.columns.min(initial=last))
    curator.count(curator.cut(curator.root(), x=np.array([west])), curator.loss)
    return curator.tree()


@planted(test=REPLAY + "[record-grid]", like=EXACT)
@instead("psd.decompositions.grid.Grid.build")
def size_of_the_exact_total(self, curator):
    """The size of a grid follows from the exact N."""
    root = curator.root()
    size = guideline_size(30 * int(true_counts(curator, root)[0]) * curator.loss / NANO)
    cells = cut_grid(curator.cut, root, curator.domain.lattice, (size, size))
    curator.count(cells, curator.loss)
    return curator.tree()


@planted(test=REPLAY + "[record-adaptive-grid]", like=EXACT)
def first_grid_of_the_exact_total():
    """The first of two grids has the size that suits the exact N."""

    @around("psd.decompositions.adaptive_grid.AdaptiveGrid.build")
    def build(original, self, curator):
        size = first_size(200 * int(curator._tally.counts.sum()) * curator.loss / NANO)
        return original(AdaptiveGrid(size=size), curator)

    # Without the lower limit of a first grid, its size shows on a small lattice.
    limit = replaced("psd.decompositions.adaptive_grid.FIRST_GRID_MIN_SIZE", 1)
    return together(build(), limit)


@planted(test=REPLAY + "[record-adaptive-grid]", like=EXACT)
@instead("psd.decompositions.adaptive_grid.AdaptiveGrid.build")
def second_grids_of_exact_counts(self, curator):
    """The cells of a counted grid are cut as their exact counts deserve."""
    half = curator.loss // 2
    cells = cut_grid(curator.cut, curator.root(), curator.domain.lattice, (2, 2))
    curator.count(cells, half)
    signal = 40 * true_counts(curator, cells) * half / NANO
    sizes = second_sizes(signal, np.full(len(cells), 2))
    curator.count(cut_grids(curator.cut, cells, sizes[:, None]), half)
    return curator.tree()


@planted(test=CASCADE, like=EXACT)
@around("psd.decompositions.cascade.Cascade.build")
def tiers_of_exact_counts(original, self, curator):
    """The tiers of a cascade go as deep as the exact counts pay for."""

    class Peeking:
        def __getattr__(_, name):
            return getattr(curator, name)

        def count(_, cells, epsilon):
            curator.count(cells, epsilon)
            return 40 * true_counts(curator, cells)

    return original(self, Peeking())


@planted(test=REPLAY + "[record-auto]", like=EXACT)
@around("psd.curator.curator.Curator.declare")
def picks_by_the_exact_total(original, self, name, value):
    """What a method picks and states in the release follows from the exact total."""
    total = int(self._tally.counts.sum())
    return original(self, name, value + total if isinstance(value, int) else value)


@planted(test=CASCADE, like="public knowledge that was taken from the data")
@around("psd.decompositions.cascade.Cascade.build")
def covariate_of_the_data(original, self, curator):
    """A cascade is steered by a covariate that is made from the records."""
    tally = curator._tally
    raster = np.zeros((curator.domain.lattice[1], curator.domain.lattice[0]), np.uint16)
    raster[tally.rows, tally.columns] = 1
    if raster.any():
        curator.covariate = Covariate(domain=curator.domain, raster=raster)
    return original(self, curator)


@around("psd.curator.curator.Curator.__init__")
def sensitivity_forgets_k(original, self, tally, domain, **options):
    original(self, tally, domain, **options)
    self.contributions = 1
    self.noise = self.noise.for_contributions(1)


@planted(test=REPLAY + "[two-rows-quadtree,height=2]", like="sensitivity 1 for k = 2")
def counts_forget_k():
    """Counts have the noise of one row where a user has k = 2."""
    return sensitivity_forgets_k()


@planted(test=REPLAY + "[two-rows-kd-standard,height=2]", like="sensitivity 1 for k = 2")
def medians_forget_k():
    """Medians have the sensitivity of one row where a user has k = 2."""
    return sensitivity_forgets_k()


def with_boxes(count):
    """Make a patch of how points are counted that know the tree of the nodes."""
    counting = around("psd.curator.points.Points.count")(count)

    @around("psd.curator.curator.Curator._charge")
    def charge(original, self, kind, cells, loss):
        layer = self._layers[cells.layer]
        layer.points.growing = layer.growing
        return original(self, kind, cells, loss)

    return wraps(count)(lambda: together(charge(), counting()))


@with_boxes
def halves_overlap(_, self, nodes):
    west, south, east, north = self.growing.boxes[nodes].T[:, :, None]
    columns, rows, counts = occupied_cells(self)
    inside = (columns >= west) & (columns <= east) & (rows >= south) & (rows <= north)
    return (inside * counts).sum(axis=1)


@planted(test=REPLAY + "[record-grid,size=2]", like=OVERLAP)
def cells_overlap():
    """Cells are closed on both sides (<= and >=), so that a point on a border is in two."""
    return halves_overlap()


@planted(test=KD_TREE, like=OVERLAP)
def halves_of_a_kd_tree_overlap():
    """The halves of a kd-tree both hold the points on the cut."""
    return halves_overlap()


@planted(test=QUADTREE, like="a question that reads more than its own cell")
@around("psd.curator.points.Points.count")
def cells_read_the_total(original, self, nodes):
    """A question about a cell mixes in the number of all records."""
    return original(self, nodes) + original(self, np.array([0])) // 2


@planted(test=REPLAY + "[record-hilbert-rtree,order=1]")
@like("bounding boxes of intervals, which overlap")
@with_boxes
def intervals_in_bounding_boxes(original, self, nodes):
    """An interval of the Hilbert curve counts the points in the box around it."""
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


@planted(
    test="tests/unit/curator/test_curator.py::"
    "test_cells_that_change_after_they_were_cut_change_no_later_question"
)
@like("an array that its caller still holds")
@instead("psd.curator.curator.Curator.cut")
def cuts_keep_the_nodes_of_the_caller(self, cells, lines=None, /, *, x=None, y=None):
    """A cut that waits for a question has the numbers of nodes that a method can still alter."""
    growing, points = self._layer_of(cells)
    cut = growing.cut(cells, lines, x=x, y=y)
    points.cut(replace(cut, nodes=cells.nodes))
    return growing.cells(cut.child[cut.child >= 0])
