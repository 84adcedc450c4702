"""One audit for every registered method and unit; a new file is audited without touching this."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import psd
from psd.accounting import PICO
from psd.apps.auditing.attacks import audit, guess_canaries
from psd.apps.auditing.pairs import (
    Pair,
    Samples,
    Threshold,
    accuracy_under_delta,
    epsilon_from_accuracy,
    event_loss,
    guess_accuracy,
    largest_rho,
    log_ratio_limits,
    lower_limit,
    record_losses,
    upper_limit,
)
from psd.errors import ParameterError
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import WEIGHT, PrivacyUnit

UNITS = [PrivacyUnit(), PrivacyUnit(kind="user", max_contributions=3)]
every_unit = pytest.mark.parametrize("unit", UNITS, ids=["record", "user"])
every_method = pytest.mark.parametrize("name", psd.methods())


@pytest.mark.deep
@every_unit
@every_method
def test_canaries_of_every_method(name, unit):
    found = audit(name, 1, unit=unit, canaries=64, runs=2, pairs=0, confidence=1 - 1e-6)
    assert not found.failed, found
    assert found.results[0].samples > 0
    assert 0 < found.expected <= 1 + 1e-9


def losses_of(pair, number):
    """Losses of recorded builds, half of them with more."""
    return np.concatenate([record_losses(pair, number, more=more)[1] for more in (True, False)])


@pytest.mark.deep
@every_unit
@every_method
def test_loss_of_recorded_builds(name, unit):
    """At most epsilon, and the mean of exp(loss) is 1, as it is for a ratio of two laws."""
    epsilon, number = 2, 40
    pair = Pair.of(psd.decompositions.method(name), Loss.pure(epsilon * NANO), unit)
    loss = losses_of(pair, number // 2)
    assert np.abs(loss).max() <= epsilon + 1e-6
    # The variance of a ratio between exp(-2) and exp(2) with mean 1 is below exp(2).
    assert np.exp(loss).mean() == pytest.approx(1, abs=5 * np.sqrt(np.exp(2) / number))
    assert loss.std() > 0


@pytest.mark.deep
@every_unit
@every_method
def test_losses_of_recorded_gaussian_builds(name, unit):
    """The mean of exp(loss) is 1; its variance is exp(2 rho) - 1 = 0.19, so 1 is 14 errors off."""
    loss = Loss.gaussian(2 * NANO, Fraction(1, 10**6))
    pair = Pair.of(psd.decompositions.method(name), loss, unit)
    losses = losses_of(pair, 20)
    assert np.exp(losses).mean() == pytest.approx(1, abs=1)
    assert losses.std() > 0
    assert all(0 < largest_rho(pair, 5, more=more) <= loss.rho / PICO for more in (True, False))


DAYS = PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC")
REFUSED = [
    ({"canaries": 15}, "canaries must be between"),
    ({"runs": 0}, "runs must be between"),
    ({"pairs": 7}, "pairs must be between"),
    ({"delta": "0.01"}, "delta must be above 0 and below 0.001"),
    ({"delta": "1e-400"}, "delta must be"),
    ({"confidence": 1}, "confidence must be between 0.5 and 1, got 1"),
    ({"unit": PrivacyUnit(kind="user", weight=WEIGHT)}, "unit must be a record, or a user"),
    ({"unit": DAYS}, "unit must be a record, or a user"),
]


def test_refuses(subtests):
    for how, told in REFUSED:
        with subtests.test(str(how)), pytest.raises(ParameterError, match=told):
            audit("grid", 1, **how)


def test_limits_hold_as_often_as_they_say():
    """Over all outcomes of 30 trials, weighted with their probability."""
    outcomes = np.arange(31)
    for p in (0.01, 0.3, 0.5, 0.9):
        mass = binom.pmf(outcomes, 30, p)
        low, high = (
            np.array([limit(int(n), 30, 0.05) for n in outcomes])
            for limit in (lower_limit, upper_limit)
        )
        assert mass[low > p].sum() <= 0.05
        assert mass[high < p].sum() <= 0.05
        assert mass[low > p - 0.2].sum() > 0.05


def test_the_bound_is_that_of_the_paper():
    """The largest e with P[Binomial(r, e^e / (1 + e^e)) >= v] < beta."""
    made, right, beta = 1000, 760, 1e-3
    bound = epsilon_from_accuracy(lower_limit(right, made, beta))
    assert binom.sf(right - 1, made, guess_accuracy(bound)) == pytest.approx(beta, rel=1e-6)
    assert bound == pytest.approx(0.925, abs=0.05)


def test_the_limit_under_delta_holds_where_bits_are_revealed():
    """300 of 2,000 bits are revealed with probability .03: delta of each bit is .0045."""
    q, beta, bits, shown = guess_accuracy(1), 0.02, 2_000, 300
    right = np.arange(bits + 1)
    revealing = binom.pmf(right - shown, bits - shown, q)
    mass = 0.97 * binom.pmf(right, bits, q) + 0.03 * revealing
    limits = [
        np.array([accuracy_under_delta(n, bits, bits, beta, delta) for n in right.tolist()])
        for delta in (0, 0.03 * shown / bits)
    ]
    above = [mass[limit > q].sum() for limit in limits]
    assert above[0] > 0.03  # without delta in it the limit is wrong too often
    assert above[1] <= beta
    assert (limits[1] <= limits[0]).all()
    assert limits[1].max() > q  # it can tell something


def test_limits_of_a_ratio_and_that_they_leave_delta_out():
    plain = log_ratio_limits((600, 1000), (200, 1000), 0.001)
    assert plain[0] < np.log(3) < plain[1]
    assert log_ratio_limits((0, 10), (0, 10), 0.1) == (0.0, np.inf)
    low, high = log_ratio_limits((600, 1000), (200, 1000), 0.001, 0.1)
    assert low < plain[0]
    assert np.log(0.5 / 0.2) < high < plain[1]
    assert log_ratio_limits((600, 1000), (200, 1000), 0.001, 0.7)[0] == 0


def test_the_expected_loss_of_an_event_leaves_delta_out():
    """Half of the builds are in the event, and each is exp(.2) times as likely as on the other."""
    recorded = Samples(shape=np.zeros(10, np.int64), log_odds=np.arange(10.0))
    event, loss = Threshold(shapes={}, least=5.0, more=True), np.full(10, -0.2)
    assert event_loss(event, recorded, loss)[0] == pytest.approx(0.2)
    assert event_loss(event, recorded, loss, 0.1)[0] == pytest.approx(0.2 + np.log(0.4 / 0.5))
    assert event_loss(event, recorded, loss, 0.5)[0] == -np.inf


def test_guesses_are_chosen_without_the_truth():
    odds = np.array([2.0, -2.0, 0.1, 0.0, 2.0] * 20)
    for present in (np.ones(100, bool), np.zeros(100, bool)):
        made = guess_canaries(odds, present, 0.01)
        assert made.number == 60
        assert made.expected == pytest.approx(guess_accuracy(2))
    assert made.right == 20
    made = guess_canaries(np.zeros(4), np.ones(4, bool), 0.01)
    assert (made.number, made.right, made.expected) == (0, 0, 0.5)


def test_wrong_types_are_refused_with_a_sentence():
    with pytest.raises(ParameterError, match="method must be an instance"):
        audit(psd.decompositions.Grid, 1)
    with pytest.raises(ParameterError, match="unit must be of type PrivacyUnit"):
        audit("grid", 1, unit="user")
