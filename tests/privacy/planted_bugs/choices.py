"""Planted bugs of private choices: rates, ties, charges, candidates, and what is printed."""

from __future__ import annotations

import dataclasses

import numpy as np

import psd_cli.output.choices as printing
from privacy.planted_bugs.bug import planted, replaced
from psd.choosing import choice
from psd.choosing.objectives.price import Price
from psd.choosing.objectives.price_map import PriceMap
from psd.choosing.objectives.sites import Sites
from psd.curator.curator import Curator
from psd.errors import InputDataError
from psd.ingest.sources import frame
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.space.catchments import Catchments
from psd.space.price_list import PriceList

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
    test=COMMAND + "test_no_message_about_candidates_quotes_a_record[False]",
    like="a refusal that quoted two equal ids of a file of records",
)
def candidates_are_read_before_they_are_refused():
    """Records that are named as candidates are read, and a message quotes one of their ids."""
    return replaced(printing, "local_files", lambda inputs: [])


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


@planted(
    test="tests/unit/choosing/objectives/test_price.py::"
    "test_a_price_earns_itself_times_the_bids_that_reach_it",
    like="bids as prices: the candidates are those of the rows",
)
def prices_from_the_bids():
    """Prices that no bid reaches are left out of the scores."""
    original = Price.scores

    def scores(self, tally, domain):
        revenue = original(self, tally, domain)
        return revenue[revenue > 0]

    return replaced(Price, "scores", scores)


@planted(
    test="tests/unit/space/test_price_list.py::test_a_bid_reaches_the_prices_up_to_it",
    like="a bid above the list that moves a score by more than the largest price",
)
def bids_above_the_list_left_out():
    """A bid above all prices reaches none of them."""
    original = PriceList.levels

    def levels(self, bids):
        reached = original(self, bids)
        reached[bids > 1.5 * float(self.price(len(self) - 1))] = 0
        return reached

    return replaced(PriceList, "levels", levels)


@planted(
    test="tests/unit/choosing/objectives/test_price_map.py::test_zones_of_cells_are_boxes",
    like="segments that overlap by a bin",
)
def zones_that_overlap():
    """A zone reaches one cell into the next one."""
    original = PriceMap._cells
    return replaced(
        PriceMap, "_cells", lambda self, first, stop: original(self, first, min(stop + 1, 4))
    )


@planted(
    test="tests/unit/ingest/test_bid_levels.py::test_no_value_of_a_bid_stops_a_reading",
    like="a refusal that tells whether a bid is a number",
)
def text_of_a_bid_refused():
    """A text in the column of bids stops the reading."""
    original = frame._bids

    def bids(column):
        if column.dtype.kind == "O" and "x" in column.tolist():
            raise InputDataError("bids must be numbers")
        return original(column)

    return replaced(frame, "_bids", bids)


@planted(
    test="tests/unit/space/test_catchments.py::test_no_calculation_warns_of_a_point[1e-300]",
    like="a warning of a library that only some records bring about",
)
def warning_about_a_point():
    """The distance of a record from a site overflows, and the calculation warns."""

    def contains(self, which, x, y):
        offset = (np.stack([x, y], axis=1) - self.centres[which]) / self.radii[which]
        return (offset * offset).sum(axis=1) <= 1

    return replaced(Catchments, "contains", contains)
