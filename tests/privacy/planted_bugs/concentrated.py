"""Planted bugs of losses in rho: sensitivities, conversions, and two currencies in one budget."""

from __future__ import annotations

import math

import psd.curator.curator
import psd.ingest.contribution_bounding
import psd.mechanisms.noisy_counts
import psd.privacy.budget
import psd.publish.series
from privacy.planted_bugs.bug import planted, replaced
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.currency import Currency

RHO = "tests/privacy/test_concentrated.py::"
USERS = RHO + "test_a_user_of_many_slices_costs_rho_and_no_more"
CAP = "the bound of one slice taken for that of all, or the reverse"


@planted(
    test="tests/unit/mechanisms/test_noisy_counts.py::"
    "test_the_mechanism_has_the_law_that_readers_are_told[discrete-gaussian]",
    like="a standard deviation where a variance is meant",
)
def sigma_for_its_square():
    """The noise has the parameter sigma in place of sigma^2."""

    def counts(noise, true, loss):
        root = math.isqrt(noise.squared_sensitivity)
        return GaussianMechanism(true=true, rho=loss, squared_sensitivity=root)

    mechanisms = {**psd.mechanisms.noisy_counts._MECHANISMS, "discrete-gaussian": counts}
    return replaced(psd.mechanisms.noisy_counts, "_MECHANISMS", mechanisms)


@planted(test=USERS + "[three rows in three slices]", like=CAP)
def k_squared_for_k_cap():
    """The squared sensitivity of users with one row in each slice is k^2, a waste of noise."""
    sound = psd.publish.series.squared_sensitivity

    def squared(unit, scope, slices):
        return max(sound(unit, scope, slices), unit.contributions**2)

    return replaced(psd.publish.series, "squared_sensitivity", squared)


@planted(test=USERS + "[one row in each slice]", like=CAP)
def cap_squared_for_k_cap():
    """The squared sensitivity forgets that a user may be in every slice."""

    def squared(unit, scope, slices):
        return (unit.max_per_slice or unit.contributions) ** 2

    return replaced(psd.publish.series, "squared_sensitivity", squared)


@planted(test=RHO + "test_a_user_whose_rows_are_heaped_in_one_slice_costs_less", like=CAP)
def cap_of_users_and_not_of_slices():
    """The noise is made for few rows of a user in a slice, and the rows are limited in all."""
    module = psd.ingest.contribution_bounding
    sound = module.smallest_in_order

    def smallest(order, users, of_slices, limits):
        return sound(order, users, of_slices, (limits[0], limits[0]))

    return replaced(module, "smallest_in_order", smallest)


@planted(
    test="tests/unit/privacy/test_currency.py::"
    "test_rho_pays_for_the_largest_epsilon_that_does_not_cost_more[2]",
    like="the rho of a selection taken for that of any pure mechanism",
)
def pure_draws_at_an_eighth():
    """A pure mechanism of epsilon is charged epsilon^2 / 8, as a selection is."""
    return replaced(Currency, "of_pure", Currency.of_selections)


@planted(test=USERS + "[one row]", like="costs of two currencies in one sum")
def nano_epsilon_for_parts_of_rho():
    """Counts of a budget in rho get Laplace noise, whose parts of rho are read as epsilon."""

    def counts(noise, true, loss):
        return LaplaceMechanism(true=true, epsilon=loss, sensitivity=noise.sensitivity)

    mechanisms = {**psd.mechanisms.noisy_counts._MECHANISMS, "discrete-gaussian": counts}
    return replaced(psd.mechanisms.noisy_counts, "_MECHANISMS", mechanisms)


@planted(
    test=RHO + "test_epsilon_of_a_loss_in_rho_is_not_spent",
    like="costs of two currencies in one sum",
)
def epsilon_for_rho():
    """A budget with a delta has its epsilon for questions that are charged in rho."""
    original = psd.curator.curator.Curator.__init__

    def started(self, *args, **options):
        original(self, *args, **options)
        self.epsilon = self._budget.loss.epsilon * 1_000
        self._budget._total = self.epsilon

    return replaced(psd.curator.curator.Curator, "__init__", started)


@planted(
    test="tests/unit/publish/test_paid_tallies.py::"
    "test_what_was_found_in_rho_is_paid_for_as_the_epsilon_of_its_draws[a bound]",
    like="rho that was spent, read as no epsilon",
)
def kept_tally_forgets_rho():
    """What a build paid in rho for a limit of records is not paid by releases of its tally."""
    return replaced(psd.privacy.budget, "SELECTIONS", {})
