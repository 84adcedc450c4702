"""The private choice of a bound: its list, its law, its price."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd.curator.private_bounds import (
    ContributionChoice,
    candidate_bounds,
    choose_contribution_bound,
)
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.testing import RecordingSampler, small_domain
from support.tables import refuses


def chosen(rows, choice, epsilon, sampler):
    return choose_contribution_bound(rows, choice, choice.allot(Budget(epsilon)), sampler)


def test_scores_count_users_over_each_bound_of_a_public_list():
    assert candidate_bounds(1).tolist() == [1]
    assert candidate_bounds(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    bounds = candidate_bounds(10**6)
    assert bounds[-1] == 10**6
    assert (np.diff(bounds) > 0).all()
    assert (bounds[4:] / bounds[3:-1]).max() <= 4 / 3
    noise, choice = RecordingSampler(), ContributionChoice(over=2, limit=8, share="0.5")
    # Over 1: 5, 2: 4, 3: 3, 4: 3, 5: 1, 6: 1, 8: 1.
    found = chosen(np.array([1, 1, 2, 3, 5, 5, 9]), choice, NANO, noise)
    (call,) = noise.draws
    assert call.line.tolist() == [1, 2, 3, 4, 5, 6, 8]
    assert call.true.tolist() == [-3, -2, -1, -1, 0, -1, -1]
    assert (found, call.loss.tolist(), call.sensitivity.tolist()) == (5, [NANO // 2], [1])
    # Where everybody has at most five rows, larger bounds would add noise and keep nothing.
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


def test_settings_out_of_range_are_refused(subtests):
    rows = [
        ({"share": "0"}, "share must be above 0"),
        *(({"share": share}, "share") for share in ("1", "-0.1")),
        *(({"over": over}, "over") for over in (-1, 0.5)),
        *(({"limit": limit}, "limit") for limit in (0, 10**9 + 1)),
    ]
    refuses(subtests, ContributionChoice, rows)


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
