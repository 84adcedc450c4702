"""Planted bugs of private choices: rates, ties, charges, candidates, and what is printed."""

from __future__ import annotations

import dataclasses

import numpy as np

import psd_cli.output.choices as printing
from privacy.planted_bugs.bug import planted, replaced
from psd.choosing import choice
from psd.choosing.objectives.sites import Sites
from psd.curator.curator import Curator
from psd.mechanisms.permute_and_flip import PermuteAndFlip

LOSS = "tests/contract/test_objectives.py::test_the_exact_loss_is_at_most_epsilon_and_almost_that"
CHOICE = "tests/unit/choosing/test_choice.py::"
COMMAND = "tests/cli/test_choose.py::"


def mechanism_with(**changes):
    """Another mechanism than the one that the curator asks for."""
    original = Curator.choose

    def choose(self, cells, objective, epsilon):
        class Other:
            def __init__(self, sampler):
                self.sampler = sampler

            def draw(self, mechanism):
                return self.sampler.draw(dataclasses.replace(mechanism, **changes))

        sampler = self._sampler
        self._sampler = Other(sampler)
        try:
            return original(self, cells, objective, epsilon)
        finally:
            self._sampler = sampler

    return replaced(Curator, "choose", choose)


@planted(test=LOSS + "[sites-3]", like="the factor 2 that scores which may fall need")
def choice_with_the_rate_of_monotone_scores():
    """Distances to a target are weighted as if a record could only raise them."""
    return mechanism_with(is_monotone=True)


@planted(test=LOSS + "[sites-0]", like="the factor 2 where it is not needed: epsilon is wasted")
def choice_with_half_the_rate():
    """Numbers of records are weighted as if a record could lower them."""
    return mechanism_with(is_monotone=False)


@planted(test=LOSS + "[sites-0]", like="a tie that is broken by the order of the list")
def choice_of_the_best():
    """The true best candidate is the answer, the first one on ties."""
    return replaced(
        PermuteAndFlip,
        "log_probability",
        lambda self, answer: np.where(answer == self.scores.argmax(), 0.0, -1e3),
    )


@planted(
    test="tests/unit/curator/test_curator.py::"
    "test_a_choice_is_charged_to_the_whole_domain_before_it_is_drawn",
    like="an analyst who asks again for free",
)
def second_choice_not_charged():
    """Only the first choice of a curator is charged to the points of the domain."""
    original = Curator._charge

    def charge(self, kind, cells, nano):
        if kind not in [question.kind for question in self.questions]:
            original(self, kind, cells, nano)

    return replaced(Curator, "_charge", charge)


@planted(
    test=CHOICE + "test_candidates_from_the_records_are_refused",
    like="places of visits taken as sites",
)
def candidates_from_the_records():
    """The file of records may be the file of candidates."""
    return replaced(choice, "refuse_record_files", lambda paths, inputs: None)


@planted(
    test="tests/contract/test_objectives.py::"
    "test_a_record_moves_no_score_further_than_it_says[sites-0]",
    like="a sensitivity stated too small",
)
def overlap_counted_twice():
    """A record counts twice in each catchment."""
    original = Sites.scores
    return replaced(Sites, "scores", lambda self, tally, domain: 2 * original(self, tally, domain))


@planted(
    test=COMMAND + "test_a_choice_of_other_records_prints_the_same_but_for_the_choice",
    like="the number of records of the site that won",
)
def score_printed():
    """What the notes say depends on the chosen candidate."""
    original = printing.show_notes

    def show_notes(choice, unit):
        return [*original(choice, unit), f"score of {choice.picks[0]}"]

    return replaced(printing, "show_notes", show_notes)
