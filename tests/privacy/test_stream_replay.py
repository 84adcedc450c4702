"""A stream by record and replay: a user with records in many slices costs no more than epsilon."""

import pytest

from psd.privacy.unit import PrivacyUnit
from support.privacy import stream_replay
from support.privacy.slices_replay import loss_of, users


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_a_user_of_many_slices_of_a_stream_costs_no_more_than_epsilon(k):
    unit = PrivacyUnit(kind="user", max_contributions=k)
    everywhere = [("u", day, column) for day in range(4) for column in range(2)]
    worst = max(
        loss_of(rows, unit, "series", tallies=stream_replay.tallies)
        for rows in [everywhere, *users(2)]
    )
    assert worst == 1


@pytest.mark.parametrize("k", [1, 2])
def test_a_user_who_is_in_every_slice_costs_no_more_than_epsilon(k):
    unit = PrivacyUnit(kind="user", max_contributions=k)
    everywhere = [("u", day, column) for day in range(4) for column in range(2)]
    assert loss_of(everywhere, unit, "series", tallies=stream_replay.tallies) == 1
