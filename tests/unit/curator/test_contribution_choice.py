"""The private choice of a bound: its list, its law, its price."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd.curator.contribution_choice import (
    ContributionChoice,
    candidate_bounds,
    choose_contribution_bound,
)
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.testing import RecordingSampler, small_domain


def chosen(rows, choice, epsilon, sampler=None):
    """A bound that is chosen for a share of epsilon."""
    return choose_contribution_bound(
        rows, choice, choice.allot(Budget(epsilon)), sampler or SecureSampler()
    )


def test_the_list_of_bounds_is_public_and_ends_at_the_largest():
    assert candidate_bounds(1).tolist() == [1]
    assert candidate_bounds(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    bounds = candidate_bounds(10**6)
    assert bounds[-1] == 10**6
    assert (np.diff(bounds) > 0).all()
    assert (bounds[4:] / bounds[3:-1]).max() <= 4 / 3


def test_scores_count_users_over_each_bound():
    noise = RecordingSampler()
    rows = np.array([1, 1, 2, 3, 5, 5, 9])
    choice = ContributionChoice(over=2, limit=8, share="0.5")
    # Over 1: 5, 2: 4, 3: 3, 4: 3, 5: 1, 6: 1, 8: 1.
    found = chosen(rows, choice, NANO, noise)
    (call,) = noise.draws
    assert call.line.tolist() == [1, 2, 3, 4, 5, 6, 8]
    assert call.true.tolist() == [-3, -2, -1, -1, 0, -1, -1]
    assert (found, call.epsilon.tolist(), call.sensitivity.tolist()) == (5, [NANO // 2], [1])


def test_bounds_that_nobody_exceeds_are_not_alike():
    """Where everybody has at most five rows, larger bounds would add noise and keep nothing."""
    noise = RecordingSampler()
    rows = np.repeat([1, 2, 3, 4, 5], 100)
    assert chosen(rows, ContributionChoice(over=50), NANO, noise) == 5
    assert np.sort(noise.draws[-1].true)[-2:].tolist() == [-50, 0]


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(1, 12), st.integers(0, 20))
def test_one_user_more_changes_no_score_by_more_than_one(rows, one, over):
    noise, choice = RecordingSampler(), ContributionChoice(over=over, limit=12)
    for sizes in (rows, [*rows, one]):
        chosen(np.array(sizes, np.int64), choice, NANO, noise)
    fewer, more = (call.true for call in noise.draws)
    assert np.abs(fewer - more).max() <= 1


@pytest.mark.parametrize("epsilon", [NANO // 10, NANO, 100 * NANO])
def test_where_everybody_has_few_rows_the_bound_is_small(epsilon):
    """The 23 larger bounds have odds of exp(-6.25) or less each, so that a draw is one of them with
    probability 0.05 at most, and 20 of 40 draws are with less than 1e-14."""
    rows = np.repeat(np.arange(1, 6), 2000)
    drawn = [chosen(rows, ContributionChoice(), epsilon) for _ in range(40)]
    assert sum(bound <= 5 for bound in drawn) > 20


def test_the_law_is_that_of_the_exponential_mechanism():
    rows = np.array([1] * 6 + [2] * 3 + [4])
    choice, epsilon, draws = ContributionChoice(over=2, limit=4, share="0.5"), 2 * NANO, 4000
    # Over 1: 4, 2: 1, 3: 1, 4: 0.
    weight = np.exp(-np.array([2, 0, 1, 1]) / 2)
    seen = np.bincount([chosen(rows, choice, epsilon) for _ in range(draws)], minlength=5)[1:]
    expected = draws * weight / weight.sum()
    # Chi-square of 3 degrees of freedom passes 30 once in 700,000 runs.
    assert ((seen - expected) ** 2 / expected).sum() < 30


def test_what_it_costs_is_a_share_of_epsilon():
    choice = ContributionChoice(share="0.1")
    budget = Budget(NANO)
    allotted = choice.allot(budget)
    assert (allotted.total, budget.left) == (NANO // 10, NANO - NANO // 10)
    choose_contribution_bound(np.array([1]), choice, allotted, SecureSampler())
    assert (allotted.left, budget.left) == (0, NANO - NANO // 10)
    assert choice.target(NANO // 10) == 10 * choice.target(NANO)
    assert choice.target(1000 * NANO) == 1
    stated = {"bound_epsilon": "0.1", "bound_over": choice.target(NANO), "bound_most": 1_000}
    assert dict(budget.statement) == stated
    with pytest.raises(ParameterError, match="choosing max_contributions is below"):
        choice.allot(Budget(5))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"share": "0"}, "share must be above 0"),
        ({"share": "1"}, "share"),
        ({"share": "-0.1"}, "share"),
        ({"over": -1}, "over"),
        ({"over": 0.5}, "over"),
        ({"limit": 0}, "limit"),
        ({"limit": 10**9 + 1}, "limit"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        ContributionChoice(**settings)


@pytest.mark.parametrize("memory", [None, 2000])
def test_rows_of_users_are_there_for_the_question_and_for_the_tally(memory):
    """Also where they wait in files."""
    users = np.arange(3000) % 700
    unit = PrivacyUnit(kind="user", max_contributions=2)
    builder = TallyBuilder(small_domain(3), unit=unit, memory=memory)
    ids = pa.array([f"u{user}" for user in users])
    builder.add_batch(Batch(x=users % 3 + 0.5, y=users % 2 + 0.5, user=ids))
    assert np.array_equal(np.sort(builder.rows_per_unit()), np.sort(np.bincount(users)))
    assert builder.build(unit=PrivacyUnit(kind="user", max_contributions=3)).counts.sum() == 3 * 700
