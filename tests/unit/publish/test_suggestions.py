"""Weights from records: what is read, charged and stated."""

import pandas as pd
import pytest

import psd
from psd.errors import BudgetError, InputDataError, ParameterError
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.publish.suggestions import train_weights
from support.suggestions import CELLS, TRAIN, RecordedSums, city_release, visits

RELEASE = city_release()


def test_weights_state_what_they_cost():
    weights = train_weights(visits(), RELEASE, **TRAIN)
    assert (weights.epsilon, weights.delta, weights.max_contributions) == ("0.5", "1e-6", 4)
    assert (weights.release, weights.cells) == (RELEASE.digest, CELLS)
    assert weights.ledger is weights.charge is None


def test_all_of_rho_is_spent_on_one_question():
    from fractions import Fraction

    from psd.accounting import rho_of

    sampler = RecordedSums()
    train_weights(visits(), RELEASE, sampler=sampler, **TRAIN)
    assert [ask.true.size for ask in sampler.asked] == [21, 6]
    rho = rho_of(500_000_000, Fraction(1, 10**6))
    assert [set(ask.rho.tolist()) for ask in sampler.asked] == [{rho // 2}, {rho // 2}]


def test_without_noise_near_regions_score_higher():
    sampler = RecordedSums()
    weights = train_weights(visits(), RELEASE, sampler=sampler, **{**TRAIN, "epsilon": 100})
    near = [weight for name, weight in weights.weights.items() if name.startswith("nearness")]
    assert sum(near) > 0.5


def test_at_most_k_records_of_a_user_are_read():
    table = pd.concat([visits()] + [visits().tail(30)] * 3)
    asked = {}
    for k in (2, 3):
        sampler = RecordedSums()
        train_weights(table, RELEASE, sampler=sampler, max_contributions=k, **TRAIN)
        asked[k] = sampler.asked
    assert len(asked[2]) == len(asked[3]) == 2


@pytest.fixture
def account(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("users", 1, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    return Account(ledger, "users")


def test_the_charge_is_gaussian_and_comes_before_the_draw(account):
    class Late(RecordedSums):
        def draw(self, mechanism):
            assert len(account.ledger.state().charges) == 1
            return super().draw(mechanism)

    weights = train_weights(visits(), RELEASE, account=account, sampler=Late(), **TRAIN)
    (charge,) = account.ledger.state().charges.values()
    assert (charge.what, charge.id) == ("suggest", weights.charge)
    assert charge.loss.text.startswith("epsilon 0.5 and delta 1e-6")
    account.finish()


def test_more_than_the_budget_is_refused_before_reading(account):
    with pytest.raises(BudgetError):
        train_weights(visits(), RELEASE, account=account, **{**TRAIN, "epsilon": 3})
    assert not account.ledger.state().charges


def test_few_records_and_many_are_answered_alike():
    outside = visits().assign(lon=0.0)
    for table in (outside, visits().head(1), visits(2)):
        assert train_weights(table, RELEASE, **TRAIN).epsilon == "0.5"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"delta": "0.01"}, "delta must be above 0 and below 0.001"),
        ({"delta": 0}, "delta must be"),
        ({"delta": "x"}, "delta must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"max_contributions": "auto"}, "max_contributions must be a number"),
        ({"max_contributions": 0}, "max_contributions must be"),
        ({"cells": 3}, "cells must be between 5 and 100"),
        ({"user": None}, "user"),
    ],
)
def test_wrong_parameters_are_refused(change, told):
    with pytest.raises(ParameterError, match=told):
        train_weights(visits(), RELEASE, **{**TRAIN, **change})


def test_records_without_ids_are_refused():
    with pytest.raises(InputDataError):
        train_weights(visits().assign(id=None), RELEASE, **TRAIN)
