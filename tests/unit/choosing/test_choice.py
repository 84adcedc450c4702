"""A choice for one price: what is asked of the curator, charged, refused and stated."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from psd.choosing import Catchments, Sites, choose
from psd.choosing.choice import Choice
from psd.errors import BudgetError, InputDataError, LedgerError, ParameterError
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.testing import SeededSampler

TABLE = pd.DataFrame(
    {
        "x": [2.0, 2, 2, 3, 4.5, 4.5, 8, 8, 8, 8],
        "y": [2.0, 2, 2, 2, 2, 2, 8, 8, 8, 8],
        "id": list("aaabcdefgh"),
    }
)
PLACES = Catchments.around(["a", "b", "c"], [[2, 2], [4.6, 2], [8, 8]], 2, "EPSG:3857")
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


def of_users(account):
    return Account(account.ledger, "users")


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


def test_rows_of_users_are_bounded_among_those_in_the_domain(account):
    sampler, user = Best(), {"user": "id", "max_contributions": 2}
    choose(TABLE, SITES, epsilon=1, account=of_users(account), sampler=sampler, **user)
    assert sampler.asked == [([3, 3, 4], 10**9, 2, True)]


def test_users_are_counted_as_users(account):
    sampler, user = Best(), {"user": "id", "count": "users"}
    choice = choose(TABLE, SITES, epsilon=1, account=of_users(account), sampler=sampler, **user)
    ((scores, _, sensitivity, _),) = sampler.asked
    assert ([score / sensitivity for score in scores], sensitivity) == ([2, 3, 4], 720_720)
    assert choice.mean_shortfall == pytest.approx(math.log(3))


def test_a_target_has_half_the_rate(account):
    sampler, sites = Best(), Sites(catchments=PLACES, target=3)
    choice = choose(TABLE, sites, epsilon=1, account=account, sampler=sampler)
    assert sampler.asked == [([-1, 0, -1], 10**9, 1, False)]
    assert choice.alike == 2
    assert choice.mean_shortfall == pytest.approx(2 * math.log(3))
    assert choice.likely_shortfall == pytest.approx(2 * (math.log(3) + 3))


@pytest.mark.parametrize("table", [TABLE[:0], TABLE.assign(x=500.0)])
def test_a_domain_without_a_record_is_answered_and_paid_like_any_other(table, account):
    choice = choose(table, SITES, epsilon=1, account=account)
    assert choice.picks[0]["id"] in ("a", "b", "c")
    assert account.left == 9 * 10**9


def test_every_choice_has_its_price_until_all_is_spent(account, tmp_path):
    TABLE.to_csv(tmp_path / "points.csv", index=False)
    for _ in range(4):
        choose(tmp_path / "points.csv", SITES, epsilon="2.5", account=account)
    with pytest.raises(BudgetError):
        choose(tmp_path / "points.csv", SITES, epsilon="0.1", account=account)
    far = Sites(catchments=Catchments.around(["a", "b"], [[90, 90], [91, 91]], 2, "EPSG:3857"))
    choose(tmp_path / "points.csv", far, epsilon=10, account=account)  # disjoint points


def test_the_choice_states_public_numbers_alone(account):
    other = TABLE[:8]
    first, second = (
        choose(table, SITES, epsilon=1, account=account, sampler=Best()) for table in (TABLE, other)
    )
    assert first.picks == second.picks == ({"rank": 1, "id": "a"},)
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
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
    ],
)
def test_what_is_refused_costs_nothing(arguments, kind, account):
    given = {"data": TABLE, "objective": SITES, "epsilon": 1, "account": account} | arguments
    with pytest.raises(kind):
        choose(given.pop("data"), given.pop("objective"), **given)
    assert account.left == 10**10


def test_a_target_in_users_is_refused(account):
    sites = Sites(catchments=PLACES, target=3)
    with pytest.raises(ParameterError, match="distances to a target"):
        choose(TABLE, sites, epsilon=1, account=of_users(account), user="id", count="users")


def test_candidates_from_the_records_are_refused(account, tmp_path):
    path = tmp_path / "points.csv"
    TABLE.to_csv(path, index=False)
    with pytest.raises(ParameterError, match="must not be an input of records"):
        choose(path, Sites(catchments=PLACES, files=(str(path),)), epsilon=1, account=account)
    choose(path, SITES, epsilon=1, account=account)
    with pytest.raises(LedgerError):  # charged for before, and now named as public
        choose(TABLE, Sites(catchments=PLACES, files=(str(path),)), epsilon=1, account=account)


def test_what_a_liar_gains():
    choice = Choice(
        draws=1, picks=(), candidates=3, epsilon=Decimal("0.7"), draw_epsilon=Decimal("0.7"),
        guarantee="", alike=1.0, mean_shortfall=1.0, likely_shortfall=1.0,
    )  # fmt: skip
    assert choice.liar_gain() == pytest.approx(1.0138, abs=5e-5)
    assert choice.liar_gain(7) == pytest.approx(math.exp(4.9) - 1)
