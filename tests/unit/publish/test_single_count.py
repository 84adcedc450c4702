"""One count for one price: what is counted, and how far the answer may be off."""

import math

import numpy as np
import pandas as pd
import pytest

from psd.errors import BudgetError, DomainError, InputDataError, LedgerError, ParameterError
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.privacy.noise_laws.discrete_laplace import laplace_reach
from psd.privacy.values import WEIGHT, Value
from psd.publish.single_count import _mean_answer, _sum_answer, ask
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


# Hours of two days, of which three users have records in some.
SLICES = "2024-01-01T00..2024-01-02T23"
TIMED = pd.DataFrame(
    {
        "lon": 0.5,
        "lat": 0.5,
        "id": [*"aaabbc"],
        "at": pd.to_datetime([
            "2024-01-01 07:00", "2024-01-01 07:30", "2024-01-02 08:59", "2024-01-01 08:00",
            "2024-01-01 09:00", "2024-01-03 07:30",
        ]),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("when", "how", "counted"),
    [
        (None, {}, 5),
        ("daily 07-09", {}, 4),
        ("2024-01-01T07..2024-01-01T09", {}, 3),
        ("2024-01-02", {}, 1),
        ("daily 07-09", {"user": "id", "max_contributions": 2}, 3),
        ("daily 07-09", {"user": "id", "max_contributions": 3, "max_per_slice": 1}, 3),
        ("daily 07-09", {"user": "id", "count": "users"}, 2),
    ],
)
def test_slices_of_a_window_are_counted_together(account, when, how, counted):
    """The records of a user are bounded in all of them together, and others do not matter."""
    account.ledger.register(
        "timed", 10, unit="user" if how else "record",
        columns=Columns(time="at", user=how.get("user")),
    )  # fmt: skip
    of_times = Account(account.ledger, "timed")
    inside = TIMED if when is None else TIMED[TIMED.index != 4]
    for table in (TIMED, inside):
        noise = Echo()
        more = {"account": of_times, "sampler": noise, "time": "at", "slices": SLICES, **how}
        answer = ask(table, BOX, epsilon=1, when=when, **more)
        (count,) = noise.counts
        weight = WEIGHT if "count" in how else 1
        assert count.true.tolist() == [counted * weight]
        assert count.sensitivity == how.get("max_contributions", 1) * weight
        assert answer.estimate == counted
    assert of_times.left == 8 * 10**9


def test_windows_without_slices_in_common_have_the_price_of_one(account, tmp_path):
    account.ledger.register("timed", 10, columns=Columns(time="at"))
    of_times, path = Account(account.ledger, "timed"), tmp_path / "points.csv"
    TIMED.to_csv(path, index=False)
    more = {"epsilon": 1, "account": of_times, "sampler": Echo(), "time": "at", "slices": SLICES}
    for when, left in (("2024-01-01", 9), ("2024-01-02", 9), ("daily 07-09", 8)):
        ask(str(path), BOX, when=when, **more)
        assert of_times.left == left * 10**9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slices": None}, "when must be given with slices"),
        ({"when": ["2024-01-01", "2024-01-02"]}, "when must be one window, got 2"),
        ({"when": "2024-02"}, "when must be in the slices"),
        ({"user": "id", "max_contributions": 1, "per": "slice"}, "per must not be slice"),
        ({"time": None}, "time"),
    ],
)
def test_windows_that_cannot_be_asked_for_cost_nothing(account, change, message):
    more = {"time": "at", "slices": SLICES, "when": "2024-01-01", **change}
    with pytest.raises(ParameterError, match=message):
        ask(TIMED, BOX, epsilon=1, account=account, **more)
    assert account.left == 10 * 10**9


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


RIDES = TABLE.assign(fare=[-5.0, 15, 30, 45, 90, 20], tip=[0.0, 1, 1, 0, 2, 9])
FARES = {"values": {"fare": (0, 60)}, "mean": "fare", "sum": ["fare"]}
BOTH = {"values": {"fare": (0, 60), "tip": (-1, 1)}, "mean": ["fare", "tip"], "sum": "tip"}


def test_means_and_sums_are_those_of_clamped_values_for_one_charge(account):
    for spent, how in enumerate((FARES, BOTH), 1):
        noise = Echo()
        answer = ask(RIDES, BOX, epsilon=1, account=account, sampler=noise, **how)
        assert answer.estimate == 5
        assert answer.mean["fare"].estimate == pytest.approx(30, rel=1e-5)  # of 0, 15, 30, 45, 60
        if "tip" in answer.mean:
            assert answer.mean["tip"].estimate == pytest.approx(3 / 5, rel=1e-5)
            assert answer.sum["tip"].estimate == pytest.approx(3, rel=1e-5)
        else:
            assert answer.sum["fare"].estimate == pytest.approx(150, rel=1e-5)
        # One question draws all sums, with the noise of a record that changes every pair by M.
        [count] = noise.counts
        number = len(how["values"])
        assert len(count.true) == 2 * number
        assert count.epsilon.tolist() == [10**9] * 2 * number
        assert count.sensitivity == WEIGHT * number
        assert account.left == (10 - spent) * 10**9
    assert [charge.loss.epsilon for charge in account.ledger.state().charges.values()] == [
        10**9,
        10**9,
    ]


def test_means_are_charged_before_they_are_drawn_and_refused_without_epsilon(account):
    seen = []

    class Looking(Echo):
        def draw(self, mechanism):
            seen.append(account.left)
            return super().draw(mechanism)

    ask(RIDES, BOX, epsilon=7, account=account, sampler=Looking(), **FARES)
    assert seen == [3 * 10**9]
    with pytest.raises(BudgetError):
        ask(RIDES, BOX, epsilon=4, account=account, sampler=Looking(), **FARES)
    assert len(seen) == 1


def test_means_of_users_weigh_users_equally(account):
    users = Account(account.ledger, "users")
    answer = ask(
        RIDES, BOX, epsilon=1, account=users, sampler=Echo(), user="id", count="users", **FARES
    )
    assert answer.estimate == pytest.approx(3)
    # a: 0, b: 15, c: the mean of 30, 45 and 60 in the box.
    assert answer.mean["fare"].estimate == pytest.approx((0 + 15 + 45) / 3, abs=1e-3)


def test_the_error_of_a_count_with_values_is_that_of_its_sums(account):
    plain = ask(RIDES, BOX, epsilon="0.01", account=account, sampler=Echo())
    for factor, how in ((2, FARES), (4, BOTH)):
        answer = ask(RIDES, BOX, epsilon="0.01", account=account, sampler=Echo(), **how)
        assert answer.error == pytest.approx(math.sqrt(factor) * plain.error, rel=1e-4)
        assert answer.upper > plain.upper


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(("records", "share"), [(40, 0.1), (200, 0.02), (1000, 0.5), (3, 0.9)])
def test_intervals_contain_means_and_sums_as_often_as_stated(records, share, confidence):
    """Both counts have Laplace noise of one scale; the law of each answer is exact."""
    rng, runs, value = np.random.default_rng(7), 1500, Value("fare", -10, 60)
    true = np.array([share, 1 - share]) * records
    mean, total = value.lower + value.width * share, value.upper * true[0] + value.lower * true[1]
    inside = np.zeros((runs, 2), bool)
    for run, noise in enumerate(rng.laplace(0, 2, (runs, 2))):
        for column, (made, is_true) in enumerate(((_mean_answer, mean), (_sum_answer, total))):
            answer = made(value, list(true + noise), 2.0, 1 - confidence)
            assert answer.lower <= answer.estimate <= answer.upper
            inside[run, column] = answer.lower <= is_true <= answer.upper
    spread = 4 * math.sqrt(confidence * (1 - confidence) / runs)
    assert inside[:, 1].mean() == pytest.approx(confidence, abs=spread)
    assert inside[:, 0].mean() > confidence - spread
    if records * min(share, 1 - share) > 15:  # no count is cut at 0
        assert inside[:, 0].mean() == pytest.approx(confidence, abs=spread)


def test_a_sum_of_draws_is_beyond_its_reach_as_often_as_stated():
    draws = np.random.default_rng(3).laplace(0, 1, (6, 40_000))
    for weights in ([1, 0], [0.7, 0.3], [0.5, 0.5], [1.0] * 4, [1.0] * 6):
        reach = laplace_reach(weights, 0.05)
        beyond = np.abs(np.array(weights) @ draws[: len(weights)]) > reach
        assert beyond.mean() == pytest.approx(0.05, abs=0.005), weights


def test_an_empty_box_has_no_interval_of_a_mean(account):
    answer = ask(RIDES, (2, 2, 3, 3), epsilon=1, account=account, sampler=Echo(), **FARES)
    mean = answer.mean["fare"]
    assert (mean.estimate, mean.error, mean.lower, mean.upper) == (30, 30, 0, 60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"mean": "tip"},
            r"mean must be a column that values= names with its bounds \(fare\), got 'tip'",
        ),
        *(
            ({kind: given}, rf"^{kind} must be a column .* \(fare\), got a value of type {of}$")
            for kind in ("mean", "sum")
            for given, of in ((5, "int"), ([5], "int"), (0, "int"))
        ),
        ({"values": None}, r"mean must be .* \(it names none\), got 'fare'"),
        ({"mean": (), "sum": ()}, "values must be asked for with mean= or sum=, got 'fare'"),
        ({"values": {"fare": (60, 0)}}, "must have a lower and a larger upper bound"),
    ],
)
def test_values_that_cannot_be_asked_for_cost_nothing(account, change, message):
    with pytest.raises((ParameterError, InputDataError), match=message):
        ask(RIDES, BOX, epsilon=1, account=account, **{**FARES, **change})
    assert account.left == 10**10
