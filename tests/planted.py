"""Planted bugs: builds that leak, each in the way of a mistake seen in public code.

Methods are decompositions that peek at the curator's private members, which ruff forbids in the
package; patches break the curator itself. Every one has to be caught by the checks that the
real methods pass.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from curve import walk

from psd import curator as curator_module
from psd import heterogeneity
from psd.curator import Curator, Question
from psd.cutting import cut_grid, cut_grids
from psd.decompositions import adaptive_grid
from psd.decompositions.adaptive_grid import AdaptiveGrid, first_size, second_sizes
from psd.decompositions.cascade import Cascade
from psd.decompositions.grid import Grid, guideline_size
from psd.decompositions.htf import HTF
from psd.decompositions.htree import HTree
from psd.decompositions.kd_cell import NoisyGrid
from psd.decompositions.kd_standard import KDStandard
from psd.decompositions.privtree import PrivTree
from psd.decompositions.quadtree import Quadtree
from psd.errors import BudgetError
from psd.growing import GrowingTree
from psd.noise import selection
from psd.points import Points


def true_counts(curator, cells):
    return curator._layers[cells.layer][1].count(cells.nodes)


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
        points = curator._layers or [(None, Points(curator._tally))]
        west = int(points[0][1].columns.min(initial=curator.domain.lattice[0] - 1))
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
class SecondLayerBeside:
    """A grid beside a quadtree, each with all of epsilon."""

    def build(self, curator):
        for _ in range(2):
            cells = curator.root()
            cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
            curator.count(cells, curator.epsilon)
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
        curator.state("signal", 5 + int(true_counts(curator, cells)[0]))
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


@dataclass(frozen=True)
class GridBesideKDTree:
    """The noisy grid that steers a kd-tree has all of epsilon, and so have the tree's nodes."""

    def build(self, curator):
        cells = curator.root()
        x, y = NoisyGrid.ask(curator, 2, curator.epsilon).medians(cells, 0)
        curator.count(curator.cut(cells, x=x, y=y), curator.epsilon)
        return curator.tree()


@dataclass(frozen=True)
class ForgetsTheRoot:
    """Epsilon is divided by the height where height + 1 levels are counted."""

    height: int = 2

    def build(self, curator):
        cells = curator.root()
        for _ in range(self.height):
            curator.count(cells, curator.epsilon // self.height)
            cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells, curator.epsilon // self.height)
        return curator.tree()


@contextmanager
def replaced(owner, name, value):
    """Replace a member of a class for a while."""
    kept = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def first_grids_may_be_coarse():
    """No leak: without its lower limit, the size of a first grid shows on a small lattice."""
    return replaced(adaptive_grid, "_SMALLEST_FIRST", 1)


def layers_take_the_largest():
    """Layers are accounted beside each other."""

    def charge(self, kind, cells, nano):
        growing, _ = self._layers[cells.layer]
        if not growing.charge_nodes(cells.nodes, nano, self.epsilon):
            raise BudgetError("too much within one layer")
        boxes, curve = growing.boxes[cells.nodes], growing.curve
        self._questions.append(Question(kind=kind, boxes=boxes, epsilon=nano, curve=curve))

    return replaced(Curator, "_charge", charge)


def paths_take_the_largest():
    """Levels are accounted beside each other, as if they were disjoint."""
    return replaced(GrowingTree, "_raise_paths", lambda *_: None)


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
        growing, points = self._layers[cells.layer]
        points.boxes = growing.boxes
        return original(self, kind, cells, nano)

    with replaced(Curator, "_charge", charge), replaced(Points, "count", count):
        yield


def half_as_sensitivity_of_every_quantile():
    """The sensitivity of the median, q / 2 of the integer score, for every quantile."""
    original = Curator.quantile

    def quantile(self, cells, *, axis, epsilon, p=1, q=2):
        kept, draw = self._noise, self._noise.select
        q_all = np.broadcast_to(np.asarray(q, np.int64), cells.nodes.shape)

        class Halved:
            count = kept.count

            def select(_, candidates, nano, sensitivity):
                return draw(candidates, nano, np.maximum(q_all // 2, 1) * self.contributions)

        self._noise = Halved()
        try:
            return original(self, cells, axis=axis, epsilon=epsilon, p=p, q=q)
        finally:
            self._noise = kept

    return replaced(Curator, "quantile", quantile)


def rank_among_all_records():
    """A slab's quantile is relative to the number of all records."""
    original = Points.rank_scores

    def rank_scores(self, nodes, ends, axis, p, q):
        found = original(self, nodes, ends, axis, p, q)
        moved = p * (int(self.total[-1]) - self.count(nodes))
        return dataclasses.replace(found, score=found.score - moved[found.group])

    return replaced(Points, "rank_scores", rank_scores)


def slab_bounds_from_the_data():
    """Candidates lie between the outermost points of a slab."""
    original = Points.rank_scores

    def rank_scores(self, nodes, ends, axis, p, q):
        found = original(self, nodes, ends, axis, p, q)
        last = np.append(found.group[1:] != found.group[:-1], True)
        length = np.where(last & (self.count(nodes) > 0)[found.group], 0, found.length)
        empty = np.bincount(found.group, length, len(nodes)) == 0
        length = np.where(last & empty[found.group], found.length, length)
        return dataclasses.replace(found, length=length)

    return replaced(Points, "rank_scores", rank_scores)


def rates_without_the_factor_two():
    """Weights exp(epsilon score / sensitivity)."""
    original = selection._rates
    twice = lambda epsilon, sensitivity: 2 * original(epsilon, sensitivity)  # noqa: E731
    return replaced(selection, "_rates", twice)


def empty_nodes_do_not_draw():
    """A node without records is a leaf of the shape for sure."""
    original = curator_module.grow

    def grow(growing, points, cells, rule, height, noise, held):
        class Remembered:
            cut = points.cut

            def count(self, nodes):
                self.last = points.count(nodes)
                return self.last

        class Sparse:
            def exceeds(self, biased, numerator, denominator):
                some, answer = seen.last > 0, np.zeros(len(biased), bool)
                if some.any():
                    answer[some] = noise.exceeds(biased[some], numerator, denominator[some])
                return answer

        seen = Remembered()
        return original(growing, seen, cells, rule, height, Sparse(), held)

    return replaced(curator_module, "grow", grow)


@dataclass(frozen=True)
class CurveBeside:
    """A median along the curve and counts of cells, each for all of epsilon."""

    def build(self, curator):
        cells = curator.root()
        curator.quantile(curator.curve(2), axis=0, epsilon=curator.epsilon)
        curator.count(curator.cut(cells, x=cells.middle(0)), curator.epsilon)
        return curator.tree()


@dataclass(frozen=True)
class BoxesOfIntervals:
    """The boxes around two intervals of the curve, which overlap, each for all of epsilon."""

    def build(self, curator):
        for x, y in ((1, None), (None, 1)):
            root = curator.root()
            lines = {"x": None if x is None else [x], "y": None if y is None else [y]}
            curator.count(curator.cut(root, **lines)[:1], curator.epsilon)
        return curator.tree()


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


def squared_deviations():
    """Unevenness as squared deviations, which a record changes by twice its bin's count."""

    def deviations(part, count, alike, bins):
        total, squares = np.zeros((2, len(bins)), np.int64)
        np.add.at(total, part, count * alike)
        np.add.at(squares, part, count * count * alike)
        return (squares * bins - total * total) // bins

    return replaced(heterogeneity, "deviations", deviations)


def divisions_of_sensitivity_one():
    """A division as if a record moved one bin and not the mean."""
    original = Curator.division

    def division(self, cells, **options):
        kept = self._noise

        class Halved:
            count = kept.count

            def select(_, candidates, nano, sensitivity):
                return kept.select(candidates, nano, sensitivity // 2)

        self._noise = Halved()
        try:
            return original(self, cells, **options)
        finally:
            self._noise = kept

    return replaced(Curator, "division", division)


# A leaking method, or a patch with a sound method that it breaks; and the k that shows it.
LEAKS = {
    "prunes on true counts": (PrunesOnTrueCounts(), None, 1),
    "omits empty cells": (OmitsEmptyCells(), None, 1),
    "cuts at the data": (CutsAtTheData(), None, 1),
    "reads the exact total": (ReadsExactTotal(), None, 1),
    "first grid of the exact total": (FirstGridOfExactTotal(), first_grids_may_be_coarse, 1),
    "second grids of exact counts": (SecondGridsOfExactCounts(), None, 1),
    "tiers of exact counts": (TiersOfExactCounts(), None, 1),
    "picks by the exact total": (PicksByTheExactTotal(), None, 1),
    "grid beside the kd-tree": (GridBesideKDTree(), layers_take_the_largest, 1),
    "second layer beside the first": (SecondLayerBeside(), layers_take_the_largest, 1),
    "levels beside each other": (ForgetsTheRoot(), paths_take_the_largest, 1),
    "sensitivity forgets k": (Quadtree(height=2), sensitivity_forgets_k, 2),
    "halves overlap": (Grid(size=2), halves_overlap, 1),
    "sensitivity of the median": (
        HTree(size=3),
        half_as_sensitivity_of_every_quantile,
        1,
    ),
    "rank among all records": (HTree(size=2), rank_among_all_records, 1),
    "slab bounds from the data": (HTree(size=2), slab_bounds_from_the_data, 1),
    "sensitivity of medians forgets k": (KDStandard(height=1), sensitivity_forgets_k, 2),
    "halves of a kd-tree overlap": (KDStandard(height=2), halves_overlap, 1),
    "empty nodes do not draw": (PrivTree(), empty_nodes_do_not_draw, 1),
    "cells read the total": (Quadtree(height=1), cells_read_the_total, 1),
    "squared deviations": (HTF(height=1), squared_deviations, 1),
    "division of sensitivity 1": (HTF(height=1), divisions_of_sensitivity_one, 1),
    "curve beside the counts": (CurveBeside(), layers_take_the_largest, 1),
    "intervals counted in bounding boxes": (
        CountsIntervals(),
        intervals_are_their_bounding_boxes,
        1,
    ),
}

# Methods that ask for more than they have: the curator has to refuse them by itself.
OVERSPENDERS = {
    "second layer": SecondLayerBeside(),
    "grid beside the kd-tree": GridBesideKDTree(),
    "forgotten root": ForgetsTheRoot(),
    "curve and counts": CurveBeside(),
    "boxes of intervals": BoxesOfIntervals(),
}
