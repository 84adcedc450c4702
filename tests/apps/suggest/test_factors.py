"""Regions with factors of their own."""

import numpy as np
import pytest

from psd.apps.suggest.models import FactorModel, learn_factors
from psd.curator.person_sums import PersonSums
from psd.privacy.budget import Budget
from support.suggestions import RecordedSums


def two_groups(people=400):
    """People who go to even regions alone, or to odd ones."""
    draw = np.random.default_rng(3)
    regions = 2 * draw.integers(0, 6, (people, 4)) + np.arange(people)[:, None] % 2
    return np.repeat(np.arange(people), 4), regions.ravel()


def test_factors_find_who_goes_where():
    budget = Budget(10**12)
    people = PersonSums(*two_groups(), budget=budget, sampler=RecordedSums())
    model = learn_factors(people, 12, size=3)
    assert budget.left == 0
    best = np.argsort(-model.scores(np.array([2, 4])))[:6]
    assert sorted(best.tolist()) == [0, 2, 4, 6, 8, 10]
    sampler = RecordedSums()
    people = PersonSums(*two_groups(8), budget=Budget(400), sampler=sampler)
    learn_factors(people, 12, size=3, steps=2)
    asked = [(ask.true.size, int(ask.rho[0])) for ask in sampler.asked]
    assert asked == [(6, 4), (72, 16), (36, 180)] * 2
    model = FactorModel(factors=np.random.default_rng(0).normal(size=(9, 4)))
    (_, total), (rows, outer), (same, right) = model.person_part(np.array([7, 2, 2]))
    assert rows.tolist() == same.tolist() == [2, 7]
    assert np.linalg.norm(right, axis=1) == pytest.approx([1, 1])
    assert outer == pytest.approx(np.repeat(total, 2, 0))
