"""Planted bugs of losses in rho: sensitivities, conversions, and two measures in one budget."""

import math

from privacy.planted_bugs.bug import around, instead, like, planted, replaced
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import LossMeasure

RHO = "tests/privacy/test_concentrated.py::"
USERS = RHO + "test_a_user_of_many_slices_costs_rho_and_no_more"
COUNTS = "tests/unit/mechanisms/test_noisy_counts.py::"
CURRENCY = "tests/unit/privacy/test_loss.py::"
PAID = "tests/unit/publish/test_paid_tallies.py::test_what_was_found_in_rho"
CAP = "the bound of one slice taken for that of all, or the reverse"


def gaussian_counts_by(counts):
    return replaced("psd.mechanisms.sampler.GaussianMechanism", counts)


@planted(test=COUNTS + "test_the_mechanism_has_the_law_that_readers_are_told[discrete-gaussian]")
@like("a standard deviation where a variance is meant")
def sigma_for_its_square():
    """The noise has the parameter sigma in place of sigma^2."""

    def counts(true, rho, squared_sensitivity):
        root = math.isqrt(squared_sensitivity)
        return GaussianMechanism(true=true, rho=rho, squared_sensitivity=root)

    return gaussian_counts_by(counts)


@planted(test=USERS + "[False-three rows in three slices]", like=CAP)
@around("psd.publish.drawing.squared_sensitivity")
def k_squared_for_k_cap(sound, unit, scope, slices):
    """The squared sensitivity of users with one row in each slice is k^2, a waste of noise."""
    return max(sound(unit, scope, slices), unit.contributions**2)


@planted(test=USERS + "[False-one row in each slice]", like=CAP)
@instead("psd.publish.drawing.squared_sensitivity")
def cap_squared_for_k_cap(unit, scope, slices):
    """The squared sensitivity forgets that a user may be in every slice."""
    return (unit.max_per_slice or unit.contributions) ** 2


@planted(test=RHO + "test_a_user_whose_rows_are_heaped_in_one_slice_costs_less", like=CAP)
@around("psd.ingest.contribution_bounding.smallest_in_order")
def cap_of_users_and_not_of_slices(sound, order, users, of_slices, limits):
    """The noise is made for few rows of a user in a slice, and the rows are limited in all."""
    return sound(order, users, of_slices, (limits[0], limits[0]))


@planted(test=CURRENCY + "test_rho_pays_for_the_largest_epsilon_that_does_not_cost_more")
@like("the rho of a selection taken for that of any pure mechanism")
def pure_draws_at_an_eighth():
    """A pure mechanism of epsilon is charged epsilon^2 / 8, as a selection is."""
    return replaced("psd.privacy.loss.LossMeasure.of_pure", LossMeasure.of_selections)


@planted(test=USERS + "[False-one row]", like="costs of two measures in one sum")
def nano_epsilon_for_parts_of_rho():
    """Counts of a budget in rho get Laplace noise, whose parts of rho are read as epsilon."""

    def counts(true, rho, squared_sensitivity):
        sensitivity = CountNoise.gaussian(squared_sensitivity).sensitivity
        return LaplaceMechanism(true=true, epsilon=rho, sensitivity=sensitivity)

    return gaussian_counts_by(counts)


@planted(test=RHO + "test_epsilon_of_a_loss_in_rho_is_not_spent")
@like("costs of two measures in one sum")
@around("psd.curator.curator.Curator.__init__")
def epsilon_for_rho(original, self, *args, **options):
    """A budget with a delta has its epsilon for questions that are charged in rho."""
    original(self, *args, **options)
    self.loss = self._budget.loss.epsilon * 1_000
    self._budget._total = self.loss


@planted(test=PAID + "_is_paid_for_as_the_epsilon_of_its_draws[a bound]")
@like("rho that was spent, read as no epsilon")
def kept_tally_forgets_rho():
    """What a build paid in rho for a limit of records is not paid by releases of its tally."""
    return replaced("psd.privacy.budget.SELECTIONS", {})
