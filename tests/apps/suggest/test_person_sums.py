"""What a person can change in weights and factors: sums by one clipped part, and nothing else.

Noise is fixed here: the law of the draws is tested with their mechanism. Two things are shown. The
sums that get noise differ by at most one part of norm 1 between data sets that differ in one
person, and what is published is a function of the noisy sums.
"""

from fractions import Fraction

import numpy as np
import pytest

from psd.accounting import rho_of
from psd.apps.suggest.models import learn_factors, write_weights
from psd.apps.suggest.training import train_weights
from psd.curator.person_sums import PersonSums
from psd.privacy.budget import Budget
from psd.testing import RecordingSampler
from support.suggestions import TRAIN, GivenSums, city_release, visits

RELEASE = city_release()
VISITS = visits()
PERSONS = VISITS["id"].unique()


# Answers are fixed, so that later questions are the same.


def asked_for_weights(table):
    """Questions of a training."""
    sampler = RecordingSampler(GivenSums())
    train_weights(table, RELEASE, sampler=sampler, max_contributions=50, **TRAIN)
    return [draw.mechanism for draw in sampler.draws]


def asked_for_factors(table):
    """Questions of the general model."""
    sampler = RecordingSampler(GivenSums())
    regions = (table["lon"] * 7 % 5).astype(np.int64) * 4 + (table["lat"] * 9 % 4).astype(np.int64)
    order = np.argsort(table["id"].to_numpy(), kind="stable")
    persons = np.unique(table["id"], return_inverse=True)[1][order]
    budget = Budget(10**12)
    people = PersonSums(persons, regions.to_numpy()[order], budget=budget, sampler=sampler)
    learn_factors(people, 20, size=3, steps=2)
    return [draw.mechanism for draw in sampler.draws]


@pytest.mark.parametrize("ask", [asked_for_weights, asked_for_factors])
@pytest.mark.parametrize("person", [PERSONS[0], PERSONS[-1]])
def test_a_person_changes_each_sum_by_at_most_one_part(ask, person):
    with_person, without = ask(VISITS), ask(VISITS[VISITS["id"] != person])
    assert len(with_person) == len(without)
    for first, second in zip(with_person, without, strict=True):
        change = (first.true - second.true).tolist()
        assert 0 < sum(number * number for number in change) <= 2**40
        assert first.squared_sensitivity == second.squared_sensitivity == 2**40
        assert first.rho.tolist() == second.rho.tolist()


@pytest.mark.parametrize("ask", [asked_for_weights, asked_for_factors])
def test_all_questions_together_cost_at_most_rho(ask):
    rhos = [set(question.rho.tolist()) for question in ask(VISITS)]
    assert all(len(rho) == 1 for rho in rhos)
    limit = rho_of(500_000_000, Fraction(1, 10**6)) if ask is asked_for_weights else 10**12
    assert 0.99 * limit < sum(map(sum, rhos)) <= limit


def test_the_file_is_a_function_of_the_noisy_sums(tmp_path):
    others = VISITS.assign(lon=126.9, id=VISITS["id"].str.cat(["x"] * len(VISITS)))
    for name, table in (("a", VISITS), ("b", others), ("c", VISITS.head(1))):
        weights = train_weights(table, RELEASE, sampler=GivenSums(), **TRAIN)
        write_weights(weights, tmp_path / name)
    first, *rest = ((tmp_path / name).read_bytes() for name in "abc")
    assert rest == [first, first]
