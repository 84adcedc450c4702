"""Every registered method on all small data sets and all their neighbours."""

import secrets
from fractions import Fraction

import pytest

import psd
from psd.decompositions import Cascade, PrivTree
from psd.testing import replay_loss
from support.privacy.replay import has_selections, is_adaptive, small_cases
from support.privacy.shapes import worst_with_half

METHODS = small_cases()

# Lattice side, k, part of the pairs in one run of the CI: for most methods, and for those that
# take many steps or grow shapes; part of the pairs at night for methods that only count; pairs.
SPACES = [
    pytest.param(3, 1, (1, 6), 1, 1_980, id="3x3-record"),
    pytest.param(3, 2, (8, 48), 1, 11_880, id="3x3-two-rows"),
    pytest.param(3, 3, (40, 110), 10, 48_180, id="3x3-three-rows"),
    pytest.param(4, 1, (8, 48), 1, 15_504, id="4x4-record"),
]

# Builds that take several times longer still, and the part of their pairs on top of that.
SLOW = {"auto": 4, "hilbert-rtree": 4, "htf": 4, "htree": 4, "kd-hybrid": 2, "kd-standard": 2}

# A division's sensitivity is approached where a part has many bins, which no small lattice has.
APPROACHES = {"htf": Fraction(9, 10)}


def part(method, parts) -> int:
    usual, of_many_steps = parts
    if has_shapes(method) or is_adaptive(method):
        return of_many_steps
    return min(usual * SLOW.get(method.name, 1), 40)


def has_shapes(method) -> bool:
    return isinstance(method, PrivTree)


def is_used_up(worst, method, k) -> bool:
    """Whether the worst loss is what it has to be: far below, the check would see too little.

    Counts and selections use up the promise. The loss of a shape nears its charge only for
    nodes with more records than delta; two levels over three rows leave room, and the worst
    path says how much.
    """
    if has_shapes(method):
        return worst == pytest.approx(worst_with_half(k, levels=2, most=3), rel=1e-9)
    return APPROACHES.get(method.name, 1) <= worst <= 1


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "parts", "at_night", "pairs"), SPACES)
def test_no_answer_tells_more_than_epsilon(method, side, k, parts, at_night, pairs):
    every = part(method, parts)
    worst, checked = replay_loss(method, side, k, every=every)
    assert abs(checked - pairs / every) <= pairs / every * 0.02
    assert is_used_up(worst, method, k)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 2], ids=["record", "two-rows"])
def test_no_answer_of_a_few_pairs_tells_more_than_epsilon(method, k):
    """A few of the pairs of the spaces 3x3-record and 3x3-two-rows."""
    worst, checked = replay_loss(method, 3, k, every=120 * k**3, shift=1)
    assert 0.85 < worst <= 1
    assert checked >= 10


# A lattice of 8 x 8: on a smaller one the first tier is the last, and decides nothing.
@pytest.mark.parametrize(
    ("every", "pairs"),
    [pytest.param(2_000, 1_000, marks=[pytest.mark.deep, pytest.mark.slow]), (100_000, 25)],
    ids=["many", "few"],
)
def test_tiers_of_a_cascade_follow_from_answers(every, pairs):
    worst, checked = replay_loss(Cascade(signal=1), 8, every=every)
    assert worst == 1
    assert checked > pairs


def test_every_method_is_replayed():
    """The laws of local protocols are exact in tests/apps/local/test_local_protocols.py."""
    assert {method.values[0].name for method in METHODS} == set(psd.methods())


# But those of which every run has all pairs.
PARTS = [
    pytest.param(*method.values, *space.values, id=f"{space.id}-{method.id}")
    for space in SPACES
    for method in METHODS
    if part(method.values[0], space.values[2]) > 1
]


@pytest.mark.nightly
@pytest.mark.parametrize(("method", "side", "k", "parts", "at_night", "pairs"), PARTS)
def test_another_part_of_the_pairs(method, side, k, parts, at_night, pairs):
    """All pairs, or a part that is drawn anew each time where all would take hours."""
    more_than_counts = has_selections(method) or has_shapes(method) or is_adaptive(method)
    every = part(method, parts) if more_than_counts else at_night
    shift = secrets.randbelow(every)
    print(f"shift {shift}")  # shown if it fails, to see it again
    worst, checked = replay_loss(method, side, k, every=every, shift=shift)
    assert 0 < worst <= 1
    assert abs(checked - pairs / every) <= pairs / every * 0.02
