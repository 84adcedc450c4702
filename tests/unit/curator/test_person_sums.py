"""Noisy sums over people: what is asked, what it costs, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

from psd.curator.person_sums import PersonSums
from psd.errors import BudgetError, InternalError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.count_noise import Statistic
from support.suggestions import RecordedSums

PERSONS = np.array([0, 0, 1, 4, 4, 4])
REGIONS = np.array([2, 0, 1, 3, 3, 1])
TABLES = (
    Statistic(name="records", rows=4, width=1, share=3),
    Statistic(name="people", rows=1, width=2),
)


def part(regions):
    """Half for each region of a person, and a long vector."""
    rows = np.unique(regions)
    return [(rows, np.full((len(rows), 1), 0.5)), (np.zeros(1, np.int64), np.array([[3.0, 4.0]]))]


def people(rho=10**12, sampler=None, persons=PERSONS, regions=REGIONS):
    sampler = RecordedSums() if sampler is None else sampler
    return PersonSums(persons, regions, budget=Budget(rho), sampler=sampler)


def test_sums_are_those_of_the_clipped_parts_with_noise_for_a_part_of_norm_1():
    """No person is answered like any number of them."""
    sampler, nobody = RecordedSums(), np.empty(0, np.int64)
    records, long = people(sampler=sampler).sums(part, TABLES, 1003)
    assert records.ravel().tolist() == [0.5, 1.0, 0.5, 0.5]
    assert long.ravel() == pytest.approx([3 * 0.6, 3 * 0.8], abs=1e-5)
    assert [ask.rho.tolist() for ask in sampler.asked] == [[752] * 4, [250] * 2]
    assert {ask.squared_sensitivity for ask in sampler.asked} == {2**40}
    answers = people(persons=nobody, regions=nobody).sums(part, TABLES, 1000)
    assert [answer.shape for answer in answers] == [(4, 1), (1, 2)]
    assert not any(answer.any() for answer in answers)


def test_more_than_is_left_is_refused_before_a_draw():
    sampler = RecordedSums()
    asked = people(1000, sampler)
    asked.sums(part, TABLES, 600)
    with pytest.raises(BudgetError):
        asked.sums(part, TABLES, 600)
    assert len(sampler.asked) == 2
    assert asked.rho == 400


def test_a_row_that_a_part_names_twice_is_added_once_and_no_part_changes_what_is_stored():
    def greedy(regions):
        return [(np.zeros(9, np.int64), np.full((9, 1), 1 / 3)), part(regions)[1]]

    def spoil(regions):
        regions[:] = 0
        return part(regions)

    assert people().sums(greedy, TABLES, 1000)[0][0, 0] == pytest.approx(1, abs=1e-5)
    asked = people()
    asked.sums(spoil, TABLES, 1000)
    assert asked.sums(part, TABLES, 1000)[0].ravel().tolist() == [0.5, 1.0, 0.5, 0.5]


def test_what_is_refused_and_what_is_a_defect():
    with pytest.raises(ParameterError, match="epsilon must be large enough"):
        people().sums(part, TABLES, 3)  # without a share for each statistic
    with pytest.raises(InternalError):
        people().sums(lambda regions: part(regions)[::-1], TABLES, 1000)  # of another width
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(people())
