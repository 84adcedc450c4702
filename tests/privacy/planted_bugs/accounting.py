"""Planted bugs of the accounting: a rho whose draws lose more than the epsilon that is claimed."""

import math
from fractions import Fraction

from scipy.optimize import brentq
from scipy.special import ndtr

from privacy.planted_bugs.bug import instead, like, planted, replaced
from psd.accounting import PICO, selection_rho
from psd.privacy.loss import NANO

TESTS = "tests/unit/test_accounting.py::"


@planted(test=TESTS + "test_noise_of_the_rho_of_a_budget_keeps_it[1]")
@like("the analytic Gaussian (Balle and Wang 2018) with noise that is rounded or discrete")
@instead("psd.accounting.rho_of")
def continuous_multiplier(epsilon_nano: int, delta: Fraction):
    """The noise of integers has the scale that is right for real numbers: 4.2247 at (1, 1e-6)."""
    epsilon = epsilon_nano / NANO

    def excess(scale: float) -> float:
        above, below = 1 / (2 * scale) - epsilon * scale, -1 / (2 * scale) - epsilon * scale
        return float(ndtr(above) - math.exp(epsilon) * ndtr(below) - float(delta))

    return math.floor(PICO / (2 * brentq(excess, 0.1, 1e4, xtol=1e-12) ** 2))


@planted(test=TESTS + "test_randomised_response_reaches_the_rho_of_pure_epsilon[1]")
@like("the law of one mechanism taken for that of all")
def pure_charge_as_a_selection():
    """A pure epsilon counts epsilon^2 / 8 in rho, which holds for selections alone."""
    return replaced("psd.accounting.pure_rho", selection_rho)
