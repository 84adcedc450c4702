"""The curator's budget against an oracle: largest sum over lattice points, by difference array."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psd.decompositions.kd_cell import NoisyGrid
from psd.errors import BudgetError, ParameterError
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent
from support.privacy.curators import small_curator
from support.privacy.replay import small_cases


def largest_sum(questions, side: int) -> int:
    """Largest sum of epsilon over lattice points, from the logged boxes and intervals alone."""
    return int(spent(questions, side).max())


@pytest.mark.parametrize("method", small_cases())
def test_methods_spend_exactly_epsilon(method, subtests):
    for side, script in itertools.product([1, 3, 16, 37], SCRIPTS):
        rows = tuple(np.random.default_rng(side).integers(0, side * side, 500))
        tally, sampler = small_tally(side, rows), RecordingSampler(script)
        curator, _ = run_method(method, tally, small_domain(side), NANO, sampler)
        with subtests.test(f"{side} {script.name}"):
            assert curator.spent == largest_sum(curator.questions, side) == NANO


def grid_over_quadtree(curator):
    for _ in range(2):
        cells = curator.root()
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells, curator.loss)


def grid_that_steers_a_kd_tree(curator):
    cells = curator.root()
    x, y = NoisyGrid.count(curator, 2, curator.loss).medians(cells, 0)
    curator.count(curator.cut(cells, x=x, y=y), curator.loss)


def median_on_the_curve(curator):
    cells = curator.root()
    curator.quantile(curator.curve(2), axis=0, loss=curator.loss)
    curator.count(curator.cut(cells, x=cells.middle(0)), curator.loss)


def boxes_of_intervals(curator):
    """The boxes around two intervals of the curve, which overlap."""
    for x, y in ((1, None), (None, 1)):
        root = curator.root()
        lines = {"x": None if x is None else [x], "y": None if y is None else [y]}
        curator.count(curator.cut(root, **lines)[:1], curator.loss)


LAYERS = (grid_over_quadtree, grid_that_steers_a_kd_tree, median_on_the_curve, boxes_of_intervals)


@pytest.mark.parametrize("ask", LAYERS, ids=lambda ask: ask.__name__)
def test_layers_that_cost_more_than_epsilon_together_are_refused(ask):
    """And what is refused draws nothing: the first layer alone is paid and drawn."""
    curator, recorder = small_curator(4, (0, 5))
    with pytest.raises(BudgetError):
        ask(curator)
    assert (curator.spent, len(curator.questions), len(recorder.draws)) == (NANO, 1, 1)


@pytest.mark.deep
@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_cuts_and_questions(data):
    side = data.draw(st.integers(2, 12))
    curator, _ = small_curator(side, (0, 1))
    whole = data.draw(st.booleans())
    cells = [curator.root() for _ in range(data.draw(st.integers(1, 2)))]
    for _ in range(data.draw(st.integers(1, 12))):
        family = data.draw(st.sampled_from(cells))
        one = family[np.array([data.draw(st.integers(0, len(family) - 1))])]
        try:
            if data.draw(st.booleans()):
                x = data.draw(st.integers(int(one.boxes[0, 0]), int(one.boxes[0, 2])))
                y = data.draw(st.integers(int(one.boxes[0, 1]), int(one.boxes[0, 3])))
                cells.append(curator.cut(one, x=[x], y=[y]))
            else:
                curator.count(family if whole else one, data.draw(st.integers(1, NANO // 3)))
        except (BudgetError, ParameterError):
            pass
    layers = {family.layer for family in cells}
    oracle = largest_sum(curator.questions, side)
    assert oracle <= curator.spent <= NANO
    if len(layers) == 1:
        assert oracle == curator.spent


def test_a_cell_is_counted_once():
    curator, recorder = small_curator(budget=100)
    root = curator.root()
    curator.count(root, 10)
    with pytest.raises(ParameterError, match="counted twice"):
        curator.count(root, 10)
    assert (curator.spent, len(recorder.draws)) == (10, 1)


def test_a_refused_question_changes_nothing():
    curator, recorder = small_curator(budget=100)
    root = curator.root()
    halves = curator.cut(root, x=root.middle(0))
    curator.count(halves, [60, 80])
    with pytest.raises(BudgetError):
        curator.count(root, 21)
    assert (curator.spent, len(curator.questions), len(recorder.draws)) == (80, 1, 1)
    assert curator.tree().count[0] == 0
    curator.count(root, 20)
    assert curator.spent == 100


def test_a_question_without_epsilon_is_refused():
    for epsilon in (0, -1, [5, 0]):
        curator, recorder = small_curator(budget=100)
        root = curator.root()
        cells = curator.cut(root, x=root.middle(0))
        with pytest.raises(ParameterError, match="epsilon of a question must be above 0"):
            curator.count(cells, epsilon)
        assert not recorder.draws


def test_a_scale_that_leaves_the_integers_is_refused():
    curator, _ = small_curator(k=10**9)
    with pytest.raises(ParameterError, match="too small for 1000000000 records per user"):
        curator.count(curator.root(), 1)
