"""A stream by record and replay: a user of many slices costs no more than the claim."""

from fractions import Fraction

import pytest

from psd.auditing.concentrated import transcript_rho
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit, squared_sensitivity
from psd.testing import RecordingSampler
from support.hilbert_oracle import spent
from support.privacy import stream_replay
from support.privacy.slices_replay import DAYS, OTHERS, loss_of, placed, users

EVERYWHERE = [("u", day, column) for day in range(4) for column in range(2)]
GAUSSIAN = {"delta": "1e-6", "noise_law": "gaussian"}


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_a_user_of_many_slices_of_a_stream_costs_no_more_than_epsilon(k):
    unit = PrivacyUnit(kind="user", max_contributions=k)
    worst = max(
        loss_of(rows, unit, "series", tallies=stream_replay.tallies)
        for rows in [EVERYWHERE, *users(2)]
    )
    assert worst == 1


@pytest.mark.parametrize("k", [1, 2])
def test_a_user_who_is_in_every_slice_costs_no_more_than_epsilon(k):
    unit = PrivacyUnit(kind="user", max_contributions=k)
    assert loss_of(EVERYWHERE, unit, "series", tallies=stream_replay.tallies) == 1


def user(k, most=None):
    """Unit with k rows in all slices, at most a number of them in each."""
    return PrivacyUnit(kind="user", max_contributions=k, max_per_slice=most)


UNITS = [
    pytest.param(user(1), "series", id="one row"),
    pytest.param(user(2), "series", id="two rows anywhere"),
    pytest.param(user(2, 1), "series", id="two rows in two slices"),
    pytest.param(user(3, 1), "series", id="three rows in three slices"),
    pytest.param(user(1), "slice", id="one row in each slice"),
]


@pytest.mark.parametrize(("unit", "bound"), UNITS)
def test_a_user_costs_exactly_the_rho_of_gaussian_slices(unit, bound):
    """The library draws the slices; all that differs without the user is added up by itself."""
    claim = Fraction(stream_replay.request_of(unit, bound, **GAUSSIAN).loss.rho, 10**12)
    worst = max(
        loss_of(
            rows, unit, bound, measure=transcript_rho, claim=claim,
            runs=stream_replay.drawn_slices, **GAUSSIAN,
        )
        for rows in [EVERYWHERE, *placed(1), EVERYWHERE[:1] * 2, EVERYWHERE[::2]]
    )  # fmt: skip
    assert worst == claim


@pytest.mark.parametrize(("unit", "bound"), UNITS)
def test_gaussian_slices_spend_exactly_rho_at_every_point(unit, bound):
    loss = stream_replay.request_of(unit, bound, **GAUSSIAN).loss
    noise = CountNoise.gaussian(squared_sensitivity(unit, bound, len(DAYS)))
    drawn = stream_replay.drawn_slices(
        OTHERS, unit, bound, lambda number: [RecordingSampler() for _ in range(number)], **GAUSSIAN
    )
    for curator, tree in drawn:
        assert (spent(curator.questions, 2) == loss.rho).all()
        assert (tree.max_path_epsilon, tree.noise) == (loss.rho, noise)
