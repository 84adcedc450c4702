"""Planted bugs of the mechanisms of choices: rates, ties, underflow, zones that overlap."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import numpy as np

from privacy.planted_bugs.bug import planted, replaced
from psd.mechanisms import permute_and_flip, price_maps
from psd.mechanisms.exponential_tables import ExponentialTable
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.privacy.zone_layouts import Runs

LOSS = "tests/privacy/test_choice_loss.py::"
LISTS = "tests/statistical/test_permute_and_flip.py::"
MAPS = "tests/statistical/test_price_maps.py::"
FACTOR = "a wrong factor in the exponential mechanism"


@contextmanager
def rates_as(is_monotone):
    """Rates of lists and of maps as if scores were monotone, or not, whatever is said."""
    original = permute_and_flip.choice_rate

    def choice_rate(epsilon, sensitivity, said):
        return original(epsilon, sensitivity, is_monotone)

    with ExitStack() as stack:
        for module in (permute_and_flip, price_maps):
            stack.enter_context(replaced(module, "choice_rate", choice_rate))
        yield


@planted(
    test=LOSS + "test_scores_that_may_fall_cost_at_most_epsilon",
    like="the factor 2 of scores that are not monotone, such as distances to a target",
)
def list_rate_of_monotone_scores():
    """Scores that may fall with a unit more have the rate of monotone ones."""
    return rates_as(True)


@planted(test=LOSS + "test_another_bid_costs_at_most_epsilon_and_reaches_it", like=FACTOR)
def list_rate_halved():
    """Monotone scores have half their rate, so half of epsilon is wasted."""
    return rates_as(False)


@planted(test=MAPS + "test_law_of_scores_that_are_not_monotone", like=FACTOR)
def map_rate_of_monotone_scores():
    """Maps whose scores may fall are drawn at the rate of monotone ones."""
    return rates_as(True)


@planted(test=MAPS + "test_law[1000000000-runs]", like=FACTOR)
def map_rate_halved():
    """Maps of monotone scores are drawn at half their rate."""
    return rates_as(False)


@planted(
    test=LISTS + "test_ties_are_broken_by_chance",
    like="a tie that the order of the candidates breaks",
)
def list_tie_to_the_first():
    """Among the true coins, the first one of the best candidates wins."""
    original = PermuteAndFlip.sample

    def sample(self):
        chosen = original(self)
        best = self.scores == self.scores.max()
        return np.flatnonzero(best)[:1] if best[chosen[0]] else chosen

    return replaced(PermuteAndFlip, "sample", sample)


@planted(
    test="tests/unit/mechanisms/test_price_maps.py::test_a_far_map_is_drawn_when_its_turn_comes",
    like="float weights, 0 from about 745 units below the best",
)
def map_weights_underflow():
    """Weights below 2**-60 of the best are 0, so that a far map rules a data set out."""
    original = ExponentialTable.__init__

    def made(self, numerator, denominator, bits):
        original(self, numerator, denominator, bits)
        self.error = 0

    return replaced(ExponentialTable, "__init__", made)


@planted(
    test="tests/unit/privacy/test_zone_maps.py"
    "::test_the_recursion_gives_each_map_once[Runs(bins=5)-3]",
    like="an off-by-one at the end of a range, which counts a bidder twice",
)
def map_zones_overlap():
    """The last zone begins one bin before the end of the others, so that zones overlap."""

    def pairs(self, state):
        k, first, stop = state
        cuts = range(first + k - 1, stop)
        return [((k - 1, first, cut), (1, max(first, cut - 1), stop)) for cut in cuts]

    return replaced(Runs, "pairs", pairs)
