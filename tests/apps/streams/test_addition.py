"""Additions that end in the middle: the same answers are drawn again, and published once."""

from collections import Counter
from unittest.mock import Mock

import pytest

import psd
from psd.apps.streams import drawing, outputs
from psd.apps.streams.state import State
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.unit import PrivacyUnit
from support.privacy.stream_replay import counted_slices
from support.streams import DAYS, create, day_of

# Where the process may end.
POINTS = {
    "before the draw": (drawing, "draw_release"),
    "before the answer is kept": (State, "add_slice"),
    "before it is published": (outputs, "write_file"),
}


@pytest.fixture
def draws(monkeypatch):
    drawn, draw = [], SecureSampler.draw

    def noted(self, mechanism):
        answer = draw(self, mechanism)
        drawn.append(answer.tolist())
        return answer

    monkeypatch.setattr(SecureSampler, "draw", noted)
    return drawn


@pytest.mark.parametrize("method", ["grid", "quadtree", "kd-standard", "privtree"])
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_addition_draws_the_same_again(tmp_path, monkeypatch, draws, point, method):
    stream = create(tmp_path, epsilon=1, method=method)
    data = day_of(tmp_path, DAYS[0], 20)
    with monkeypatch.context() as patch:
        patch.setattr(*POINTS[point], Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            stream.add(data, DAYS[0])
    before = [*draws]
    draws.clear()
    series = stream.add(data, DAYS[0])
    if point == "before it is published":
        assert draws == []  # the answer was in the state
    else:
        assert draws[: len(before)] == before
    assert psd.load(tmp_path / "city.psd.parquet").digest == series.digest
    assert stream.status().added == (DAYS[0],)


def test_users_are_counted_once_however_often_an_addition_ends(tmp_path, monkeypatch):
    stream = create(tmp_path, user="user", max_contributions=5)
    data = day_of(tmp_path, DAYS[0], 3)
    for point in POINTS.values():
        with monkeypatch.context() as patch:
            patch.setattr(*point, Mock(side_effect=SystemExit))
            with pytest.raises(SystemExit):
                stream.add(data, DAYS[0])
    stream.add(data, DAYS[0])
    series = stream.add(day_of(tmp_path, DAYS[1], 3), DAYS[1])
    assert [round(release.total) for release in series._releases] == [3, 2]


# Records of one slice: which are kept of a user, whatever others do


ANN = [("ann", day, column) for day in range(3) for column in (0, 1)]
BOB = [("bob", 0, 1), ("bob", 2, 0)]


def test_the_first_records_of_a_user_are_kept():
    for k in range(1, 9):
        slices = counted_slices(ANN, PrivacyUnit(kind="user", max_contributions=k))
        kept = [sum(counted.contributions.values()) for counted in slices]
        assert kept == [min(2, max(k - 2 * day, 0)) for day in range(3)]
        assert [int(counted.tally.counts.sum()) for counted in slices] == kept
        assert {counted.tally.contributions for counted in slices} == {k}
    # Another user changes no kept record.
    unit = PrivacyUnit(kind="user", max_contributions=3)
    alone, both, bob = (counted_slices(rows, unit) for rows in (ANN, ANN + BOB, BOB))
    for one, two, other in zip(alone, both, bob, strict=True):
        assert counts_of(two) == counts_of(one) + counts_of(other)
        assert two.contributions == {**one.contributions, **other.contributions}


def counts_of(counted):
    tally = counted.tally
    cells = zip(tally.columns.tolist(), tally.rows.tolist(), strict=True)
    return Counter(dict(zip(cells, tally.counts.tolist(), strict=True)))
