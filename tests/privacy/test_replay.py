"""Every registered method on all small data sets and all their neighbours."""

from fractions import Fraction

import pytest
from replay import has_selections, is_adaptive, small_methods, worst_loss

METHODS = [pytest.param(method, id=str(method)) for method in small_methods()]

# Lattice side, k, part of the neighbours in one run of the CI: for methods that only count, for
# those that also select, and for those that take many steps to count; pairs in all.
SPACES = [
    pytest.param(3, 1, (1, 1, 4), 1_980, id="3x3-record"),
    pytest.param(3, 2, (1, 8, 20), 11_880, id="3x3-two-rows"),
    pytest.param(3, 3, (10, 40, 110), 48_180, id="3x3-three-rows"),
    pytest.param(4, 1, (1, 8, 40), 15_504, id="4x4-record"),
]


def part(method, parts) -> int:
    if has_selections(method):
        return parts[1]
    return parts[2] if is_adaptive(method) else parts[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "parts", "pairs"), SPACES)
def test_no_answer_tells_more_than_epsilon(method, side, k, parts, pairs):
    every = part(method, parts)
    worst, checked = worst_loss(method, side, k, every=every)
    assert abs(checked - pairs / every) <= pairs / every * 0.02
    # The promise is used up: a bound far below it would mean that the check sees too little.
    assert worst == Fraction(1)


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "parts", "pairs"), SPACES)
def test_all_neighbours(method, side, k, parts, pairs):
    worst, checked = worst_loss(method, side, k)
    assert (worst, checked) == (1, pairs)
