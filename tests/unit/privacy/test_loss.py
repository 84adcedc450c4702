"""Losses of charges, the noise of counts that they mean, and the currencies of both."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import (
    EPSILON,
    NANO,
    RHO,
    Loss,
    failure_text,
    largest_pure_epsilon,
    rho_text,
    rho_within,
)

DELTA = Fraction(1, 10**6)


def test_a_pure_loss_is_that_of_randomised_response():
    loss = Loss.pure(20_000_000)
    assert (loss.epsilon, loss.delta, loss.is_pure) == (20_000_000, None, True)
    assert loss.rho == 199993334  # .02 tanh(.01) = 1.99993333...e-4, rounded up


def test_a_rho_that_epsilon_and_delta_do_not_allow():
    """Of a pure loss there is one, and not that of the exponential mechanism, epsilon^2 / 8."""
    words = r"^rho must be above 0 and at most that of epsilon 1"
    for rho in (0, -1, 24355970360, 10**12):
        with pytest.raises(ParameterError, match=words):
            Loss.gaussian(NANO, DELTA, rho)
    with pytest.raises(ParameterError, match=r"got 0; epsilon may be too small"):
        Loss.gaussian(1, Fraction(1, 10**12))
    for rho in (0, NANO, 462117157260, 125 * 10**9):
        with pytest.raises(ParameterError, match=r"^rho of a pure loss"):
            Loss(epsilon=NANO, rho=rho)
    # A Gaussian loss is the largest of its epsilon and delta.
    for epsilon, rho in ((NANO, 24355970359), (3 * NANO, 185069840653)):
        loss = Loss.gaussian(epsilon, DELTA)
        assert (loss.epsilon, loss.rho, loss.delta, loss.is_pure) == (epsilon, rho, DELTA, False)
        assert Loss.gaussian(epsilon, DELTA, rho - 5).rho == rho - 5
        assert Loss.gaussian(epsilon, DELTA, 1).rho == 1


def test_losses_in_words():
    assert Loss.pure(NANO // 2).text == "epsilon 0.5"
    words = "epsilon 1 and delta 1e-6 (rho 0.024355970359)"
    assert Loss.gaussian(NANO, DELTA).text == words
    assert Loss.pure(NANO).failure_note == ""
    assert Loss.gaussian(NANO, DELTA).failure_note == f"; {failure_text(DELTA)}"
    texts = {0: "0", 1: "0.000000000001", 10**12: "1", 15 * 10**11: "1.5"}
    assert {pico: rho_text(pico) for pico in texts} == texts


def test_the_largest_pure_epsilon_of_a_rho():
    for nano in (0, 20_000_000, NANO, 1000 * NANO):
        rho = Loss.pure(nano).rho
        assert largest_pure_epsilon(rho) == nano
        assert largest_pure_epsilon(rho - 1) == max(nano - 1, 0)
    assert largest_pure_epsilon(-5) == 0
    assert largest_pure_epsilon(10**18) == 1000 * NANO
    assert rho_within(2 * NANO, DELTA) == 88152688379
    assert rho_within(1, Fraction(1, 10**12)) == 0


# The noise of counts: what a loss means by law, sensitivity and factor


PICO = 10**12
NOISES = [CountNoise.laplace(3), CountNoise.gaussian(9)]
LOSSES = np.array([0, NANO // 2, NANO])


def test_the_currency_and_the_sensitivity_of_each_law():
    assert CountNoise().measure is EPSILON
    assert CountNoise.gaussian(1).measure is RHO
    # The sensitivity of a pure law follows from the unit.
    assert CountNoise().for_contributions(5) == CountNoise.laplace(5)
    assert CountNoise.gaussian(7).for_contributions(5) == CountNoise.gaussian(7)
    # S^2 / (2 rho): 4 records of a user of whom one question sees 1, at rho .02.
    assert CountNoise.gaussian(4).variance(np.array([PICO // 50]))[0] == pytest.approx(100)
    for wrong in ({"squared_sensitivity": 0}, {"factor": Fraction(0)}):
        with pytest.raises(ParameterError, match="must be above 0"):
            CountNoise(**wrong)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_factor_multiplies_the_variance(noise):
    totals = dataclasses.replace(noise, factor=Fraction(5, 2))
    np.testing.assert_allclose(totals.variance(LOSSES), 2.5 * noise.variance(LOSSES))
    assert totals.signal_to_noise(100, NANO) == pytest.approx(
        noise.signal_to_noise(100, NANO) / math.sqrt(2.5)
    )


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_likelihood_of_computed_counts_is_normal(noise):
    noise = dataclasses.replace(noise, factor=Fraction(4))
    variance, rate = noise.variance(LOSSES), noise.rate(LOSSES, scale=2)
    assert rate[0] == 0
    np.testing.assert_allclose(noise.inverse_variance(rate)[1:], 4 / variance[1:])
    distance = np.array([3.0])
    misfit = noise.negative_log_likelihood(distance, rate[1:])
    np.testing.assert_allclose(misfit, (2 * distance) ** 2 / (2 * variance[1:]))
    density = noise.log_density(2 * distance, LOSSES[1:])
    np.testing.assert_allclose(misfit, noise.log_density(0 * distance, LOSSES[1:]) - density)


def test_the_signal_is_the_count_over_the_scale_of_laplace_noise_of_the_same_variance():
    """N sqrt(2) / sd: at sd 10 a count of 1,000 has 141.4."""
    noise = CountNoise.laplace(4)
    assert noise.signal_to_noise(1_000, NANO // 2) == 125.0
    assert noise.signal_to_noise(np.array([-3, 8]), np.array([NANO, NANO])).tolist() == [0.0, 2.0]
    assert CountNoise.gaussian(4).signal_to_noise(1_000, PICO // 50) == pytest.approx(
        100 * math.sqrt(2)
    )


# Currencies: texts of amounts, and the epsilon that an amount pays for


AMOUNTS = [1, 7, 999_999, 24_355_970_359, PICO, 1_000 * PICO]


def test_texts(subtests):
    for measure, amount, text in (
        (EPSILON, NANO, "1"),
        (EPSILON, 1, "0.000000001"),
        (RHO, 1, "0.000000000001"),
        (RHO, 5 * PICO // 2, "2.5"),
        (RHO, 0, "0"),
    ):
        with subtests.test(text):
            assert measure.text(amount) == text
            assert Fraction(measure.decimal(amount)) == Fraction(amount, measure.parts)


def test_epsilon_pays_for_itself_and_amounts_keep_their_shape_and_type():
    amounts = np.array([1, NANO])
    assert EPSILON.of_selections(amounts) is amounts
    assert EPSILON.of_pure(amounts) is amounts
    assert (EPSILON.is_pure, RHO.is_pure) == (True, False)
    assert (EPSILON.one_text, RHO.one_text) == ("an epsilon", "a rho")
    assert (EPSILON.largest, RHO.largest) == (1_000 * NANO, 1_000 * PICO)
    table = np.array([[PICO // 2, 2 * PICO], [2 * PICO, PICO // 2]])
    assert RHO.of_pure(table).tolist() == [[NANO, 2 * NANO], [2 * NANO, NANO]]
    assert RHO.of_pure(np.zeros(0, np.int64)).dtype == np.int64


def test_rho_pays_for_the_largest_epsilon_that_does_not_cost_more():
    """E^2 / 8 for selections, e^2 / 2 for all others, exactly, one nano-epsilon more costs more."""
    for bought, times in ((RHO.of_selections, 8), (RHO.of_pure, 2)):
        for amount, e in zip(AMOUNTS, bought(np.array(AMOUNTS)).tolist(), strict=True):
            rho = Fraction(amount, PICO)
            assert Fraction(e, NANO) ** 2 / times <= rho < Fraction(e + 1, NANO) ** 2 / times
