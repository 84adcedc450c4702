"""Planted bugs of the mechanisms of choices: rates, ties, underflow, zones that overlap."""

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, together

LOSS = "tests/privacy/test_choice_loss.py::"
LISTS = "tests/apps/choosing/test_permute_and_flip.py::"
UNIT = "tests/unit/"
FACTOR = "a wrong factor in the exponential mechanism"


def rates_as(is_monotone):
    """Rates of lists and of maps as if scores were monotone, or not, whatever is said."""

    def choice_rate(original, epsilon, sensitivity, said):
        return original(epsilon, sensitivity, is_monotone)

    modules = ("permute_and_flip", "price_maps")
    targets = (f"psd.mechanisms.{module}.choice_rate" for module in modules)
    return together(*(around(target)(choice_rate)() for target in targets))


@planted(test=LOSS + "test_scores_that_may_fall_cost_at_most_epsilon[1]")
@like("the factor 2 of scores that are not monotone, such as distances to a target")
def list_rate_of_monotone_scores():
    """Scores that may fall with a unit more have the rate of monotone ones."""
    return rates_as(True)


@planted(test=LOSS + "test_another_of_two_bids_costs_nearly_epsilon", like=FACTOR)
def list_rate_halved():
    """Monotone scores have half their rate, so half of epsilon is wasted."""
    return rates_as(False)


@planted(test=LOSS + "test_maps_are_weighted_at_their_rate[False]", like=FACTOR)
def map_rate_of_monotone_scores():
    """Maps whose scores may fall are drawn at the rate of monotone ones."""
    return rates_as(True)


@planted(test=LOSS + "test_maps_are_weighted_at_their_rate[True]", like=FACTOR)
def map_rate_halved():
    """Maps of monotone scores are drawn at half their rate."""
    return rates_as(False)


@planted(test=LISTS + "test_ties_are_broken_by_chance")
@like("a tie that the order of the candidates breaks")
@around("psd.mechanisms.permute_and_flip.PermuteAndFlip.sample")
def list_tie_to_the_first(original, self):
    """Among the true coins, the first one of the best candidates wins."""
    chosen = original(self)
    best = self.scores == self.scores.max()
    return np.flatnonzero(best)[:1] if best[chosen[0]] else chosen


@planted(test=UNIT + "mechanisms/test_price_maps.py::test_a_far_map_is_drawn_when_its_turn_comes")
@like("float weights, 0 from about 745 units below the best")
@around("psd.mechanisms.exponential_tables.ExponentialTable.__init__")
def map_weights_underflow(original, self, numerator, denominator, bits):
    """Weights below 2**-60 of the best are 0, so that a far map rules a data set out."""
    original(self, numerator, denominator, bits)
    self.error = 0


@planted(
    test="tests/unit/mechanisms/test_zone_layouts.py::test_the_recursion_gives_each_map_once[Runs(bins=5)]"
)
@like("an off-by-one at the end of a range, which counts a bidder twice")
@instead("psd.mechanisms.choice_laws.Runs.pairs")
def map_zones_overlap(self, state):
    """The last zone begins one bin before the end of the others, so that zones overlap."""
    k, first, stop = state
    cuts = range(first + k - 1, stop)
    return [((k - 1, first, cut), (1, max(first, cut - 1), stop)) for cut in cuts]
