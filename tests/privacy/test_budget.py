"""The curator's budget against an oracle: largest sum over lattice points, by difference array."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.planted_bugs.budget import (
    BoxesOfIntervals,
    CurveBeside,
    ForgetsTheRoot,
    GridBesideKDTree,
    SecondLayerBeside,
    layers_take_the_largest,
    paths_take_the_largest,
)
from psd.curator.curator import Curator
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent
from support.privacy.replay import small_cases


def largest_sum(questions, side: int) -> int:
    """Largest sum of epsilon over lattice points, from the logged boxes and intervals alone."""
    return int(spent(questions, side).max())


@pytest.mark.parametrize("method", small_cases())
@pytest.mark.parametrize("side", [1, 3, 16, 37])
@pytest.mark.parametrize("script", SCRIPTS)
def test_methods_spend_exactly_epsilon(method, side, script):
    rows = tuple(np.random.default_rng(side).integers(0, side * side, 500))
    curator, _ = run_method(
        method, small_tally(side, rows), small_domain(side), NANO, RecordingSampler(script)
    )
    assert curator.spent == largest_sum(curator.questions, side) == NANO


@pytest.mark.parametrize(
    "method", [SecondLayerBeside(), GridBesideKDTree(), CurveBeside(), BoxesOfIntervals()]
)
def test_layers_that_cost_more_than_epsilon_together_are_refused(method):
    """And what is refused draws nothing: the first layer alone is paid and drawn."""
    recorder = RecordingSampler()
    curator = Curator(
        small_tally(4, (0, 5)), small_domain(4), budget=Budget(NANO), sampler=recorder
    )
    with pytest.raises(BudgetError):
        method.build(curator)
    assert (curator.spent, len(curator.questions), len(recorder.draws)) == (NANO, 1, 1)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_cuts_and_questions(data):
    side = data.draw(st.integers(2, 12))
    curator = Curator(
        small_tally(side, (0, 1)),
        small_domain(side),
        budget=Budget(NANO),
        sampler=RecordingSampler(),
    )
    cells, whole = [], data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 2))):
        cells.append(curator.root())
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
    recorder = RecordingSampler()
    curator = Curator(small_tally(3, (0,)), small_domain(3), budget=Budget(100), sampler=recorder)
    root = curator.root()
    curator.count(root, 10)
    with pytest.raises(ParameterError, match="counted twice"):
        curator.count(root, 10)
    assert (curator.spent, len(recorder.draws)) == (10, 1)


def test_a_refused_question_changes_nothing():
    recorder = RecordingSampler()
    curator = Curator(small_tally(3, (0,)), small_domain(3), budget=Budget(100), sampler=recorder)
    root = curator.root()
    halves = curator.cut(root, x=root.middle(0))
    curator.count(halves, [60, 80])
    with pytest.raises(BudgetError):
        curator.count(root, 21)
    assert (curator.spent, len(curator.questions), len(recorder.draws)) == (80, 1, 1)
    assert curator.tree().count[0] == 0
    curator.count(root, 20)
    assert curator.spent == 100


@pytest.mark.parametrize(
    ("method", "patch"),
    [
        (SecondLayerBeside(), layers_take_the_largest),
        (GridBesideKDTree(), layers_take_the_largest),
        (CurveBeside(), layers_take_the_largest),
        (ForgetsTheRoot(), paths_take_the_largest),
    ],
)
def test_oracle_catches_wrong_accounting(method, patch):
    with patch():
        curator, _ = run_method(
            method, small_tally(4, (0,)), small_domain(4), NANO, RecordingSampler()
        )
    assert largest_sum(curator.questions, 4) > NANO


@pytest.mark.parametrize("epsilon", [0, -1, [5, 0]])
def test_a_question_without_epsilon_is_refused(epsilon):
    recorder = RecordingSampler()
    curator = Curator(small_tally(3, (0,)), small_domain(3), budget=Budget(100), sampler=recorder)
    root = curator.root()
    cells = curator.cut(root, x=root.middle(0))
    with pytest.raises(ParameterError, match="epsilon of a question must be above 0"):
        curator.count(cells, epsilon)
    assert not recorder.draws


def test_a_scale_that_leaves_the_integers_is_refused():
    curator = Curator(
        small_tally(3, (0,), k=10**9),
        small_domain(3),
        budget=Budget(NANO),
        sampler=RecordingSampler(),
    )
    with pytest.raises(ParameterError, match="too small for 1000000000 rows per user"):
        curator.count(curator.root(), 1)
