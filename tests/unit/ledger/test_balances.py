"""Budgets in two measures: which charges fit, and what is left."""

import itertools
from fractions import Fraction

from psd.accounting import pure_rho, rho_of
from psd.ledger.charges import Allowance, Balance, Spent
from psd.privacy.loss import NANO, Loss

DELTA = Fraction(1, 10**6)
BUDGET = 2 * NANO
RHO = 88152688379  # of (2, 1e-6)


def balance(epsilon=0, rho=0, gaussian=0, budget=BUDGET, delta=DELTA):
    spent = Spent(epsilon=epsilon, rho=rho, gaussian=gaussian)
    return Balance(allowance=Allowance(epsilon=budget, delta=delta), spent=spent)


def after(*losses, budget=BUDGET, delta=DELTA):
    """Balance after charges, added here by another rule than in the library."""
    pure = [loss.epsilon for loss in losses if loss.delta is None]
    gaussian = [loss.rho for loss in losses if loss.delta is not None]
    total = sum(map(pure_rho, pure)) + sum(gaussian)
    return balance(sum(pure), total if delta else 0, sum(gaussian), budget, delta)


def test_440_answers_fit_and_441_do_not():
    answer = Loss.pure(20_000_000)
    assert after(*[answer] * 439).grants(answer)
    assert not after(*[answer] * 440).grants(answer)
    assert after(*[answer] * 99, delta=None).grants(answer)
    assert not after(*[answer] * 100, delta=None).grants(answer)
    # A budget has a rho, and takes Gaussian noise, only with a delta.
    assert Allowance(epsilon=BUDGET, delta=DELTA).rho == rho_of(BUDGET, DELTA) == RHO
    assert Allowance(epsilon=BUDGET).rho == 0
    assert not balance(delta=None).grants(Loss.gaussian(1_000_000, DELTA, 1))


def test_a_charge_fits_by_epsilons_or_by_rhos_and_not_by_both(subtests):
    for losses, loss, fits in (
        ([], Loss.pure(BUDGET), True),
        ([], Loss.pure(BUDGET + 1), False),
        ([Loss.pure(NANO)], Loss.pure(NANO), True),
        ([Loss.pure(NANO)], Loss.pure(NANO + 1), False),
        ([], Loss.gaussian(BUDGET, DELTA), True),
        ([Loss.gaussian(NANO, DELTA, 1)], Loss.gaussian(BUDGET, DELTA), False),
        ([Loss.gaussian(NANO, DELTA)] * 3, Loss.gaussian(NANO, DELTA), False),
        ([Loss.gaussian(NANO, DELTA)] * 2, Loss.gaussian(NANO, DELTA), True),
        # Epsilon 1 is rho .46 as a pure loss, above all of the budget in rho.
        ([Loss.gaussian(NANO, DELTA, 1)], Loss.pure(NANO), False),
        ([Loss.pure(NANO)], Loss.gaussian(NANO, DELTA, 1), False),
        ([Loss.pure(NANO // 10)], Loss.gaussian(NANO, DELTA), True),
        ([Loss.gaussian(NANO, DELTA)], Loss.pure(NANO // 10), True),
    ):
        with subtests.test(losses=losses, loss=loss):
            assert after(*losses).grants(loss) is fits


def test_what_is_left(subtests):
    fresh = balance()
    assert (fresh.epsilon_left, fresh.rho_left, fresh.largest_pure) == (BUDGET, RHO, BUDGET)
    half = after(Loss.pure(NANO))
    assert (half.epsilon_left, half.rho_left, half.largest_pure) == (NANO, 0, NANO)
    mixed = after(Loss.gaussian(NANO, DELTA))
    assert (mixed.epsilon_left, mixed.rho_left) == (0, RHO - 24355970359)
    assert 0 < mixed.largest_pure < BUDGET
    overspent = balance(BUDGET + 1, RHO + 1)
    assert (overspent.epsilon_left, overspent.rho_left, overspent.largest_pure) == (0, 0, 0)
    assert after(Loss.pure(NANO), delta=None).text == "epsilon 1 left"
    words = "epsilon 2 left for a pure charge, rho 0.088152688379 for Gaussian noise"
    assert fresh.text == words
    # The largest pure charge is the largest.
    for losses in itertools.product(LOSSES, repeat=2):
        with subtests.test(losses=losses):
            left = after(*losses)
            if left.largest_pure:
                assert left.grants(Loss.pure(left.largest_pure))
            assert not left.grants(Loss.pure(left.largest_pure + 1))


LOSSES = [Loss.pure(NANO // 50), Loss.pure(NANO), Loss.gaussian(NANO, DELTA)]
