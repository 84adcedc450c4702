"""Planted bugs of the budget: charges that are not added, not made, or made too late."""

import itertools

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.curator.curator import ChargedQuestion
from psd.errors import BudgetError
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.loss import NANO

BUDGET = "tests/privacy/test_budget.py::"
ORACLE = BUDGET + "test_methods_spend_exactly_epsilon"
LAYERS = BUDGET + "test_layers_that_cost_more_than_epsilon_together_are_refused"
EPSILON = "tests/unit/privacy/test_epsilon.py::"

BESIDE = "families that overlap, accounted as if they were disjoint"


@instead("psd.curator.curator.Curator._charge")
def layers_take_the_largest(self, kind, cells, loss):
    layer = self._layers[cells.layer]
    growing = layer.growing
    if not layer.charges.charge(cells.nodes, loss, self.loss):
        raise BudgetError("too much within one layer")
    boxes, curve = growing.boxes[cells.nodes], growing.curve
    self._questions.append(ChargedQuestion(kind=kind, boxes=boxes, loss=loss, curve=curve))


@planted(test=LAYERS + "[grid_over_quadtree]", like=BESIDE)
def second_layer_beside():
    """A grid over a quadtree is accounted beside it, each with all of epsilon."""
    return layers_take_the_largest()


@planted(test=LAYERS + "[grid_that_steers_a_kd_tree]", like=BESIDE)
def grid_beside_kd_tree():
    """The noisy grid that steers a kd-tree is accounted beside the nodes of the tree."""
    return layers_take_the_largest()


@planted(test=LAYERS + "[median_on_the_curve]", like=BESIDE)
def curve_beside_counts():
    """A median along the Hilbert curve is accounted beside the counts of cells."""
    return layers_take_the_largest()


@planted(test=LAYERS + "[boxes_of_intervals]", like=BESIDE)
def boxes_of_intervals_beside():
    """The overlapping boxes around intervals of the curve are accounted beside each other."""
    return layers_take_the_largest()


@planted(test=ORACLE + "[quadtree,height=2]", like=BESIDE)
def levels_beside_each_other():
    """The levels of a tree are accounted as if they were disjoint."""
    return replaced("psd.curator.path_charges.PathCharges._raise_paths", lambda *_: None)


@planted(test=ORACLE + "[quadtree,height=2]", like="a budget off by one level")
@instead("psd.decompositions.quadtree.Quadtree.build")
def one_level_too_many(self, curator):
    """Epsilon is divided by the height where height + 1 levels are counted."""
    cells = curator.root()
    for _ in range(self.height):
        curator.count(cells, curator.loss // self.height)
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
    curator.count(cells, curator.loss // self.height)
    return curator.tree()


@planted(test=ORACLE + "[kd-standard]", like="a number of records that a method takes for public")
@around("psd.decompositions._base.noisy_total")
def total_for_free(original, curator, share):
    """The noisy total that decides the height of a kd-tree is not charged."""
    cells, _, total = original(curator, share)
    charges = curator._layers[cells.layer].charges
    charges._nodes[:] = charges._path[:] = curator._budget._spent = 0
    return cells, curator.loss, total


@planted(test=ORACLE + "[kd-standard,height=2]", like=BESIDE)
def levels_between_for_free():
    """The levels of a kd-tree between those that are paid are counted as well, and not charged."""

    @around("psd.decompositions._base.kd_shares")
    def shares(original, *given, **named):
        cut, counts = original(*given, **named)
        return cut, tuple(max(pair) for pair in itertools.pairwise((*counts, 0)))

    @around("psd.curator.curator.Curator._charge")
    def charge(original, self, kind, cells, loss):
        growing = self._layers[cells.layer].growing
        if kind == "count" and (growing.level[cells.nodes] == 1).all():
            self._questions.append((kind, growing, cells.nodes, loss))
        else:
            original(self, kind, cells, loss)

    return together(shares(), charge())


@planted(test="tests/unit/space/test_growing_tree.py::test_a_cell_is_cut_once")
@like("two families on every point of one node")
@instead("psd.space.growing_tree.GrowingTree.is_cut")
def second_cut(self, nodes):
    """A node is cut a second time, and its families are not added up."""
    return np.zeros(len(nodes), bool)


@planted(test=BUDGET + "test_a_cell_is_counted_once", like="averaging answers to one question")
@around("psd.curator.curator.Curator.count")
def second_count(original, self, cells, epsilon):
    """A cell is counted again, and the charge before is forgotten."""
    layer = self._layers[cells.layer]
    layer.growing.loss[cells.nodes] = layer.charges._nodes[cells.nodes] = 0
    layer.charges._path[:] = 0
    return original(self, cells, epsilon)


@planted(test=BUDGET + "test_a_question_without_epsilon_is_refused")
@like("nano-units of small shares")
@around("psd.curator.curator.Curator._charge")
def share_of_nothing(original, self, kind, cells, loss):
    """A share that rounds down to nothing is still a question."""
    if (loss > 0).all():
        original(self, kind, cells, loss)


@planted(test=BUDGET + "test_a_refused_question_changes_nothing", like="refusing after the draw")
@around("psd.curator.curator.Curator.count")
def draw_before_charge(original, self, cells, epsilon):
    """Noise is drawn before the charge is known to be within epsilon."""
    loss = np.full(len(cells), epsilon)
    true = self._layers[cells.layer].points.count(cells.nodes)
    self._sampler.draw(LaplaceMechanism(true=true, epsilon=loss, sensitivity=1))
    return original(self, cells, epsilon)


@planted(test="tests/property/test_epsilon_laws.py::test_geometric_shares_sum_to_the_total")
@like("rounding in the cheap direction")
@instead("psd.privacy.budget.weighted_shares")
def shares_rounded_up(total, weights):
    """Shares are rounded up, so that a path costs more than epsilon."""
    return tuple(-(-total * weight // sum(weights)) for weight in weights)


@planted(test=EPSILON + "test_epsilon_is_read_exactly", like="budgets in floats")
def epsilon_by_float():
    """Epsilon goes through a float, so that 1.001 is not 1,001,000,000."""
    return replaced("psd.privacy.loss.parse_epsilon", lambda value: int(float(value) * NANO))


@planted(test=EPSILON + "test_bad_epsilon_is_refused_with_one_sentence")
@like("NaN that passes every comparison; a library that takes infinity as no noise")
@instead("psd.privacy.loss.parse_epsilon")
def epsilon_not_a_number(value):
    """NaN, infinity, zero and negative numbers pass as epsilon."""
    number = float(value)
    return round(number * NANO) if abs(number) < 1e9 else 10**18
