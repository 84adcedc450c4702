"""Additions to a stream that are killed at every step: no slice is drawn a second time."""

import pytest

import psd
from psd.ledger.ledger import Ledger
from robustness.kills import run_script

pytestmark = pytest.mark.deep


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def check(place, before):
    """No question is drawn twice, and what was published stays; says how far the first came."""
    draws, again = lines_of(place / "draws"), lines_of(place / "again")
    left = psd.load(place / "left.psd.parquet")
    series = psd.load(place / "out" / "c.psd.parquet")
    was_killed, code = place.joinpath("code").read_text().split()
    assert len(series.slices) == 2
    if again:  # the second run drew: the same answers, as far as the first had come
        assert again[: len(draws)] == draws
        assert left.digest == before.digest
        assert code == "0"
    else:  # the answer was in the state, or published
        assert draws
        assert code == ("0" if len(left.slices) == 1 else "2")  # published now, or refused as added
    old, new = before.record.releases[0].tree, series.record.releases[0].tree
    assert old.count.tolist() == new.count.tolist()
    if len(left.slices) == 2:
        assert left.digest == series.digest
    state = Ledger(place / "city.ledger").verify(releases=place / "out")
    [charge] = state.charges.values()
    assert tuple(charge.drawn) == series.slices.names
    names = {path.name for path in place.iterdir()} | {p.name for p in (place / "out").iterdir()}
    assert not {
        name for name in names if name.startswith((".psd-", "city.stream-", "city.ledger-"))
    }
    return was_killed, bool(draws), bool(again), len(left.slices)


# Killed or not; drawn; drawn again; slices in the series file.
STAGES = {
    ("True", False, True, 1),
    ("True", True, True, 1),
    ("True", True, False, 1),
    ("True", True, False, 2),
}


def check_kills(folder, method, number):
    places, _ = run_script("apps/streams/stream_kills.py", folder, method, number)
    assert len(places) == number
    before = psd.load(folder / "before.psd.parquet")
    reached = {check(place, before) for place in places}
    assert reached - {("False", True, False, 2)} == STAGES


@pytest.mark.slow
def test_killed_additions_are_not_drawn_again(tmp_path):
    check_kills(tmp_path, "quadtree", 24)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("method", ["quadtree", "kd-standard"])
def test_200_killed_additions_are_not_drawn_again(tmp_path, method):
    check_kills(tmp_path, method, 200)
