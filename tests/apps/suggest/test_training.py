"""Weights from records: what is read, charged and stated."""

from fractions import Fraction

import pandas as pd
import pytest

import psd
from psd.accounting import rho_of
from psd.apps.suggest.training import train_factors, train_weights
from psd.errors import BudgetError, InputDataError, ParameterError
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.testing import SeededSampler
from support.suggestions import CELLS, TRAIN, RecordedSums, city_release, visits

RELEASE = city_release()


def train(data=None, **more):
    return train_weights(visits() if data is None else data, RELEASE, **{**TRAIN, **more})


def test_weights_state_what_they_cost():
    weights = train()
    assert (weights.epsilon, weights.delta, weights.max_contributions) == ("0.5", "1e-6", 4)
    assert (weights.release, weights.cells) == (RELEASE.digest, CELLS)
    assert weights.ledger is weights.charge is None
    for table in (visits().assign(lon=0.0), visits().head(1), visits(2)):
        assert train(table).epsilon == "0.5"


def test_all_of_rho_is_spent_on_one_question_whatever_k():
    rho = rho_of(500_000_000, Fraction(1, 10**6))
    table = pd.concat([visits()] + [visits().tail(30)] * 3)
    for data, k in ((visits(), 4), (table, 2), (table, 3)):
        sampler = RecordedSums()
        train(data, sampler=sampler, max_contributions=k)
        assert [ask.true.size for ask in sampler.asked] == [21, 6]
        assert [set(ask.rho.tolist()) for ask in sampler.asked] == [{rho // 2}, {rho // 2}]
    # Without noise near regions score higher.
    weights = train(sampler=RecordedSums(), epsilon=100).weights
    assert sum(weight for name, weight in weights.items() if name.startswith("nearness")) > 0.5


@pytest.fixture
def account(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("users", 1, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    return Account(ledger, "users")


def test_the_charge_is_gaussian_and_comes_before_the_draw(account):
    with pytest.raises(BudgetError):
        train("missing.csv", account=account, epsilon=3)  # refused before reading
    assert not account.ledger.state().charges

    class Late(RecordedSums):
        def draw(self, mechanism):
            assert len(account.ledger.state().charges) == 1
            return super().draw(mechanism)

    weights = train(account=account, sampler=Late())
    (charge,) = account.ledger.state().charges.values()
    assert (charge.what, charge.id) == ("suggest", weights.charge)
    assert charge.loss.text.startswith("epsilon 0.5 and delta 1e-6")
    account.finish()


def test_wrong_parameters_and_records_without_ids_are_refused(subtests):
    for change, words in (
        ({"delta": "0.01"}, "delta must be above 0 and below 0.001"),
        ({"delta": 0}, "delta must be"),
        ({"delta": "x"}, "delta must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"max_contributions": "auto"}, "max_contributions must be a number"),
        ({"max_contributions": 0}, "max_contributions must be"),
        ({"cells": 3}, "cells must be between 5 and 100"),
        ({"user": None}, "user"),
    ):
        with subtests.test(change=change), pytest.raises(ParameterError, match=words):
            train(**change)
    with pytest.raises(InputDataError):
        train(visits().assign(id=None))


def test_noise_of_a_seed_is_in_no_file_of_weights():
    for learn in (train_weights, train_factors):
        with pytest.raises(ParameterError, match="sampler must be left out, got one with a seed"):
            learn(visits(), RELEASE, sampler=SeededSampler(7), **TRAIN)
