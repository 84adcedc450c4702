"""A stream by record and replay: a user of many slices costs no more than the claim."""

from fractions import Fraction

import pytest

from psd.apps.auditing.pairs import transcript_rho
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import squared_sensitivity
from psd.testing import RecordingSampler
from support.hilbert_oracle import spent
from support.privacy import stream_replay
from support.privacy.slices_replay import (
    DAYS,
    EVERYWHERE,
    LOSING_MOST,
    OTHERS,
    UNITS_OF_SLICES,
    loss_of,
    placed,
    user,
    users,
)

GAUSSIAN = {"delta": "1e-6", "noise": "gaussian"}


MANY = pytest.param(list(users(2)), marks=pytest.mark.deep)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("added", [[EVERYWHERE], MANY], ids=["everywhere", "many"])
def test_a_user_of_many_slices_of_a_stream_costs_no_more_than_epsilon(added, k):
    losses = (loss_of(r, user(k), "series", tallies=stream_replay.tallies) for r in added)
    assert max(losses) == 1


ONE_ROW = pytest.param(list(placed(1)), marks=pytest.mark.deep)


@UNITS_OF_SLICES
@pytest.mark.parametrize("added", [LOSING_MOST, ONE_ROW], ids=["most", "one"])
def test_a_user_costs_exactly_the_rho_of_gaussian_slices(unit, bound, added):
    """The library draws the slices; all that differs without the user is added up by itself."""
    claim = Fraction(stream_replay.request_of(unit, bound, **GAUSSIAN).loss.rho, 10**12)
    how = {"measure": transcript_rho, "claim": claim, "runs": stream_replay.drawn_slices}
    worst = max(loss_of(rows, unit, bound, **how, **GAUSSIAN) for rows in added)
    assert worst == claim if added is LOSING_MOST else 0 < worst <= claim


@UNITS_OF_SLICES
def test_gaussian_slices_spend_exactly_rho_at_every_point(unit, bound):
    loss = stream_replay.request_of(unit, bound, **GAUSSIAN).loss
    noise = CountNoise.gaussian(squared_sensitivity(unit, bound, len(DAYS)))
    drawn = stream_replay.drawn_slices(
        OTHERS, unit, bound, lambda number: [RecordingSampler() for _ in range(number)], **GAUSSIAN
    )
    for curator, tree in drawn:
        assert (spent(curator.questions, 2) == loss.rho).all()
        assert (tree.max_path_loss, tree.noise) == (loss.rho, noise)
