"""Losses in rho: counted at points, and reached by whole users in all of their slices.

The oracle sums rho at every lattice point from the logged boxes. The replays remove a whole user
and add up d^2 rho / S^2 over all questions of all slices: never above the claim, and equal to it
for the users who lose most, so that the check sees what it claims to see.
"""

from fractions import Fraction

import numpy as np
import pytest

import psd
from psd.auditing.concentrated import transcript_rho
from psd.curator.curator import Curator
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent
from support.privacy.replay import small_cases
from support.privacy.slices_replay import loss_of, placed

LOSS = Loss.gaussian(NANO, Fraction(1, 10**6))
RHO = Fraction(LOSS.rho, 10**12)
KD_TREE = psd.decompositions.KDStandard(height=2)
PRIVTREE = psd.decompositions.PrivTree(height=1)


@pytest.mark.parametrize("method", small_cases())
@pytest.mark.parametrize("script", SCRIPTS)
def test_methods_spend_exactly_rho_at_every_point(method, script):
    side = 16
    rows = tuple(np.random.default_rng(side).integers(0, side * side, 500))
    run = run_method(
        method, small_tally(side, rows), small_domain(side), LOSS, RecordingSampler(script)
    )
    assert (spent(run.curator.questions, side) <= LOSS.rho).all()
    assert run.curator.spent == int(spent(run.curator.questions, side).max()) == LOSS.rho
    assert run.tree.noise == CountNoise.gaussian(1)


def rho_of(added, unit, bound="series", **options):
    """Largest rho over all slices and scripts, as a part of the claim."""
    rho = loss_of(added, unit, bound, measure=transcript_rho, claim=RHO, loss=LOSS, **options)
    return rho / RHO


def user(k, most=None):
    """Unit with k rows in all slices, at most a number of them in each."""
    return PrivacyUnit(kind="user", max_contributions=k, max_per_slice=most)


@pytest.mark.parametrize(
    ("unit", "bound"),
    [
        pytest.param(user(1), "series", id="one row"),
        pytest.param(user(2), "series", id="two rows anywhere"),
        pytest.param(user(2, 1), "series", id="two rows in two slices"),
        pytest.param(user(3, 1), "series", id="three rows in three slices"),
        pytest.param(user(1), "slice", id="one row in each slice"),
    ],
)
def test_a_user_of_many_slices_costs_rho_and_no_more(unit, bound):
    """All users with up to three rows; a tree of two levels in three slices."""
    most = 3 if bound == "slice" else unit.max_contributions
    assert max(rho_of(rows, unit, bound) for rows in placed(most)) == 1


def test_a_user_whose_rows_are_heaped_in_one_slice_costs_less():
    """Two of three kept rows would lie in one slice; at most one of them may."""
    heaped = [("u", 0, 0), ("u", 0, 0), ("u", 0, 1)]
    assert rho_of(heaped, user(3, 1)) == Fraction(1, 3)


@pytest.mark.parametrize("method", [KD_TREE, PRIVTREE], ids=["medians", "shapes"])
@pytest.mark.parametrize("unit", [user(2), user(2, 1)], ids=["two rows", "two slices"])
def test_selections_and_shapes_cost_no_more_than_their_rho(method, unit):
    assert 0 < max(rho_of(rows, unit, method=method) for rows in placed(2)) <= 1


def curator_of(loss=LOSS, k=1, **options):
    """Curator of a small tally, and its recorder."""
    recorder = RecordingSampler()
    curator = Curator(
        small_tally(3, (0,), k),
        small_domain(3),
        budget=Budget(loss),
        sampler=recorder,
        **options,
    )
    return curator, recorder


def test_a_question_above_rho_is_refused_before_it_is_drawn():
    curator, recorder = curator_of()
    root = curator.root()
    curator.count(curator.cut(root, x=root.middle(0)), LOSS.rho - 5)
    with pytest.raises(BudgetError, match=r"more than rho 0\.024355970359 at some point"):
        curator.count(root, 6)
    assert (curator.spent, len(recorder.draws)) == (LOSS.rho - 5, 1)


def test_epsilon_of_a_loss_in_rho_is_not_spent():
    """A budget of (1, 1e-6) is .024 in rho: nano-epsilons are no parts of it."""
    curator, recorder = curator_of()
    assert curator.epsilon == LOSS.rho
    with pytest.raises(BudgetError):
        curator.count(curator.root(), 10**12)
    assert not recorder.draws


def test_noise_follows_from_the_squared_sensitivity():
    curator, recorder = curator_of(k=3, squared_sensitivity=6)
    curator.count(curator.root(), LOSS.rho)
    assert recorder.draws[0].sensitivity.tolist() == [6]
    assert curator.tree().noise == CountNoise.gaussian(6)
    assert curator_of(k=3)[0].noise == CountNoise.gaussian(9)
    assert curator_of(k=3, squared_sensitivity=3)[0].noise == CountNoise.gaussian(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3, "squared_sensitivity": 2}, "squared_sensitivity must be at least 3"),
        ({"loss": NANO, "squared_sensitivity": 1}, "must be left out without a budget in rho"),
    ],
)
def test_a_squared_sensitivity_that_does_not_fit_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        curator_of(**options)


def test_a_rho_whose_noise_leaves_the_integers_is_refused():
    curator, recorder = curator_of(k=10**9)
    with pytest.raises(ParameterError, match=r"rho 0\.000000000001 of a question is too small"):
        curator.count(curator.root(), 1)
    assert not recorder.draws
