"""One budget of a release: what is spent, set apart and stated, and when the ledger is charged."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd.accounting import selection_rho
from psd.errors import BudgetError, InternalError, LedgerError, ParameterError
from psd.privacy.budget import Budget, spent_before_counting
from psd.privacy.currency import EPSILON, RHO
from psd.privacy.loss import Loss
from psd.privacy.statements import BUDGET_STATEMENTS


class Hook:
    """Counts its calls, and refuses as long as it is told to."""

    def __init__(self, refusals=0):
        self.calls, self.refusals = 0, refusals

    def __call__(self):
        self.calls += 1
        if self.calls <= self.refusals:
            raise LedgerError("refused")
        return {"charge": "c", "ledger": "l"}


def test_it_is_spent_to_the_last_unit_and_no_further():
    budget = Budget(10)
    budget.spend(7)
    with pytest.raises(BudgetError, match=r"0\.000000003 of 0\.00000001 is left"):
        budget.spend(4)
    assert (budget.spent, budget.left) == (7, 3)
    budget.spend(3)
    budget.spend(0)
    assert budget.left == 0


@pytest.mark.parametrize("amount", [-1, -(10**18)])
def test_nothing_is_given_back(amount):
    budget = Budget(10)
    with pytest.raises(ParameterError, match="at least 0"):
        budget.spend(amount)
    with pytest.raises(ParameterError):
        Budget(amount)
    assert budget.left == 10


@pytest.mark.parametrize("spent", [-1, 11])
def test_what_was_spent_before_lies_in_the_total(spent):
    with pytest.raises(ParameterError):
        Budget(10, spent=spent)


@pytest.mark.parametrize(("total", "spent"), [(0, 0), (10, 0), (10, 10)])
def test_all_of_the_total_may_be_spent_before(total, spent):
    assert Budget(total, spent=spent).left == total - spent


def test_the_hook_is_called_before_the_first_amount_and_once():
    hook = Hook()
    budget = Budget(10, on_first_spend=hook)
    part = budget.allot("bound", Fraction(1, 2))
    assert (hook.calls, dict(budget.statement)) == (0, {"bound_epsilon": "0.000000005"})
    with pytest.raises(BudgetError):
        part.spend(6)
    assert hook.calls == 0
    part.spend(1)
    assert hook.calls == 1
    part.spend(1)
    budget.spend(1)
    for spender in budget.in_parallel(2):
        spender.spend(1)
        spender.open()
    assert hook.calls == 1
    assert list(part.statement) == ["bound_epsilon", "charge", "ledger"]
    assert part.statement == budget.statement


def test_a_hook_that_refuses_leaves_the_budget_as_it_is():
    budget = Budget(10, on_first_spend=(hook := Hook(refusals=2)))
    part = budget.allot("bounds", Fraction(1, 2))
    for spender in (part, budget):
        before = spender.spent
        with pytest.raises(LedgerError):
            spender.spend(1)
        assert spender.spent == before
    assert "charge" not in budget.statement
    part.spend(1)
    assert (hook.calls, part.spent, budget.statement["charge"]) == (3, 1, "c")


@given(st.integers(1, 10**12), st.integers(1, 99), st.integers(1, 4))
def test_a_share_is_rounded_down_to_the_same_integer_for_each_draw(total, percent, draws):
    budget, share = Budget(total), Fraction(percent, 100)
    if total * share / draws < 1:
        with pytest.raises(ParameterError, match="below 1e-9"):
            budget.allot("bounds", share, draws=draws)
        assert budget.left == total
        return
    part = budget.allot("bounds", share, draws=draws)
    assert part.total == draws * (total * percent // (100 * draws))
    assert part.total + budget.left == total
    assert (part.release_total, part.left) == (total, part.total)


def test_shares_are_of_the_total_and_what_is_not_left_is_refused():
    budget = Budget(100)
    budget.allot("bound", Fraction(6, 10))
    with pytest.raises(BudgetError):
        budget.allot("bounds", Fraction(6, 10))
    assert (budget.left, list(budget.statement)) == (40, ["bound_epsilon"])
    with pytest.raises(BudgetError):
        budget.withhold("counting", 41)
    budget.withhold("counting", 40)
    assert budget.left == 0
    assert spent_before_counting(budget.statement) == 100


def test_what_is_stated_was_declared():
    budget = Budget(100)
    for name, states in (("median", {}), ("bound", {"rows": 3})):
        with pytest.raises(InternalError, match="not declared public"):
            budget.allot(name, Fraction(1, 2), states=states)
    assert (budget.left, dict(budget.statement)) == (100, {})
    part = budget.allot("bound", Fraction(1, 2), states={"bound_over": 3, "bound_most": 5})
    with pytest.raises(TypeError):
        part.statement["bound_over"] = 4
    expected = {"bound_epsilon": "0.00000005", "bound_over": 3, "bound_most": 5}
    assert dict(part.statement) == expected


def test_every_declared_statement_can_be_made_at_once():
    others = dict.fromkeys(BUDGET_STATEMENTS - {"bound_epsilon"}, "0")
    part = Budget(100).allot("bound", Fraction(1, 2), states=others)
    assert part.statement.keys() == BUDGET_STATEMENTS


def test_parts_in_parallel_each_have_all_that_is_left():
    budget = Budget(100)
    budget.withhold("counting", 30)
    parts = budget.in_parallel(3)
    assert [(part.total, part.left) for part in parts] == [(100, 70)] * 3
    assert budget.left == 0
    parts[0].spend(70)
    assert [part.left for part in parts] == [0, 70, 70]
    assert all(part.statement == budget.statement for part in parts)


def test_parts_in_sequence_never_have_more_than_the_whole():
    budget = Budget(100)
    parts = budget.in_sequence(7)
    assert [part.total for part in parts] == [14] * 7
    assert budget.left == 0
    for part in parts:
        part.spend(14)
        with pytest.raises(BudgetError):
            part.spend(1)


def test_parts_in_sequence_are_charged_and_stated_together():
    budget = Budget(100, on_first_spend=(hook := Hook()))
    parts = budget.in_sequence(3)
    for part in parts:
        part.spend(1)
        assert (hook.calls, part.release_total) == (1, 100)
        assert part.statement == budget.statement


def test_what_a_release_states_is_read_back():
    stated = {"height": 3, "bound_epsilon": "0.05", "bound_most": 9, "counting_epsilon": "1"}
    assert spent_before_counting(stated) == 1_050_000_000
    assert spent_before_counting({"bounds_beyond": 20}) == 0


@pytest.mark.parametrize(("name", "draws"), [("bound", 1), ("bounds", 4)])
def test_what_was_paid_in_rho_is_read_back_as_the_epsilon_of_its_draws(name, draws):
    """Every draw is an exponential mechanism of sqrt(8 rho), so its rho is at most the amount."""
    for total in (24_355_970_359, 321_047_690, 10**6):
        budget = Budget(Loss.gaussian(10**9, Fraction(1, 10**6), total))
        part = budget.allot(name, Fraction(1, 20), draws=draws)
        spent = spent_before_counting(budget.statement)
        assert spent % draws == 0
        assert selection_rho(spent // draws) * draws <= part.total
        assert selection_rho(spent // draws + 1) * draws > part.total


def test_a_loss_in_rho_is_counted_in_rho_and_parts_have_the_loss_of_the_whole():
    loss = Loss.gaussian(10**9, Fraction(1, 10**6))
    budget = Budget(loss)
    assert (budget.currency, budget.total, budget.loss) == (RHO, loss.rho, loss)
    for part in budget.in_parallel(2):
        assert (part.currency, part.total, part.loss) == (RHO, loss.rho, loss)


@pytest.mark.parametrize("total", [1000, Loss.pure(1000)])
def test_a_pure_loss_is_counted_in_epsilon_and_parts_have_their_own(total):
    budget = Budget(total)
    assert (budget.currency, budget.total, budget.loss) == (EPSILON, 1000, Loss.pure(1000))
    part = budget.allot("bound", Fraction(1, 20))
    assert (part.currency, part.total, part.loss) == (EPSILON, 50, Loss.pure(50))
