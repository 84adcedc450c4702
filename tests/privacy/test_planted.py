"""The privacy tests have power: each planted bug is caught by the check that sound code passes."""

import contextlib

import pytest
from planted import LEAKS, OVERSPENDERS, CountsIntervals
from replay import SCRIPTS, Recorder, Violation, run, small_domain, small_tally, worst_loss

from psd.epsilon import NANO
from psd.errors import BudgetError


@pytest.mark.parametrize("name", LEAKS)
def test_replay_catches(name):
    method, patch, k = LEAKS[name]
    with patch() if patch else contextlib.nullcontext(), pytest.raises(Violation):
        worst_loss(method, 3, k)


def test_intervals_counted_as_such_are_sound():
    """What the bounding boxes break: without them the same build keeps its promise."""
    assert worst_loss(CountsIntervals(), 3, 1, every=10)[0] == 1


@pytest.mark.parametrize("name", OVERSPENDERS)
def test_curator_refuses_an_overspender_before_it_draws(name):
    recorder = Recorder(SCRIPTS[0])
    with pytest.raises(BudgetError, match="more than it was given"):
        run(OVERSPENDERS[name], small_tally(3, (0, 4)), small_domain(3), NANO, recorder)
    spent = sum(int(call.epsilon.max()) for call in recorder.calls)
    assert spent <= NANO
