"""Every registered method on all small data sets and all their neighbours."""

import secrets
from fractions import Fraction
from importlib.util import find_spec

import pytest

import psd
from psd.decompositions.privtree import PrivTree
from support.privacy.replay import has_selections, is_adaptive, small_methods, worst_loss
from support.privacy.shapes import worst_with_half

METHODS = [pytest.param(method, id=str(method)) for method in small_methods()]

# Lattice side, k, part of the neighbours in one run of the CI: for methods that only count, for
# those that also select, and for those that take many steps or grow shapes; pairs in all.
SPACES = [
    pytest.param(3, 1, (1, 1, 6), 1_980, id="3x3-record"),
    pytest.param(3, 2, (1, 8, 48), 11_880, id="3x3-two-rows"),
    pytest.param(3, 3, (10, 40, 110), 48_180, id="3x3-three-rows"),
    pytest.param(4, 1, (1, 8, 48), 15_504, id="4x4-record"),
]


# Builds that take several times longer still, and the part of their neighbours on top of that.
SLOW = {"auto": 4, "hilbert-rtree": 4, "htf": 4}

# A division's sensitivity is approached where a part has many bins, which no small lattice has.
APPROACHES = {"htf": Fraction(9, 10)}


def part(method, parts) -> int:
    slower = SLOW.get(method.name, 1)
    if has_selections(method):
        return min(parts[1] * slower, 40)
    return parts[2] if has_shapes(method) or is_adaptive(method) else min(parts[0] * slower, 40)


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "parts", "pairs"), SPACES)
def test_no_answer_tells_more_than_epsilon(method, side, k, parts, pairs):
    every = part(method, parts)
    worst, checked = worst_loss(method, side, k, every=every)
    assert abs(checked - pairs / every) <= pairs / every * 0.02
    assert is_used_up(worst, method, k)


def test_every_method_and_local_protocol_is_replayed():
    """There is no local protocol; whoever brings one brings its cases."""
    assert {method.values[0].name for method in METHODS} == set(psd.methods())
    assert find_spec("psd.local") is None


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "parts", "pairs"), SPACES)
def test_another_part_of_the_neighbours(method, side, k, parts, pairs):
    """A part that is drawn anew each time; all of them would take hours."""
    every = part(method, parts)
    if every == 1:
        pytest.skip("every run has all neighbours")
    shift = 1 + secrets.randbelow(every - 1)
    print(f"shift {shift}")  # shown if it fails, to see it again
    worst, checked = worst_loss(method, side, k, every=every, shift=shift)
    assert 0 < worst <= 1
    assert abs(checked - pairs / every) <= pairs / every * 0.02
