"""Losses of charges: rho of pure and of Gaussian ones, and what contradicts itself."""

from fractions import Fraction

import pytest

from psd.errors import ParameterError
from psd.privacy.delta import failure_text
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss, largest_pure_epsilon, rho_text, rho_within

DELTA = Fraction(1, 10**6)


def test_a_pure_loss_is_that_of_randomised_response():
    loss = Loss.pure(20_000_000)
    assert (loss.epsilon, loss.delta, loss.is_pure) == (20_000_000, None, True)
    assert loss.rho == 199993334  # .02 tanh(.01) = 1.99993333...e-4, rounded up


@pytest.mark.parametrize(("epsilon", "rho"), [(NANO, 24355970359), (3 * NANO, 185069840653)])
def test_a_gaussian_loss_is_the_largest_of_its_epsilon_and_delta(epsilon, rho):
    loss = Loss.gaussian(epsilon, DELTA)
    assert (loss.epsilon, loss.rho, loss.delta, loss.is_pure) == (epsilon, rho, DELTA, False)
    assert Loss.gaussian(epsilon, DELTA, rho - 5).rho == rho - 5
    assert Loss.gaussian(epsilon, DELTA, 1).rho == 1


@pytest.mark.parametrize("rho", [0, -1, 24355970360, 10**12])
def test_a_rho_that_epsilon_and_delta_do_not_allow(rho):
    with pytest.raises(ParameterError, match=r"^rho must be above 0 and at most that of epsilon 1"):
        Loss.gaussian(NANO, DELTA, rho)


def test_an_epsilon_that_has_no_rho():
    with pytest.raises(ParameterError, match=r"got 0; epsilon may be too small"):
        Loss.gaussian(1, Fraction(1, 10**12))


@pytest.mark.parametrize("rho", [0, NANO, 462117157260, 125 * 10**9])
def test_no_other_rho_of_a_pure_loss(rho):
    """Among them that of the exponential mechanism, epsilon^2 / 8."""
    with pytest.raises(ParameterError, match=r"^rho of a pure loss"):
        Loss(epsilon=NANO, rho=rho)


def test_losses_in_words():
    assert Loss.pure(NANO // 2).text == "epsilon 0.5"
    words = "epsilon 1 and delta 1e-6 (rho 0.024355970359)"
    assert Loss.gaussian(NANO, DELTA).text == words
    assert Loss.pure(NANO).failure_note == ""
    assert Loss.gaussian(NANO, DELTA).failure_note == f"; {failure_text(DELTA)}"


@pytest.mark.parametrize(
    ("pico", "text"), [(0, "0"), (1, "0.000000000001"), (10**12, "1"), (15 * 10**11, "1.5")]
)
def test_rho_in_words(pico, text):
    assert rho_text(pico) == text


@pytest.mark.parametrize("nano", [0, 20_000_000, NANO, 1000 * NANO])
def test_the_largest_pure_epsilon_of_a_rho(nano):
    rho = Loss.pure(nano).rho
    assert largest_pure_epsilon(rho) == nano
    assert largest_pure_epsilon(rho - 1) == max(nano - 1, 0)


def test_nothing_is_left_of_a_rho_below_0_and_an_epsilon_has_a_largest():
    assert largest_pure_epsilon(-5) == 0
    assert largest_pure_epsilon(10**18) == 1000 * NANO


def test_the_rho_of_a_budget():
    assert rho_within(2 * NANO, DELTA) == 88152688379
    assert rho_within(1, Fraction(1, 10**12)) == 0
