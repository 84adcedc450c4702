"""A choice for one price: what is asked of the curator, charged, refused and stated."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from psd.apps.choosing import CandidateAreas, Sites, choose, select
from psd.apps.choosing import selection as module
from psd.apps.choosing.choice import Choice
from psd.errors import BudgetError, InputDataError, LedgerError, ParameterError
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.testing import SeededSampler
from support.tables import refuses

TABLE = pd.DataFrame(
    {
        "x": [2.0, 2, 2, 3, 4.5, 4.5, 8, 8, 8, 8],
        "y": [2.0, 2, 2, 2, 2, 2, 8, 8, 8, 8],
        "id": list("aaabcdefgh"),
    }
)
PLACES = CandidateAreas.around(["a", "b", "c"], [[2, 2], [4.6, 2], [8, 8]], 2, "EPSG:3857")
SITES = Sites(catchments=PLACES)


class Best:
    """The best candidate, the first one if there are several; mechanisms are noted."""

    def __init__(self):
        self.mechanisms = []

    def draw(self, mechanism):
        self.mechanisms.append(mechanism)
        return np.array([mechanism.scores.argmax()])

    @property
    def asked(self):
        return [
            (m.scores.tolist(), m.epsilon, m.sensitivity, m.is_monotone) for m in self.mechanisms
        ]


@pytest.fixture
def account(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("rows", 10)
    ledger.register("users", 10, unit="user", columns=Columns(user="id"))
    return Account(ledger, "rows")


def test_one_draw_of_the_whole_epsilon_and_one_charge(account):
    sampler = Best()
    choice = choose(TABLE, SITES, epsilon="0.5", account=account, sampler=sampler)
    assert sampler.asked == [([4, 3, 4], 500_000_000, 1, True)]
    assert choice.picks == ({"rank": 1, "id": "a"},)
    (charge,) = account.ledger.state().charges.values()
    assert (charge.what, charge.loss.epsilon) == ("choose site", 500_000_000)


def test_several_draws_share_epsilon_and_are_charged_together(account):
    sampler, sites = Best(), Sites(catchments=PLACES, best=3, cover=True)
    choice = choose(TABLE, sites, epsilon=1, account=account, sampler=sampler)
    assert sampler.asked == [
        ([4, 3, 4], 333_333_333, 1, True),
        ([2, 4], 333_333_333, 1, True),
        ([2], 333_333_333, 1, True),
    ]
    assert [pick["id"] for pick in choice.picks] == ["a", "c", "b"]
    assert account.left == 9 * 10**9
    assert choice.draw_epsilon == Decimal("0.333333333")


def test_rows_of_users_are_bounded_among_those_in_the_domain_or_users_are_counted(account):
    sampler, how = Best(), {"epsilon": 1, "account": Account(account.ledger, "users"), "user": "id"}
    choose(TABLE, SITES, sampler=sampler, max_contributions=2, **how)
    assert sampler.asked == [([3, 3, 4], 10**9, 2, True)]
    sampler = Best()
    choice = choose(TABLE, SITES, sampler=sampler, count="users", **how)
    ((scores, _, sensitivity, _),) = sampler.asked
    assert ([score / sensitivity for score in scores], sensitivity) == ([2, 3, 4], 720_720)
    assert choice.mean_shortfall == pytest.approx(math.log(3))
    with pytest.raises(ParameterError, match="distances to a target"):
        choose(TABLE, Sites(catchments=PLACES, target=3), count="users", **how)


def test_a_target_has_half_the_rate(account):
    sampler, sites = Best(), Sites(catchments=PLACES, target=3)
    choice = choose(TABLE, sites, epsilon=1, account=account, sampler=sampler)
    assert sampler.asked == [([-1, 0, -1], 10**9, 1, False)]
    assert choice.score_resolution == 2
    assert choice.mean_shortfall == pytest.approx(2 * math.log(3))
    assert choice.likely_shortfall == pytest.approx(2 * (math.log(3) + 3))
    # What a liar gains.
    numbers = {"score_resolution": 1.0, "mean_shortfall": 1.0, "likely_shortfall": 1.0}
    epsilon, public = Decimal("0.7"), {"draws": 1, "picks": (), "candidates": 3, "guarantee": ""}
    choice = Choice(epsilon=epsilon, draw_epsilon=epsilon, **public, **numbers)
    assert choice.liar_gain() == pytest.approx(1.0138, abs=5e-5)
    assert choice.liar_gain(7) == pytest.approx(math.exp(4.9) - 1)


def test_a_domain_without_a_record_is_answered_and_paid_like_any_other(account):
    for spent, table in enumerate((TABLE[:0], TABLE.assign(x=500.0)), 1):
        choice = choose(table, SITES, epsilon=1, account=account)
        assert choice.picks[0]["id"] in ("a", "b", "c")
        assert account.left == (10 - spent) * 10**9
    # It states public numbers alone.
    how = {"epsilon": 1, "account": account}
    first, second = (choose(t, SITES, sampler=Best(), **how) for t in (TABLE, TABLE[:8]))
    assert first.picks == ({"rank": 1, "id": "a"},)
    assert first == second


def test_every_choice_has_its_price_until_all_is_spent(account, tmp_path):
    TABLE.to_csv(tmp_path / "points.csv", index=False)
    for _ in range(4):
        choose(tmp_path / "points.csv", SITES, epsilon="2.5", account=account)
    with pytest.raises(BudgetError):
        choose(tmp_path / "points.csv", SITES, epsilon="0.1", account=account)
    far = Sites(catchments=CandidateAreas.around(["a", "b"], [[90, 90], [91, 91]], 2, "EPSG:3857"))
    choose(tmp_path / "points.csv", far, epsilon=10, account=account)  # disjoint points


def test_what_is_refused_costs_nothing(account, subtests):
    for arguments, kind in (
        ({"epsilon": 0}, ParameterError),
        ({"epsilon": "-1"}, ParameterError),
        ({"epsilon": "1e-9", "objective": Sites(catchments=PLACES, best=2)}, ParameterError),
        ({"max_contributions": 2}, ParameterError),
        ({"user": "id", "max_contributions": 2}, LedgerError),
        ({"user": "id", "max_contributions": "auto"}, ParameterError),
        ({"data": "missing.csv"}, InputDataError),
        ({"objective": Sites}, ParameterError),
        ({"objective": "site"}, ParameterError),
        ({"account": None}, ParameterError),
        ({"sampler": SeededSampler(1)}, ParameterError),
    ):
        given = {"data": TABLE, "objective": SITES, "epsilon": 1, "account": account} | arguments
        with subtests.test(arguments=arguments), pytest.raises(kind):
            choose(given.pop("data"), given.pop("objective"), **given)
    assert account.left == 10**10


def test_candidates_from_the_records_are_refused(account, tmp_path):
    path = tmp_path / "points.csv"
    TABLE.to_csv(path, index=False)
    with pytest.raises(ParameterError, match="must not be an input of records"):
        choose(path, Sites(catchments=PLACES, files=(str(path),)), epsilon=1, account=account)
    choose(path, SITES, epsilon=1, account=account)
    with pytest.raises(LedgerError):  # charged for before, and now named as public
        choose(TABLE, Sites(catchments=PLACES, files=(str(path),)), epsilon=1, account=account)


# `select`: answers, and refusals that show no score


GOOD = {"epsilon": 1, "sensitivity": 1}


def test_the_arguments_reach_the_mechanism(monkeypatch):
    made = []

    class Mechanism:
        def __init__(self, **arguments):
            made.append(arguments)

        def sample(self):
            return np.array([2])

    monkeypatch.setattr(module, "PermuteAndFlip", Mechanism)
    assert select([4, 5, 6], epsilon="0.25", sensitivity=9, is_monotone=True) == 2
    assert select([4, 5, 6], epsilon=1, sensitivity=1) == 2
    assert [m["scores"].tolist() for m in made] == [[4, 5, 6]] * 2
    given = [(m["epsilon"], m["sensitivity"], m["is_monotone"]) for m in made]
    assert given == [(250_000_000, 9, True), (10**9, 1, False)]


def test_lists_and_arrays_of_integers_are_scores():
    for scores in ([7], (1, 2), np.array([3, 4], np.uint8), np.array([2**63 - 1, -(2**63)])):
        assert select(scores, **GOOD) in range(len(scores))
        assert type(select(scores, **GOOD)) is int


def test_what_is_no_list_of_integers_is_refused(subtests):
    lists = ([], [[77, 78]], 77, [[77], [78, 79]], np.empty((0, 2), int))
    values = ([77.5], [True], ["77"], [None], [2**70], [float("nan")], np.array([2**63], "u8"))
    for scores, words in (
        *((scores, "one list of at least one number") for scores in lists),
        *((scores, "integers of at most 64 bits") for scores in values),
    ):
        with subtests.test(scores=scores):
            with pytest.raises(ParameterError, match=words) as refused:
                select(scores, **GOOD)
            assert "77" not in str(refused.value)


def test_arguments_out_of_range_are_refused(subtests):
    wrong = {
        "epsilon": (0, -1, 1_001, "x", float("nan"), 1e-10),
        "sensitivity": (0, -1, 2**32 + 1, 1.5, True, "many"),
        "is_monotone": (1, "yes", None),
    }
    rows = [({name: value}, f"^{name} must") for name in wrong for value in wrong[name]]
    given = {"scores": [1, 2], **GOOD}
    refuses(subtests, lambda **more: select(**{**given, **more}), rows, ParameterError)
