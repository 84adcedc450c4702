"""Additions that end in the middle: the same answers are drawn again, and published once."""

import pytest

import psd
from psd.mechanisms.sampler import SecureSampler
from psd.streams import drawing, outputs
from psd.streams.state import State
from support.streams import DAYS, create, day_of


class KilledError(BaseException):
    """Stands for the end of the process."""


def killed(*_, **__):
    raise KilledError


POINTS = {
    "before the draw": (drawing, "draw_release"),
    "before the answer is kept": (State, "add_slice"),
    "before it is published": (outputs, "write_file"),
}


@pytest.fixture
def draws(monkeypatch):
    """Answers of all draws, as lists."""
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
        patch.setattr(*POINTS[point], killed)
        with pytest.raises(KilledError):
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
            patch.setattr(*point, killed)
            with pytest.raises(KilledError):
                stream.add(data, DAYS[0])
    stream.add(data, DAYS[0])
    series = stream.add(day_of(tmp_path, DAYS[1], 3), DAYS[1])
    assert [round(release.total) for release in series.releases] == [3, 2]


def test_a_newer_library_continues_a_stream(tmp_path, monkeypatch):
    stream = create(tmp_path)
    stream.add(day_of(tmp_path, DAYS[0], 3), DAYS[0])
    series = stream.add(day_of(tmp_path, DAYS[1], 3), DAYS[1])
    assert len({release.record.library for release in series.releases}) == 1
