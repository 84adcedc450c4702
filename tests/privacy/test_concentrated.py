"""Losses in rho: counted at points, and reached by whole users in all of their slices.

The oracle sums rho at every lattice point from the logged boxes. The replays remove a whole user
and add up d^2 rho / S^2 over all questions of all slices: never above the claim, and equal to it
for the users who lose most, so that the check sees what it claims to see.
"""

from fractions import Fraction

import numpy as np
import pytest

import psd
from psd.apps.auditing.pairs import transcript_rho
from psd.errors import BudgetError, ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO, Loss
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent
from support.privacy.curators import small_curator
from support.privacy.replay import small_cases
from support.privacy.slices_replay import LOSING_MOST, UNITS_OF_SLICES, loss_of, placed, user

LOSS = Loss.gaussian(NANO, Fraction(1, 10**6))
RHO = Fraction(LOSS.rho, 10**12)
KD_TREE = psd.decompositions.KDStandard(height=2)
PRIVTREE = psd.decompositions.PrivTree(height=1)


@pytest.mark.parametrize("method", small_cases())
def test_methods_spend_exactly_rho_at_every_point(method, subtests):
    side = 16
    rows = tuple(np.random.default_rng(side).integers(0, side * side, 500))
    for script in SCRIPTS:
        tally, sampler = small_tally(side, rows), RecordingSampler(script)
        run = run_method(method, tally, small_domain(side), LOSS, sampler)
        with subtests.test(script.name):
            most = int(spent(run.curator.questions, side).max())
            assert run.curator.spent == most == LOSS.rho
            assert run.tree.noise == CountNoise.gaussian(1)


def rho_of(added, unit, bound="series", **options):
    """Largest rho over all slices and scripts, as a part of the claim."""
    rho = loss_of(added, unit, bound, measure=transcript_rho, claim=RHO, loss=LOSS, **options)
    return rho / RHO


@UNITS_OF_SLICES
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_user_of_many_slices_costs_rho_and_no_more(every, unit, bound):
    """Of users who lose most, or of all with up to three rows; a tree in three slices."""
    most = 3 if bound == "slice" else unit.max_contributions
    added = placed(most) if every else LOSING_MOST
    assert max(rho_of(rows, unit, bound) for rows in added) == 1


def test_a_user_whose_rows_are_heaped_in_one_slice_costs_less():
    """Two of three kept rows would lie in one slice; at most one of them may."""
    heaped = [("u", 0, 0), ("u", 0, 0), ("u", 0, 1)]
    assert rho_of(heaped, user(3, 1)) == Fraction(1, 3)


@pytest.mark.deep
@pytest.mark.parametrize("method", [KD_TREE, PRIVTREE], ids=["medians", "shapes"])
@pytest.mark.parametrize("unit", [user(2), user(2, 1)], ids=["two rows", "two slices"])
def test_selections_and_shapes_cost_no_more_than_their_rho(method, unit):
    assert 0 < max(rho_of(rows, unit, method=method) for rows in placed(2)) <= 1


def test_a_question_above_rho_is_refused_before_it_is_drawn():
    curator, recorder = small_curator(budget=LOSS)
    root = curator.root()
    curator.count(curator.cut(root, x=root.middle(0)), LOSS.rho - 5)
    with pytest.raises(BudgetError, match=r"more than rho 0\.024355970359 at some point"):
        curator.count(root, 6)
    assert (curator.spent, len(recorder.draws)) == (LOSS.rho - 5, 1)


def test_epsilon_of_a_loss_in_rho_is_not_spent():
    """A budget of (1, 1e-6) is .024 in rho: nano-epsilons are no parts of it."""
    curator, recorder = small_curator(budget=LOSS)
    assert curator.loss == LOSS.rho
    with pytest.raises(BudgetError):
        curator.count(curator.root(), 10**12)
    assert not recorder.draws


def test_noise_follows_from_the_squared_sensitivity():
    curator, recorder = small_curator(k=3, budget=LOSS, squared_sensitivity=6)
    curator.count(curator.root(), LOSS.rho)
    assert recorder.draws[0].sensitivity.tolist() == [6]
    assert curator.tree().noise == CountNoise.gaussian(6)
    for more, squared in (({}, 9), ({"squared_sensitivity": 3}, 3)):
        assert small_curator(k=3, budget=LOSS, **more)[0].noise == CountNoise.gaussian(squared)
    with pytest.raises(ParameterError, match="squared_sensitivity must be at least 3"):
        small_curator(k=3, budget=LOSS, squared_sensitivity=2)
    with pytest.raises(ParameterError, match="must be left out without a budget in rho"):
        small_curator(squared_sensitivity=1)


def test_a_rho_whose_noise_leaves_the_integers_is_refused():
    curator, recorder = small_curator(k=10**9, budget=LOSS)
    with pytest.raises(ParameterError, match=r"rho 0\.000000000001 of a question is too small"):
        curator.count(curator.root(), 1)
    assert not recorder.draws
