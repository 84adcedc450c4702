"""One budget of a release: what is spent, set apart and stated, and when the ledger is charged."""

import dataclasses
import itertools
from fractions import Fraction
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd._util.declared_parameters import integer_between, public_field
from psd.accounting import selection_rho
from psd.decompositions.quadtree import Quadtree
from psd.errors import BudgetError, InternalError, LedgerError, ParameterError
from psd.privacy.budget import (
    AXES,
    BUDGET_STATEMENTS,
    RECEIPT_STATEMENTS,
    STATEMENTS,
    STREAM_STATEMENTS,
    Budget,
    method_parameters,
    spent_before_counting,
)
from psd.privacy.loss import EPSILON, RHO, Loss


def hook_of(refusals=0):
    refused, receipt = LedgerError("refused"), {"charge": "c", "ledger": "l"}
    return Mock(side_effect=[*[refused] * refusals, *[receipt] * 9])


def test_it_is_spent_to_the_last_unit_and_no_further():
    budget = Budget(10)
    budget.spend(7)
    with pytest.raises(BudgetError, match=r"0\.000000003 of 0\.00000001 is left"):
        budget.spend(4)
    assert (budget.spent, budget.left) == (7, 3)
    budget.spend(3)
    budget.spend(0)
    assert budget.left == 0


def test_nothing_is_given_back_and_what_was_spent_before_lies_in_the_total():
    budget = Budget(10)
    for amount in (-1, -(10**18)):
        with pytest.raises(ParameterError, match="at least 0"):
            budget.spend(amount)
        with pytest.raises(ParameterError):
            Budget(amount)
    assert budget.left == 10
    for spent in (-1, 11):
        with pytest.raises(ParameterError):
            Budget(10, spent=spent)
    for total, spent in ((0, 0), (10, 0), (10, 10)):
        assert Budget(total, spent=spent).left == total - spent


def test_the_hook_is_called_before_the_first_amount_and_once():
    hook = hook_of()
    budget = Budget(10, on_first_spend=hook)
    part = budget.allot("bound", Fraction(1, 2))
    assert (hook.call_count, dict(budget.statement)) == (0, {"bound_epsilon": "0.000000005"})
    with pytest.raises(BudgetError):
        part.spend(6)
    assert hook.call_count == 0
    part.spend(1)
    assert hook.call_count == 1
    part.spend(1)
    budget.spend(1)
    for spender in budget.in_parallel(2):
        spender.spend(1)
        spender.open()
    assert hook.call_count == 1
    assert list(part.statement) == ["bound_epsilon", "charge", "ledger"]
    assert part.statement == budget.statement


def test_a_hook_that_refuses_leaves_the_budget_as_it_is():
    budget = Budget(10, on_first_spend=(hook := hook_of(refusals=2)))
    part = budget.allot("bounds", Fraction(1, 2))
    for spender in (part, budget):
        before = spender.spent
        with pytest.raises(LedgerError):
            spender.spend(1)
        assert spender.spent == before
    assert "charge" not in budget.statement
    part.spend(1)
    assert (hook.call_count, part.spent, budget.statement["charge"]) == (3, 1, "c")


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
        budget.reserve("counting", 41)
    budget.reserve("counting", 40)
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
    stated = {"bound_epsilon": "0.00000005", "bound_over": 3, "bound_most": 5}
    assert dict(part.statement) == stated
    # All that is declared can be stated at once.
    others = dict.fromkeys(BUDGET_STATEMENTS - {"bound_epsilon"}, "0")
    part = Budget(100).allot("bound", Fraction(1, 2), states=others)
    assert part.statement.keys() == BUDGET_STATEMENTS


def test_parts_in_parallel_each_have_all_that_is_left():
    budget = Budget(100)
    budget.reserve("counting", 30)
    parts = budget.in_parallel(3)
    assert [(part.total, part.left) for part in parts] == [(100, 70)] * 3
    assert budget.left == 0
    parts[0].spend(70)
    assert [part.left for part in parts] == [0, 70, 70]
    assert all(part.statement == budget.statement for part in parts)


def test_parts_in_sequence_never_have_more_than_the_whole_and_are_charged_together():
    budget = Budget(100, on_first_spend=(hook := hook_of()))
    parts = budget.in_sequence(7)
    assert [part.total for part in parts] == [14] * 7
    assert budget.left == 0
    for part in parts:
        part.spend(14)
        with pytest.raises(BudgetError):
            part.spend(1)
        assert (hook.call_count, part.release_total) == (1, 100)
        assert part.statement == budget.statement


def test_what_was_paid_in_rho_is_read_back_as_the_epsilon_of_its_draws():
    """Every draw is an exponential mechanism of sqrt(8 rho), so its rho is at most the amount."""
    totals = (24_355_970_359, 321_047_690, 10**6)
    for (name, draws), total in itertools.product((("bound", 1), ("bounds", 4)), totals):
        budget = Budget(Loss.gaussian(10**9, Fraction(1, 10**6), total))
        part = budget.allot(name, Fraction(1, 20), draws=draws)
        spent = spent_before_counting(budget.statement)
        assert spent % draws == 0
        assert selection_rho(spent // draws) * draws <= part.total
        assert selection_rho(spent // draws + 1) * draws > part.total
    stated = {"height": 3, "bound_epsilon": "0.05", "bound_most": 9, "counting_epsilon": "1"}
    assert spent_before_counting(stated) == 1_050_000_000
    assert spent_before_counting({"bounds_beyond": 20}) == 0
    in_rho = {"bound_rho": "0.02", "bounds_rho": "0.08"}  # 5 draws of sqrt(8 x 0.02) each
    assert spent_before_counting(in_rho) == 5 * 400_000_000


def test_a_loss_is_counted_in_its_currency():
    """Parts have the loss of the whole in rho, and their own in epsilon."""
    loss = Loss.gaussian(10**9, Fraction(1, 10**6))
    budget = Budget(loss)
    for each in (budget, *budget.in_parallel(2)):
        assert (each.measure, each.total, each.loss) == (RHO, loss.rho, loss)
    for total in (1000, Loss.pure(1000)):
        budget = Budget(total)
        assert (budget.measure, budget.total, budget.loss) == (EPSILON, 1000, Loss.pure(1000))
        part = budget.allot("bound", Fraction(1, 20))
        assert (part.measure, part.total, part.loss) == (EPSILON, 50, Loss.pure(50))


# Names under which a release states its budget, and methods that may not take them


def method(field, picks=()):
    kind = dataclasses.make_dataclass(
        "Own",
        [(field, int, public_field(1, integer_between(0, 2), "a parameter"))],
        namespace={"name": "own", "picks": picks},
        frozen=True,
    )
    return kind()


def test_no_parameter_and_no_pick_has_the_name_of_a_statement(subtests):
    for name in sorted(STATEMENTS):
        message = f"^{name} of own states the budget of a release"
        for other in (method(name), method("height", picks=(name,))):
            with subtests.test(name), pytest.raises(ParameterError, match=message):
                method_parameters(other)
    # A name states one thing.
    groups = (BUDGET_STATEMENTS, RECEIPT_STATEMENTS, STREAM_STATEMENTS, frozenset({AXES}))
    assert sum(map(len, groups)) == len(frozenset.union(*groups))
    assert frozenset.union(*groups) == STATEMENTS
    assert dict(method_parameters(method("height"))) == {"height": 1}
    assert method_parameters(Quadtree(height=3))["height"] == 3
