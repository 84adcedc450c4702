"""Planted bugs of private choices: rates, ties, charges, candidates, and what is printed."""

import dataclasses

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, replaced
from privacy.planted_bugs.selection import asked_with
from psd.errors import InputDataError

OBJECTIVES = "tests/apps/choosing/objectives/test_objectives.py::"
LOSS = OBJECTIVES + "test_the_exact_loss_is_at_most_epsilon_and_almost_that"
UNIT = "tests/apps/choosing/objectives/"
CURATOR = "tests/unit/curator/test_curator.py::"
CHOICE = "tests/apps/choosing/test_choice.py::"
COMMAND = "tests/apps/choosing/test_choose_command.py::"


def mechanism_with(**changes):
    """Another mechanism than the one that the curator asks for."""
    return asked_with("choose", lambda mechanism, *_: dataclasses.replace(mechanism, **changes))


@planted(test=LOSS + "[sites-3]", like="the factor 2 that scores which may fall need")
def choice_with_the_rate_of_monotone_scores():
    """Distances to a target are weighted as if a record could only raise them."""
    return mechanism_with(is_monotone=True)


@planted(test=LOSS + "[sites-0]", like="the factor 2 where it is not needed: epsilon is wasted")
def choice_with_half_the_rate():
    """Numbers of records are weighted as if a record could lower them."""
    return mechanism_with(is_monotone=False)


@planted(test=LOSS + "[sites-0]", like="a tie that is broken by the order of the list")
@instead("psd.mechanisms.permute_and_flip.PermuteAndFlip.log_probability")
def choice_of_the_best(self, answer):
    """The true best candidate is the answer, the first one on ties."""
    return np.where(answer == self.scores.argmax(), 0.0, -1e3)


@planted(test=CURATOR + "test_a_choice_is_charged_to_the_whole_domain_before_it_is_drawn")
@like("an analyst who asks again for free")
@around("psd.curator.curator.Curator._charge")
def second_choice_not_charged(original, self, kind, cells, loss):
    """Only the first choice of a curator is charged to the points of the domain."""
    if kind not in [question.kind for question in self.questions]:
        original(self, kind, cells, loss)


@planted(test=CURATOR + "test_no_function_of_the_caller_is_given_a_score")
@like("a callback that keeps what it is given")
@instead("psd.curator.curator._unscored")
def choice_by_any_factory(mechanism, axes):
    """A function of the caller makes the mechanism of a choice, and sees the scores."""
    return mechanism


@planted(test=CURATOR + "test_cells_are_of_one_layer_from_the_check_to_the_draw")
@like("a fact that is checked and read again when it is used")
@instead("psd.curator.curator._own_copy")
def cells_of_the_caller(cells, *values):
    """The curator copies the numbers, and keeps the cells that the caller made."""
    return cells, [np.array(np.broadcast_to(value, cells.nodes.shape)) for value in values]


@planted(test=CURATOR + "test_a_cut_is_of_the_cells_that_were_checked[1]")
@like("a fact that is checked and read again when it is used")
@instead("psd.curator.curator.Curator.cut")
def cells_of_the_caller_are_cut(self, cells, lines=None, /, *, x=None, y=None):
    """A cut asks the caller again which cells it is of, after they were checked."""
    growing, points = self._layer_of(cells)
    cut = growing.cut(cells, lines, x=x, y=y)
    points.cut(cut)
    return growing.cells(cut.child[cut.child >= 0])


@planted(test=CHOICE + "test_candidates_from_the_records_are_refused")
@like("places of visits taken as sites")
def candidates_from_the_records():
    """The file of records may be the file of candidates."""
    return replaced("psd.apps.choosing.choice.refuse_record_files", lambda paths, inputs: None)


@planted(test=COMMAND + "test_no_message_about_candidates_quotes_a_record[False]")
@like("a refusal that quoted two equal ids of a file of records")
def candidates_are_read_before_they_are_refused():
    """Records that are named as candidates are read, and a message quotes one of their ids."""
    return replaced("psd_cli.apps.choosing.local_files", lambda inputs: [])


@planted(test=OBJECTIVES + "test_a_record_moves_no_score_further_than_it_says[sites-0]")
@like("a sensitivity stated too small")
@around("psd.apps.choosing.objectives.sites.Sites.scores")
def overlap_counted_twice(original, self, tally, domain):
    """A record counts twice in each catchment."""
    return 2 * original(self, tally, domain)


@planted(test=COMMAND + "test_a_choice_of_other_records_prints_the_same_but_for_the_choice")
@like("the number of records of the site that won")
@around("psd_cli.apps.choosing.show_notes")
def score_printed(original, choice, unit):
    """What the notes say depends on the chosen candidate."""
    return [*original(choice, unit), f"score of {choice.picks[0]}"]


@planted(test=UNIT + "test_price.py::test_a_price_earns_itself_times_the_bids_that_reach_it")
@like("bids as prices: the candidates are those of the rows")
@around("psd.apps.choosing.objectives.price.Price.scores")
def prices_from_the_bids(original, self, tally, domain):
    """Prices that no bid reaches are left out of the scores."""
    revenue = original(self, tally, domain)
    return revenue[revenue > 0]


@planted(test="tests/apps/choosing/test_price_list.py::test_a_bid_reaches_the_prices_up_to_it")
@like("a bid above the list that moves a score by more than the largest price")
@around("psd.apps.choosing.files.PriceList.levels")
def bids_above_the_list_left_out(original, self, bids):
    """A bid above all prices reaches none of them."""
    reached = original(self, bids)
    reached[bids > 1.5 * float(self.price(len(self) - 1))] = 0
    return reached


@planted(test=UNIT + "test_price_map.py::test_zones_of_cells_are_boxes")
@like("segments that overlap by a bin")
@around("psd.apps.choosing.objectives.price_map.PriceMap._cells")
def zones_that_overlap(original, self, first, stop):
    """A zone reaches one cell into the next one."""
    return original(self, first, min(stop + 1, 4))


@planted(test="tests/apps/choosing/test_bid_levels.py::test_no_value_of_a_bid_stops_a_reading")
@like("a refusal that tells whether a bid is a number")
@around("psd.ingest.sources.frame._bids")
def text_of_a_bid_refused(original, column):
    """A text in the column of bids stops the reading."""
    if column.dtype.kind == "O" and "x" in column.tolist():
        raise InputDataError("bids must be numbers")
    return original(column)


@planted(
    test="tests/apps/choosing/test_candidate_areas.py::test_no_calculation_warns_of_a_point[1e-300]"
)
@like("a warning of a library that only some records bring about")
@instead("psd.apps.choosing.candidate_areas.CandidateAreas.contains")
def warning_about_a_point(self, which, x, y):
    """The distance of a record from a site overflows, and the calculation warns."""
    offset = (np.stack([x, y], axis=1) - self.centres[which]) / self.radii[which]
    return (offset * offset).sum(axis=1) <= 1


@planted(
    test="tests/apps/choosing/test_catchment_counts.py::"
    "test_circles_go_on_beyond_longitude_180[lattice0]"
)
@like("a record that adds 2 to a score whose sensitivity is 1")
@around("psd.apps.choosing.candidate_areas.CandidateAreas.unrolled")
def circles_counted_twice(original, self):
    """The second circle of a candidate across longitude 180 is not a turn away."""
    every, owner = original(self)
    return dataclasses.replace(every, centres=self.centres[owner]), owner
