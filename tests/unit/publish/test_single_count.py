"""One count for one price: what is counted, and how far the answer may be off."""

import math

import pandas as pd
import pytest

from psd.errors import BudgetError, DomainError, InputDataError, LedgerError, ParameterError
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.publish.single_count import ask
from support.privacy.samplers import Echo

TABLE = pd.DataFrame(
    {
        "lon": [0.0, 1.0, 0.5, 0.5, 0.5, 1.1],
        "lat": [0.0, 1.0, 0.5, 0.5, 0.5, 0.5],
        "id": ["a", "b", "c", "c", "c", "c"],
    }
)
BOX = (0, 0, 1, 1)


def asked(echo):
    """True count, epsilon and sensitivity of the one question."""
    (count,) = echo.counts
    return count.true.tolist(), count.epsilon.tolist(), count.sensitivity


@pytest.fixture
def account(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("rows", 10)
    ledger.register("users", 10, unit="user", columns=Columns(user="id"))
    return Account(ledger, "rows")


def of_users(account):
    return Account(account.ledger, "users")


def test_points_on_the_edges_are_in_the_box(account):
    noise = Echo()
    answer = ask(TABLE, area=BOX, epsilon="0.5", account=account, sampler=noise)
    assert asked(noise) == ([5], [500_000_000], 1)
    assert answer.estimate == 5
    (charge,) = account.ledger.state().charges.values()
    assert (charge.what, charge.loss.epsilon, charge.region) == ("ask", 500_000_000, None)
    assert not charge.done
    # The error is that of the noise.
    answer = ask(TABLE, area=BOX, epsilon=1, account=account, sampler=Echo())
    q = math.exp(-1)
    assert answer.error == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-12)
    assert (answer.lower, answer.upper) == (2, 8)


def test_rows_of_users_are_bounded_among_those_in_the_box(account):
    """Or users are counted as users."""
    users = Account(account.ledger, "users")
    for how, estimate, sensitivity in (
        ({"max_contributions": 2}, 4, 2),
        ({"count": "users"}, 3, 720_720),
    ):
        noise = Echo()
        answer = ask(TABLE, area=BOX, epsilon=1, account=users, sampler=noise, user="id", **how)
        true = estimate * sensitivity if "count" in how else estimate
        assert asked(noise) == ([true], [10**9], sensitivity)
        assert answer.estimate == estimate


def test_a_box_without_a_row_is_answered_and_paid_like_any_other(account):
    for spent, table in enumerate((TABLE, TABLE[:0]), 1):
        answer = ask(table, area=(2, 2, 3, 3), epsilon=1, account=account, sampler=Echo())
        assert answer.estimate == 0
        assert account.left == (10 - spent) * 10**9


def test_every_answer_has_its_price_until_all_is_spent(account, tmp_path):
    TABLE.to_csv(tmp_path / "points.csv", index=False)
    for _ in range(4):
        ask(tmp_path / "points.csv", area=BOX, epsilon="2.5", account=account)
    for data, box in ((tmp_path / "points.csv", BOX), (TABLE, (2, 2, 3, 3))):
        with pytest.raises(BudgetError):
            ask(data, area=box, epsilon="0.1", account=account)
    # A row of the file is not in both.
    ask(tmp_path / "points.csv", area=(2, 2, 3, 3), epsilon=10, account=account)


def test_what_is_refused_costs_nothing(account, subtests):
    for arguments, kind in (
        ({"area": (1, 0, 0, 1)}, DomainError),
        ({"area": (0, 0, 0, 1)}, DomainError),
        ({"epsilon": 0}, ParameterError),
        ({"confidence": 1}, ParameterError),
        ({"confidence": math.nan}, ParameterError),
        ({"max_contributions": 2}, ParameterError),
        ({"user": "id", "max_contributions": 2}, LedgerError),
        ({"data": "missing.csv"}, InputDataError),
    ):
        with subtests.test(arguments=arguments), pytest.raises(kind):
            ask(**{"data": TABLE, "area": BOX, "epsilon": 1, "account": account} | arguments)
    assert account.left == 10**10
