"""Planted bugs of the budget: charges that are not added, not made, or made too late."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import psd.privacy.epsilon
import psd.privacy.shares
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.curator.curator import ChargedQuestion, Curator
from psd.curator.path_charges import PathCharges
from psd.decompositions.kd_cell import NoisyGrid
from psd.decompositions.quadtree import Quadtree
from psd.errors import BudgetError, ParameterError
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.space.growing_tree import GrowingTree
from psd.testing import RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent

# Methods


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
class GridBesideKDTree:
    """The noisy grid that steers a kd-tree has all of epsilon, and so have the tree's nodes."""

    def build(self, curator):
        cells = curator.root()
        x, y = NoisyGrid.count(curator, 2, curator.epsilon).medians(cells, 0)
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


# Checks


def _curator(epsilon=NANO):
    noise = RecordingSampler()
    return noise, Curator(
        small_tally(3, (0, 4)), small_domain(3), budget=Budget(epsilon), sampler=noise
    )


def is_refused(method, _):
    """A method that asks for more than it has is refused before that is drawn."""
    noise, curator = _curator()
    try:
        method.build(curator)
    except BudgetError:
        assert spent(curator.questions, 3).max(initial=0) <= NANO
        assert sum(int(call.epsilon.max()) for call in noise.draws) <= NANO
        return
    charged = int(spent(curator.questions, 3).max())
    raise AssertionError(f"{charged} nano-epsilon at a point were granted, of {NANO}")


def spends_all(method, _):
    """A method spends epsilon to the last nano-unit, by an oracle of its own."""
    curator, _ = run_method(
        method, small_tally(3, (0, 4)), small_domain(3), NANO, RecordingSampler()
    )
    assert curator.spent == spent(curator.questions, 3).max() == NANO


def _refuses(error, ask, curator):
    try:
        ask()
    except error:
        return
    raise AssertionError(f"granted: {len(curator.questions)} questions")


def second_cut_is_refused(*_):
    _, curator = _curator()
    root = curator.root()
    curator.count(curator.cut(root, x=root.middle(0)), NANO)
    _refuses(
        ParameterError,
        lambda: curator.count(curator.cut(root, y=root.middle(1)), NANO),
        curator,
    )


def second_count_is_refused(*_):
    noise, curator = _curator()
    root = curator.root()
    curator.count(root, NANO // 2)
    _refuses(ParameterError, lambda: curator.count(root, NANO // 2), curator)
    assert len(noise.draws) == 1


def nothing_is_drawn_for_nothing(*_):
    noise, curator = _curator()
    _refuses(ParameterError, lambda: curator.count(curator.root(), 0), curator)
    assert not noise.draws


def a_refused_question_draws_nothing(*_):
    noise, curator = _curator(epsilon=10)
    _refuses(BudgetError, lambda: curator.count(curator.root(), 11), curator)
    assert not noise.draws


def shares_add_up(*_):
    for total, weights in ((10, (1, 1, 1)), (NANO, (3, 5, 7, 11)), (7, (1,) * 9)):
        shares = psd.privacy.shares.weighted_shares(total, weights)
        assert sum(shares) == total
        assert min(shares) >= 0


def epsilon_is_read_exactly(*_):
    for text in ("0.1", "0.29", "1.001", "1.1", "0.000000007", "999.999999999"):
        assert psd.privacy.epsilon.parse_epsilon(text) == Fraction(text) * NANO


def not_a_number_is_refused(*_):
    for value in ("nan", "inf", float("nan"), float("inf"), "0", "-1"):
        _refuses(
            ParameterError,
            lambda value=value: psd.privacy.epsilon.parse_epsilon(value),
            _curator()[1],
        )


# Bugs


def layers_take_the_largest():
    """Layers are accounted beside each other."""

    def charge(self, kind, cells, nano):
        layer = self._layers[cells.layer]
        growing = layer.growing
        if not layer.charges.charge(cells.nodes, nano, self.epsilon):
            raise BudgetError("too much within one layer")
        boxes, curve = growing.boxes[cells.nodes], growing.curve
        self._questions.append(ChargedQuestion(kind=kind, boxes=boxes, epsilon=nano, curve=curve))

    return replaced(Curator, "_charge", charge)


def paths_take_the_largest():
    """Levels are accounted beside each other, as if they were disjoint."""
    return replaced(PathCharges, "_raise_paths", lambda *_: None)


def second_cuts_are_free():
    """A node may be cut again, and the children of both cuts lie beside each other."""

    def is_cut(self, nodes):
        return np.zeros(len(nodes), bool)

    return replaced(GrowingTree, "is_cut", is_cut)


def counts_again():
    """What a cell was charged before is forgotten."""
    original = Curator.count

    def count(self, cells, epsilon):
        layer = self._layers[cells.layer]
        layer.growing.epsilon[cells.nodes] = layer.charges._nodes[cells.nodes] = 0
        layer.charges._path[:] = 0
        return original(self, cells, epsilon)

    return replaced(Curator, "count", count)


def nothing_counts_as_unmeasured():
    """A share that was rounded down to nothing is a question all the same."""
    original = Curator._charge

    def charge(self, kind, cells, nano):
        if (nano > 0).all():
            original(self, kind, cells, nano)

    return replaced(Curator, "_charge", charge)


def draws_before_it_charges():
    original = Curator.count

    def count(self, cells, epsilon):
        nano = np.full(len(cells), epsilon)
        true = self._layers[cells.layer].points.count(cells.nodes)
        self._sampler.draw(LaplaceMechanism(true=true, epsilon=nano, sensitivity=1))
        return original(self, cells, epsilon)

    return replaced(Curator, "count", count)


def shares_rounded_up():
    """Every share is rounded up, as one would a price."""

    def weighted_shares(total, weights):
        return tuple(-(-total * weight // sum(weights)) for weight in weights)

    return replaced(psd.privacy.shares, "weighted_shares", weighted_shares)


def epsilon_by_float():
    return replaced(psd.privacy.epsilon, "parse_epsilon", lambda value: int(float(value) * NANO))


def epsilon_unchecked():
    def parse_epsilon(value):
        number = float(value)
        return round(number * NANO) if abs(number) < 1e9 else 10**18

    return replaced(psd.privacy.epsilon, "parse_epsilon", parse_epsilon)


BUDGET = "tests/privacy/test_budget.py::"
ORACLE = BUDGET + "test_methods_spend_exactly_epsilon"
LAYERS = BUDGET + "test_layers_that_cost_more_than_epsilon_together_are_refused"
BESIDE = "families that overlap, accounted as if they were disjoint"
PARSE = "tests/unit/privacy/test_epsilon.py::"

MUTANTS = (
    Mutant(
        id="second-layer-beside",
        wrong="a grid over a quadtree is accounted beside it, each with all of epsilon",
        like=BESIDE,
        plant=layers_take_the_largest,
        check=is_refused,
        sound=SecondLayerBeside(),
        test=LAYERS,
    ),
    Mutant(
        id="grid-beside-kd-tree",
        wrong="the noisy grid that steers a kd-tree is accounted beside the nodes of the tree",
        like=BESIDE,
        plant=layers_take_the_largest,
        check=is_refused,
        sound=GridBesideKDTree(),
        test=LAYERS,
    ),
    Mutant(
        id="curve-beside-counts",
        wrong="a median along the Hilbert curve is accounted beside the counts of cells",
        like=BESIDE,
        plant=layers_take_the_largest,
        check=is_refused,
        sound=CurveBeside(),
        test=LAYERS,
    ),
    Mutant(
        id="boxes-of-intervals-beside",
        wrong="the overlapping boxes around intervals of the curve are accounted beside each other",
        like=BESIDE,
        plant=layers_take_the_largest,
        check=is_refused,
        sound=BoxesOfIntervals(),
        test=LAYERS,
    ),
    Mutant(
        id="levels-beside-each-other",
        wrong="the levels of a tree are accounted as if they were disjoint",
        like=BESIDE,
        plant=paths_take_the_largest,
        check=is_refused,
        sound=ForgetsTheRoot(),
        test=ORACLE,
    ),
    Mutant(
        id="one-level-too-many",
        wrong="epsilon is divided by the height where height + 1 levels are counted",
        like="a budget off by one level",
        check=spends_all,
        sound=Quadtree(height=2),
        instead=ForgetsTheRoot(),
        caught=BudgetError,
        test=ORACLE,
    ),
    Mutant(
        id="second-cut",
        wrong="a node is cut a second time, and its families are not added up",
        like="two families on every point of one node",
        plant=second_cuts_are_free,
        check=second_cut_is_refused,
        test="tests/unit/space/test_growing_tree.py::test_a_cell_is_cut_once",
    ),
    Mutant(
        id="second-count",
        wrong="a cell is counted again, and the charge before is forgotten",
        like="averaging answers to one question",
        plant=counts_again,
        check=second_count_is_refused,
        test=BUDGET + "test_a_cell_is_counted_once",
    ),
    Mutant(
        id="share-of-nothing",
        wrong="a share that rounds down to nothing is still a question",
        like="nano-units of small shares",
        plant=nothing_counts_as_unmeasured,
        check=nothing_is_drawn_for_nothing,
        test=BUDGET + "test_a_question_without_epsilon_is_refused",
    ),
    Mutant(
        id="draw-before-charge",
        wrong="noise is drawn before the charge is known to be within epsilon",
        like="refusing after the draw",
        plant=draws_before_it_charges,
        check=a_refused_question_draws_nothing,
        test=BUDGET + "test_a_refused_question_changes_nothing",
    ),
    Mutant(
        id="shares-rounded-up",
        wrong="shares are rounded up, so that a path costs more than epsilon",
        like="rounding in the cheap direction",
        plant=shares_rounded_up,
        check=shares_add_up,
        test="tests/property/test_epsilon_laws.py::test_geometric_shares_sum_to_the_total",
    ),
    Mutant(
        id="epsilon-by-float",
        wrong="epsilon goes through a float, so that 1.001 is not 1,001,000,000",
        like="budgets in floats",
        plant=epsilon_by_float,
        check=epsilon_is_read_exactly,
        test=PARSE + "test_epsilon_is_read_exactly",
    ),
    Mutant(
        id="epsilon-not-a-number",
        wrong="NaN, infinity, zero and negative numbers pass as epsilon",
        like="NaN that passes every comparison; a library that takes infinity as no noise",
        plant=epsilon_unchecked,
        check=not_a_number_is_refused,
        caught=(AssertionError, ValueError),
        test=PARSE + "test_bad_epsilon_is_refused_with_one_sentence",
    ),
)
