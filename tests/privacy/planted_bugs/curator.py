"""Planted bugs of the curator and of methods that peek past it.

Methods peek at the curator's private members, which the linter forbids in the package.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from privacy.planted_bugs.checks import REPLAYED, Replayed
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.curator.curator import Curator
from psd.curator.points import Points
from psd.decompositions import adaptive_grid
from psd.decompositions.adaptive_grid import AdaptiveGrid, first_size, second_sizes
from psd.decompositions.cascade import Cascade
from psd.decompositions.grid import Grid, guideline_size
from psd.decompositions.kd_standard import KDStandard
from psd.decompositions.quadtree import Quadtree
from psd.space.covariate import Covariate
from psd.space.grids import cut_grid, cut_grids
from support.hilbert_oracle import walk


def true_counts(curator, cells):
    return curator._layers[cells.layer].points.count(cells.nodes)


@dataclass(frozen=True)
class PrunesOnTrueCounts:
    """Empty nodes are not divided: the shape shows where nobody is."""

    def build(self, curator):
        cells = curator.root()
        curator.count(cells, curator.epsilon // 2)
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells, curator.epsilon // 4)
        cells = cells[true_counts(curator, cells) > 0]
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells, curator.epsilon // 4)
        return curator.tree()


@dataclass(frozen=True)
class OmitsEmptyCells:
    """Only occupied cells are counted, so each one published betrays a point."""

    def build(self, curator):
        cells = curator.root()
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells[true_counts(curator, cells) > 0], curator.epsilon)
        return curator.tree()


@dataclass(frozen=True)
class CutsAtTheData:
    """A cut line is the westernmost point."""

    def build(self, curator):
        layers = curator._layers
        points = layers[0].points if layers else Points(curator._tally)
        west = int(points.columns.min(initial=curator.domain.lattice[0] - 1))
        cells = curator.root()
        cells = curator.cut(cells, x=np.array([west]))
        curator.count(cells, curator.epsilon)
        return curator.tree()


@dataclass(frozen=True)
class ReadsExactTotal:
    """The size of the grid follows from the exact N."""

    def build(self, curator):
        root = curator.root()
        size = guideline_size(40 * int(true_counts(curator, root)[0]), curator.epsilon, 1)
        curator.count(
            cut_grid(curator.cut, root, curator.domain.lattice, (size, size)), curator.epsilon
        )
        return curator.tree()


@dataclass(frozen=True)
class FirstGridOfExactTotal:
    """The first of two grids has the size that suits the exact N."""

    def build(self, curator):
        size = first_size(200 * int(curator._tally.counts.sum()), curator.epsilon, 1)
        return AdaptiveGrid(size=size).build(curator)


@dataclass(frozen=True)
class SecondGridsOfExactCounts:
    """The cells of a counted grid are cut as their exact counts deserve."""

    def build(self, curator):
        half = curator.epsilon // 2
        cells = cut_grid(curator.cut, curator.root(), curator.domain.lattice, (2, 2))
        curator.count(cells, half)
        sizes = second_sizes(40 * true_counts(curator, cells), half, 1, np.full(len(cells), 2))
        curator.count(cut_grids(curator.cut, cells, sizes[:, None]), half)
        return curator.tree()


@dataclass(frozen=True)
class PicksByTheExactTotal:
    """What auto picks follows from the exact total, and is stated in the release."""

    def build(self, curator):
        cells = curator.root()
        curator.count(cells, curator.epsilon)
        curator.declare("signal", 5 + int(true_counts(curator, cells)[0]))
        return curator.tree()


@dataclass(frozen=True)
class TiersOfExactCounts:
    """The tiers of a cascade go as deep as the exact counts pay for."""

    def build(self, curator):
        class Peeking:
            def __getattr__(_, name):
                return getattr(curator, name)

            def count(_, cells, epsilon):
                curator.count(cells, epsilon)
                return 40 * true_counts(curator, cells)

        return Cascade(signal=1).build(Peeking())


def first_grids_may_be_coarse():
    """No leak: without its lower limit, the size of a first grid shows on a small lattice."""
    return replaced(adaptive_grid, "FIRST_GRID_MIN_SIZE", 1)


def sensitivity_forgets_k():
    """Noise for one record where a user has k."""
    original = Curator.__init__

    def init(self, tally, domain, **options):
        original(self, tally, domain, **options)
        self.contributions = 1

    return replaced(Curator, "__init__", init)


def halves_overlap():
    """Cells are closed on both sides: a point on a border is counted twice."""

    def count(self, nodes):
        boxes = self.boxes[nodes]
        inside = (
            (self.columns >= boxes[:, :1])
            & (self.columns <= boxes[:, 2:3])
            & (self.rows >= boxes[:, 1:2])
            & (self.rows <= boxes[:, 3:])
        )
        return (inside * self.counts).sum(axis=1)

    return _with_boxes(count)


def cells_read_the_total():
    """A question about a cell mixes in the number of all records."""

    def count(self, nodes):
        own = self.total[self.stop[nodes]] - self.total[self.start[nodes]]
        return own + self.total[-1] // 2

    return replaced(Points, "count", count)


@contextmanager
def _with_boxes(count):
    """Let the private points know the boxes of the nodes, then replace their count."""
    original = Curator._charge

    def charge(self, kind, cells, nano):
        layer = self._layers[cells.layer]
        layer.points.boxes = layer.growing.boxes
        return original(self, kind, cells, nano)

    with replaced(Curator, "_charge", charge), replaced(Points, "count", count):
        yield


@dataclass(frozen=True)
class CountsIntervals:
    """Two intervals of the curve are counted as such, which is sound."""

    def build(self, curator):
        curator.root()
        cells = curator.curve(2)
        curator.count(curator.cut(cells, x=[6]), curator.epsilon)
        return curator.tree()


def intervals_are_their_bounding_boxes():
    """An interval of codes counts the points in the box around it."""
    places = np.array(walk(2))

    def count(self, nodes):
        at, counts = places[self.columns], []
        for first, _, last, _ in self.boxes[nodes]:
            box = places[first:last]
            inside = ((at >= box.min(axis=0)) & (at <= box.max(axis=0))).all(axis=1)
            counts.append(int((inside * self.counts).sum()))
        return np.array(counts)

    return _with_boxes(count)


@dataclass(frozen=True)
class CovariateOfTheData(Cascade):
    """Steered by a covariate that is made from the points."""

    def build(self, curator):
        tally = curator._tally
        raster = np.zeros((curator.domain.lattice[1], curator.domain.lattice[0]), np.uint16)
        raster[tally.rows, tally.columns] = 1
        if raster.any():
            curator.covariate = Covariate(domain=curator.domain, raster=raster)
        return super().build(curator)


def _replayed(id, wrong, like, **more):
    """A bug that answers given back show."""
    return Mutant(id=id, wrong=wrong, like=like, test=REPLAYED, **{"check": Replayed(), **more})


EXACT = "the exact number of records outside of a question"
MUTANTS = (
    _replayed(
        "prunes-on-true-counts",
        "empty nodes are not divided, so that the shape shows where nobody is",
        "pruning on true counts",
        sound=Quadtree(height=2),
        instead=PrunesOnTrueCounts(),
    ),
    _replayed(
        "omits-empty-cells",
        "only occupied cells are published, so that each of them betrays a point",
        "sparse histograms, and joins that drop empty groups",
        sound=Quadtree(height=1),
        instead=OmitsEmptyCells(),
    ),
    _replayed(
        "cuts-at-the-data",
        "a cut line is the westernmost point",
        "bounds from the data",
        sound=KDStandard(height=1),
        instead=CutsAtTheData(),
    ),
    _replayed(
        "size-of-the-exact-total",
        "the size of a grid follows from the exact N",
        EXACT,
        sound=Grid(),
        instead=ReadsExactTotal(),
    ),
    _replayed(
        "first-grid-of-the-exact-total",
        "the first of two grids has the size that suits the exact N",
        EXACT,
        plant=first_grids_may_be_coarse,
        sound=AdaptiveGrid(),
        instead=FirstGridOfExactTotal(),
    ),
    _replayed(
        "second-grids-of-exact-counts",
        "the cells of a counted grid are cut as their exact counts deserve",
        EXACT,
        sound=AdaptiveGrid(),
        instead=SecondGridsOfExactCounts(),
    ),
    _replayed(
        "tiers-of-exact-counts",
        "the tiers of a cascade go as deep as the exact counts pay for",
        EXACT,
        sound=Cascade(signal=1),
        instead=TiersOfExactCounts(),
    ),
    _replayed(
        "picks-by-the-exact-total",
        "what a method picks and states in the release follows from the exact total",
        EXACT,
        sound=Cascade(),
        instead=PicksByTheExactTotal(),
    ),
    _replayed(
        "covariate-of-the-data",
        "a cascade is steered by a covariate that is made from the points",
        "public knowledge that was taken from the data",
        sound=Cascade(),
        instead=CovariateOfTheData(),
    ),
    _replayed(
        "counts-forget-k",
        "counts have the noise of one row where a user has k = 2",
        "sensitivity 1 for k = 2",
        plant=sensitivity_forgets_k,
        sound=Quadtree(height=2),
        check=Replayed(k=2, every=48),
    ),
    _replayed(
        "medians-forget-k",
        "medians have the sensitivity of one row where a user has k = 2",
        "sensitivity 1 for k = 2",
        plant=sensitivity_forgets_k,
        sound=KDStandard(height=1),
        check=Replayed(k=2, every=48),
    ),
    _replayed(
        "cells-overlap",
        "cells are closed on both sides (<= and >=), so that a point on a border is in two",
        "overlapping halves",
        plant=halves_overlap,
        sound=Grid(size=2),
    ),
    _replayed(
        "halves-of-a-kd-tree-overlap",
        "the halves of a kd-tree both hold the points on the cut",
        "overlapping halves",
        plant=halves_overlap,
        sound=KDStandard(height=2),
    ),
    _replayed(
        "cells-read-the-total",
        "a question about a cell mixes in the number of all records",
        "a question that reads more than its own cell",
        plant=cells_read_the_total,
        sound=Quadtree(height=1),
    ),
    _replayed(
        "intervals-in-bounding-boxes",
        "an interval of the Hilbert curve counts the points in the box around it",
        "bounding boxes of intervals, which overlap",
        plant=intervals_are_their_bounding_boxes,
        sound=CountsIntervals(),
    ),
)
